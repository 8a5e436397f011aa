/** Tests that fail for one reason with the program of `deno task test:binary`. */
export interface Skip {
  /** What the base runtime lacks. */
  readonly reason: string;
  /** The names of the tests by their file. */
  readonly tests: Readonly<Record<string, readonly string[]>>;
}

/** What the base runtime of `deno task test:binary` cannot do. A test that passes with it must not be here. */
export const SKIPS: readonly Skip[] = [];
