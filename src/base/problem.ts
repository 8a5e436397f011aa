/** A position, ready to print: `file:line:column`, or `resource "name"` of a configuration server. */
export type Position = string;

/** An error or a warning in a configuration. */
export interface Problem {
  readonly severity: "error" | "warning";
  readonly at: Position;
  /** Path of the field; empty for the whole document. */
  readonly path: string;
  readonly text: string;
}

/** The problem as one line: position, path, text. */
export function problemText(problem: Problem): string {
  return [problem.at, problem.path, problem.text].filter((part) => part !== "").join(": ");
}

/** The texts of the first errors, and the number of further ones; one text at least. */
export function errorTexts(problems: readonly Problem[], most: number): string[] {
  const errors = problems.filter(({ severity }) => severity === "error");
  const texts = errors.slice(0, most).map(problemText);
  if (errors.length > most) texts.push(`and ${errors.length - most} more`);
  return texts.length === 0 ? ["the configuration cannot be read"] : texts;
}

/** The parts of `file:line:column`; other positions have no line. */
const IN_FILE = /^(.*):([0-9]+):([0-9]+)$/s;

/** Sorts problems by file, line and column; those without a line come first. Stable. */
export function problemsInOrder(problems: readonly Problem[]): Problem[] {
  return problems
    .map((problem) => ({ problem, place: placeOf(problem.at) }))
    .sort((a, b) => comparePlaces(a.place, b.place))
    .map(({ problem }) => problem);
}

/** A position in parts; line and column are 0 where it has none. */
interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** The parts of a position. */
export function placeOf(at: Position): Place {
  const [, file = at, line = "0", column = "0"] = IN_FILE.exec(at) ?? [];
  return { file, line: Number(line), column: Number(column) };
}

function comparePlaces(a: Place, b: Place): number {
  if (a.file !== b.file) return a.file < b.file ? -1 : 1;
  return a.line - b.line || a.column - b.column;
}
