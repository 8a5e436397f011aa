import { re2Matcher } from "../base/re2_matcher.ts";
import { MAX_EXPRESSION_STEPS } from "../ratelimit/rules/value_match.ts";
import type { ValueMatch } from "../ratelimit/rule_source.ts";
import { FieldReader, pathOf, unknownKeyText } from "../yaml/field_reader.ts";
import type { ProblemLog } from "../yaml/problem_log.ts";
import { described, isNull, shown } from "../yaml/scalar.ts";
import type { YamlMapping } from "../yaml/value.ts";

const KEYS = ["regex", "in"];
const WILDCARD = "use a wildcard, such as 'value: \"v*\"', or write '.*' for any characters";

/** Reads a `value` that is a mapping; undefined when it is invalid, which is reported. */
export function readValueMatch(log: ProblemLog, mapping: YamlMapping, path: string): ValueMatch | undefined {
  const unknown = [...mapping.entries].filter(([key]) => !KEYS.includes(key));
  for (const [key, { offset }] of unknown) log.error(offset, path, unknownKeyText(key, KEYS));
  if (unknown.length > 0) return undefined;
  const fields = new FieldReader(log, mapping, path);
  if (fields.has("regex") === fields.has("in")) {
    const got = fields.has("in") ? "both; use one rule for each" : "neither";
    log.error(mapping.offset, path, `expected 'regex: EXPRESSION' or 'in: [VALUE, VALUE]', got ${got}`);
    return undefined;
  }
  return fields.has("regex") ? readRegex(fields) : readList(fields);
}

function readRegex(fields: FieldReader): ValueMatch | undefined {
  const regex = fields.anyText("regex") ?? "";
  if (fields.failed("regex")) return undefined;
  if (regex === "") {
    fields.error("regex", "expected a regular expression such as '^v[0-9]+$', got nothing");
    return undefined;
  }
  const problem = regexProblem(regex);
  if (problem === undefined) return { regex };
  fields.error("regex", `expected a regular expression of RE2, got '${shown(regex)}': ${problem}`);
  return undefined;
}

function regexProblem(regex: string): string | undefined {
  // Nothing but the star is special in it, so it was meant as a wildcard.
  if (/^[^.\\^$|?+()[\]{}]*\*[^.\\^$|?+()[\]{}]*$/.test(regex)) {
    return `'*' repeats the character before it; ${WILDCARD}`;
  }
  const read = re2Matcher(regex, MAX_EXPRESSION_STEPS);
  return "problem" in read ? `${read.problem}; correct it` : undefined;
}

function readList(fields: FieldReader): ValueMatch | undefined {
  const list = fields.list("in");
  if (fields.failed("in")) return undefined;
  if (list === undefined || list.items.length === 0) {
    fields.error("in", "expected at least one value; write '[VALUE, VALUE]', or remove the rule");
    return undefined;
  }
  const values = new Set<string>();
  let isValid = true;
  for (const [index, item] of list.items.entries()) {
    const path = `${pathOf(fields.path, "in")}[${index}]`;
    const text = item.kind === "scalar" && !isNull(item) ? item.text : "";
    const problem = text === ""
      ? `expected a text, got ${item.kind === "broken" ? "nothing" : described(item)}`
      : text.includes("*")
      ? `'*' has no meaning in a list, but found '${shown(text)}'; use one rule with this wildcard`
      : values.has(text)
      ? `duplicate value '${shown(text)}'; remove one of them`
      : undefined;
    values.add(text);
    if (problem === undefined) continue;
    isValid = false;
    if (item.kind !== "broken") fields.log.error(item.offset, path, problem);
  }
  return isValid ? { in: [...values] } : undefined;
}
