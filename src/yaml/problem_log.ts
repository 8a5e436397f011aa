import type { LineCounter } from "yaml";
import type { Position, Problem } from "../base/problem.ts";

/** How many problems of one severity are kept of one file; the rest is counted. */
export const MAX_PROBLEMS = 1_000;

/** Gathers what is wrong in one file; places are offsets into its text. */
export class ProblemLog {
  readonly #name: string;
  readonly #lines: LineCounter;
  readonly #problems: Problem[] = [];
  readonly #counts = { error: 0, warning: 0 };
  /** Offset of the first problem that was too much to keep. */
  readonly #leftOut: { error?: number; warning?: number } = {};

  constructor(name: string, lines: LineCounter) {
    this.#name = name;
    this.#lines = lines;
  }

  /** The place as `file:line:column`, both counted from 1. */
  at(offset: number): Position {
    const { line, col } = this.#lines.linePos(offset);
    return line === 0 ? `${this.#name}:1:${offset + 1}` : `${this.#name}:${line}:${col}`;
  }

  /** Something that refuses the file. */
  error(offset: number, path: string, text: string): void {
    this.#add("error", offset, path, text);
  }

  /** Something doubtful that changes nothing. */
  warning(offset: number, path: string, text: string): void {
    this.#add("warning", offset, path, text);
  }

  /** Everything so far, in the order it was found, and one line for what was too much to keep. */
  problems(): Problem[] {
    const rest = (["error", "warning"] as const)
      .filter((severity) => this.#counts[severity] > MAX_PROBLEMS)
      .map((severity): Problem => ({
        severity,
        at: this.at(this.#leftOut[severity] ?? 0),
        path: "",
        text: `${this.#counts[severity] - MAX_PROBLEMS} more ${severity}s are not shown; correct these first`,
      }));
    return [...this.#problems, ...rest];
  }

  #add(severity: Problem["severity"], offset: number, path: string, text: string): void {
    this.#counts[severity]++;
    if (this.#counts[severity] <= MAX_PROBLEMS) {
      this.#problems.push({ severity, at: this.at(offset), path, text });
    } else {
      this.#leftOut[severity] ??= offset;
    }
  }
}
