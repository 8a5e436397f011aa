import { readPattern } from "../base/pattern.ts";
import type { FieldReader } from "../yaml/field_reader.ts";
import { shown } from "../yaml/scalar.ts";

/** The groups that the name and the labels of a mapping may refer to. */
export interface PatternGroups {
  readonly count: number;
  readonly names: readonly string[];
}

/** A pattern and its groups. */
interface MappingPattern {
  readonly pattern: RegExp;
  readonly groups: PatternGroups;
}

/** Reads `match`, a glob (`*` is one part between dots) or a regular expression; an invalid one is reported. */
export function readMappingPattern(
  fields: FieldReader,
  matchType: "glob" | "regex",
): MappingPattern | undefined {
  const match = fields.anyText("match") ?? "";
  if (fields.failed("match")) return undefined;
  if (match === "") {
    fields.error("match", "expected a name such as 'ratelimit.service.*', got nothing");
    return undefined;
  }
  if (matchType === "regex") return readRegex(fields, match);
  const parts = match.split(".");
  const bad = parts.find((part) => part === "" || (part.includes("*") && part !== "*"));
  if (bad !== undefined) {
    const text = bad === ""
      ? "expected a part between two dots, got nothing"
      : `expected '*' alone between dots, got '${shown(bad)}'`;
    fields.error("match", `${text}; correct it, or use 'match_type: regex'`);
    return undefined;
  }
  const source = parts.map((part) => part === "*" ? "([^.]*)" : RegExp.escape(part)).join("\\.");
  const count = parts.filter((part) => part === "*").length;
  return { pattern: new RegExp(`^${source}$`), groups: { count, names: [] } };
}

function readRegex(fields: FieldReader, match: string): MappingPattern | undefined {
  const read = readPattern(match);
  if ("problem" in read) {
    fields.error("match", `expected a regular expression, got '${shown(match)}': ${read.problem}`);
    return undefined;
  }
  const { pattern, warning } = read;
  if (warning !== undefined) fields.warning("match", warning);
  // An empty match has every group.
  const empty = new RegExp(`${pattern.source}|`, pattern.flags).exec("");
  return { pattern, groups: { count: (empty?.length ?? 1) - 1, names: Object.keys(empty?.groups ?? {}) } };
}
