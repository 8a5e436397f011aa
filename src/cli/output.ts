/** Where a command writes: whole lines, each without its line break. */
export interface Output {
  stdout(line: string): void;
  stderr(line: string): void;
}
