import { readPattern } from "../base/pattern.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { shown } from "../yaml/scalar.ts";

/** The syntax of the pattern of a mapping, and its position. */
export interface PatternPlace {
  readonly matchType: "glob" | "regex";
  readonly offset: number;
  readonly path: string;
}

/** The groups that the name and the labels of a mapping may refer to. */
export interface PatternGroups {
  readonly count: number;
  readonly names: readonly string[];
}

/** A pattern and its groups. */
export interface MappingPattern {
  readonly pattern: RegExp;
  readonly groups: PatternGroups;
}

/** Reads a pattern, a glob (`*` is one part between dots) or a regular expression; an invalid one is reported. */
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
  const count = parts.filter((part) => part === "*").length;
  return { pattern: new RegExp(`^${source}$`), groups: { count, names: [] } };
}

function readRegex(
  log: ProblemLog,
  match: string,
  { offset, path }: Omit<PatternPlace, "matchType">,
): MappingPattern | undefined {
  const read = readPattern(match);
  if ("problem" in read) {
    log.error(offset, path, `expected a regular expression, got '${shown(match)}': ${read.problem}`);
    return undefined;
  }
  const { pattern, warning } = read;
  if (warning !== undefined) log.warning(offset, path, warning);
  // An empty match has every group.
  const empty = new RegExp(`${pattern.source}|`, pattern.flags).exec("");
  return { pattern, groups: { count: (empty?.length ?? 1) - 1, names: Object.keys(empty?.groups ?? {}) } };
}
