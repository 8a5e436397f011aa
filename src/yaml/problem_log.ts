import type { LineCounter } from "yaml";
import type { Position, Problem } from "../base/problem.ts";

/** Maximum number of problems per severity and file; others are counted. */
export const MAX_PROBLEMS = 1_000;

/** Collects the problems of a file; positions are offsets. */
export class ProblemLog {
  readonly #name: string;
  readonly #lines: LineCounter;
  readonly #problems: Problem[] = [];
  readonly #counts = { error: 0, warning: 0 };
  /** Offset of the first problem above the maximum. */
  readonly #firstDropped: { error?: number; warning?: number } = {};

  constructor(name: string, lines: LineCounter) {
    this.#name = name;
    this.#lines = lines;
  }

  /** The position as `file:line:column`, from 1. */
  at(offset: number): Position {
    const { line, col } = this.#lines.linePos(offset);
    return line === 0 ? `${this.#name}:1:${offset + 1}` : `${this.#name}:${line}:${col}`;
  }

  /** Adds a problem that rejects the file. */
  error(offset: number, path: string, text: string): void {
    this.#add("error", offset, path, text);
  }

  /** Adds a warning. */
  warning(offset: number, path: string, text: string): void {
    this.#add("warning", offset, path, text);
  }

  /** The problems in order, and the number of dropped ones. */
  problems(): Problem[] {
    const rest = (["error", "warning"] as const)
      .filter((severity) => this.#counts[severity] > MAX_PROBLEMS)
      .map((severity): Problem => ({
        severity,
        at: this.at(this.#firstDropped[severity] ?? 0),
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
      this.#firstDropped[severity] ??= offset;
    }
  }
}
