import { errorText } from "../base/error_text.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { shown } from "../yaml/scalar.ts";

/** How a pattern is written, and where. */
export interface PatternPlace {
  readonly matchType: "glob" | "regex";
  readonly offset: number;
  readonly path: string;
}

/** A pattern that names are compared with, and how many groups it has. */
export interface MappingPattern {
  readonly pattern: RegExp;
  readonly groups: number;
}

/**
 * Reads the pattern of a mapping: of type `glob` each `*` stands for one part between dots, of type `regex` it
 * is a regular expression. Absent when it is none, which is reported.
 */
export function readMappingPattern(
  log: ProblemLog,
  match: string,
  { matchType, offset, path }: PatternPlace,
): MappingPattern | undefined {
  if (match === "") {
    log.error(offset, path, "expected a name such as 'ratelimit.service.*', got nothing");
    return undefined;
  }
  if (matchType === "regex") return readRegex(log, match, { offset, path });
  const parts = match.split(".");
  const bad = parts.find((part) => part === "" || (part.includes("*") && part !== "*"));
  if (bad !== undefined) {
    const text = bad === ""
      ? "expected a part between two dots, got nothing"
      : `expected '*' alone between dots, got '${shown(bad)}'`;
    log.error(offset, path, `${text}; correct it, or use 'match_type: regex'`);
    return undefined;
  }
  const source = parts.map((part) => part === "*" ? "([^.]*)" : RegExp.escape(part)).join("\\.");
  return { pattern: new RegExp(`^${source}$`), groups: parts.filter((part) => part === "*").length };
}

function readRegex(
  log: ProblemLog,
  match: string,
  { offset, path }: { readonly offset: number; readonly path: string },
): MappingPattern | undefined {
  try {
    // Groups with a name are written in two ways.
    const source = match.replaceAll("(?P<", "(?<");
    const pattern = new RegExp(source);
    // What also matches nothing tells its groups.
    return { pattern, groups: (new RegExp(`${source}|`).exec("")?.length ?? 1) - 1 };
  } catch (error) {
    const state = errorText(error);
    log.error(offset, path, `expected a regular expression, got '${shown(match)}': ${state}`);
    return undefined;
  }
}
