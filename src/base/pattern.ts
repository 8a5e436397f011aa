import { translateRe2 } from "./re2_pattern.ts";

/** A pattern of an operator, or what is wrong with it. */
type PatternReading =
  | { readonly pattern: RegExp; readonly warning?: string }
  | { readonly problem: string };

/**
 * Reads a regular expression in the syntax of Go (RE2), or of JavaScript where Go has none, such as for look-ahead;
 * the latter has a warning.
 */
export function readPattern(text: string): PatternReading {
  const translated = translateRe2(text);
  if ("source" in translated) return { pattern: new RegExp(translated.source, "u") };
  const problem = `${translated.problem} at character ${translated.at + 1}`;
  const pattern = javascriptPattern(text);
  if (pattern === undefined) return { problem };
  return {
    pattern,
    warning: `Go refuses this regular expression, so it is read as one of JavaScript: ${problem}`,
  };
}

/** Go's syntax of named groups, unless its bracket is escaped. */
const GO_NAMED_GROUP = /((?<!\\)(?:\\\\)*)\(\?P</g;

/** A pattern of JavaScript, with leading flags and Go's named groups; undefined if it would not mean what it says. */
function javascriptPattern(text: string): RegExp | undefined {
  const [, flags = "", rest = text] = /^\(\?([ims]+)\)(.*)$/s.exec(text) ?? [];
  const source = rest.replaceAll(GO_NAMED_GROUP, "$1(?<");
  const strict = compiled(source, `${flags}u`);
  return strict ?? (hasLostMeaning(source) ? undefined : compiled(source, flags));
}

function compiled(source: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(source, flags);
  } catch {
    return undefined;
  }
}

/** True when it has escapes or classes that JavaScript takes for plain characters. */
function hasLostMeaning(source: string): boolean {
  if (/\[:\^?[a-z]+:\]/.test(source)) return true;
  const groups = (compiled(`${source}|`, "")?.exec("")?.length ?? 1) - 1;
  return [...source.matchAll(/\\(?:([1-9][0-9]*)|([^]))/g)].some(({ 0: escape, 1: number, index }) => {
    if (number !== undefined) return Number(number) > groups;
    const known = /\\(?:[^A-Za-z]|[bBdDfnrsStvwW]|c[A-Za-z]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|k<)/y;
    known.lastIndex = index;
    return escape.length > 0 && !known.test(source);
  });
}

const REFERENCE = /\$(?:\{(\w+)\}|<(\w+)>|([0-9]+)|([A-Za-z_]\w*))/g;

/** The groups that a text refers to, as `$1`, `${1}`, `$name`, `${name}` or `$<name>`. */
export function groupsIn(text: string): { readonly written: string; readonly group: string }[] {
  return [...text.matchAll(REFERENCE)].map(([written, ...groups]) => ({
    written,
    group: groups.find((group) => group !== undefined) ?? "",
  }));
}

/** The text with the groups of the match; an unmatched one is empty, and an unknown one stays as written. */
export function fillGroups(text: string, match: RegExpExecArray): string {
  return text.replace(REFERENCE, (written, ...groups: (string | undefined)[]) => {
    const group = groups.slice(0, 4).find((one) => one !== undefined) ?? "";
    if (/^[0-9]+$/.test(group)) return Number(group) < match.length ? match[Number(group)] ?? "" : written;
    return match.groups !== undefined && group in match.groups ? match.groups[group] ?? "" : written;
  });
}
