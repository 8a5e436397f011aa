/**
 * Where something stands in its source, ready to print: `file:line:column` for files,
 * `resource "name"` for a configuration server.
 */
export type Position = string;

/** Something wrong, or doubtful, in a configuration. Its text begins with the position. */
export interface Problem {
  readonly severity: "error" | "warning";
  readonly at: Position;
  /** Path of the field; empty for the whole document. */
  readonly path: string;
  readonly text: string;
}

/** The problem as one line: position, path of the field, text. */
export function problemText(problem: Problem): string {
  return [problem.at, problem.path, problem.text].filter((part) => part !== "").join(": ");
}
