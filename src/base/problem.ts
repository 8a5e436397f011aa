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

/** What `file:line:column` is made of; other positions, such as `resource "name"`, have no line. */
const IN_FILE = /^(.*):([0-9]+):([0-9]+)$/s;

/**
 * The problems by file, line and column, whichever check found them. What concerns a file as a whole, or
 * has no line at all, stands before the lines; problems of one place stay in the order they were found.
 */
export function problemsInOrder(problems: readonly Problem[]): Problem[] {
  return problems
    .map((problem) => ({ problem, place: placeOf(problem.at) }))
    .sort((a, b) => comparePlaces(a.place, b.place))
    .map(({ problem }) => problem);
}

interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

function placeOf(at: string): Place {
  const [, file = at, line = "0", column = "0"] = IN_FILE.exec(at) ?? [];
  return { file, line: Number(line), column: Number(column) };
}

/** File names in the order in which they are read. */
function comparePlaces(a: Place, b: Place): number {
  if (a.file !== b.file) return a.file < b.file ? -1 : 1;
  return a.line - b.line || a.column - b.column;
}
