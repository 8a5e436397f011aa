/** Text with `*` in it, split once so that a match is a few comparisons. */
export interface Pattern {
  readonly text: string;
  readonly prefix: string;
  readonly suffix: string;
  /** What stands between two stars, left to right. */
  readonly middle: readonly string[];
  /** Shortest text that can match, in UTF-16 units. */
  readonly minLength: number;
}

/** Splits a text with at least one `*`; each `*` stands for any characters, also none. */
export function compilePattern(text: string): Pattern {
  const parts = text.split("*");
  const prefix = parts[0] ?? "";
  const suffix = parts.at(-1) ?? "";
  const middle = parts.slice(1, -1).filter((part) => part !== "");
  const minLength = parts.reduce((sum, part) => sum + part.length, 0);
  return { text, prefix, suffix, middle, minLength };
}

/** Whether the whole of `value` matches. */
export function matchesPattern(pattern: Pattern, value: string): boolean {
  if (value.length < pattern.minLength) return false;
  if (!value.startsWith(pattern.prefix) || !value.endsWith(pattern.suffix)) return false;
  let from = pattern.prefix.length;
  const end = value.length - pattern.suffix.length;
  for (const part of pattern.middle) {
    const found = value.indexOf(part, from);
    if (found < 0 || found + part.length > end) return false;
    from = found + part.length;
  }
  return true;
}
