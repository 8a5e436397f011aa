import { type Problem, problemText } from "../base/problem.ts";

const MAX_PROBLEMS = 20;
const MAX_LENGTH = 4_000;

/** Why a configuration was refused, for whoever runs the server: the first errors, each in a line. */
export function refusalText(problems: readonly Problem[]): string {
  const errors = problems.filter(({ severity }) => severity === "error");
  const lines = errors.slice(0, MAX_PROBLEMS).map(problemText);
  const more = errors.length - lines.length;
  if (more > 0) lines.push(`and ${more} more`);
  const text = lines.join("\n");
  // A cut pair of surrogates would be no UTF-8.
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH).toWellFormed()}…` : text;
}
