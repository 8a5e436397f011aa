import {
  duration,
  type DurationRange,
  integer,
  oneOf,
  parseBoolean,
  parsePath,
  parseText,
  type Range,
} from "./parsers.ts";
import type { Setting, SettingGroup } from "./setting.ts";

/** The row of a boolean setting. */
export function flag<const Default extends "true" | "false">(defaultText: Default, doc: string) {
  return { parse: parseBoolean, default: defaultText, doc } as const;
}

/** The row of an optional path. */
export function file(doc: string, whenUnset?: string) {
  return { parse: parsePath, doc, ...(whenUnset === undefined ? {} : { whenUnset }) } as const;
}

/** The row of one of these names. */
export function choice<const Name extends string>(names: readonly Name[], defaultText: Name, doc: string) {
  return { parse: oneOf(names), default: defaultText, doc } as const;
}

/** The row of a text. */
export function text(defaultText: string, doc: string) {
  return { parse: parseText, default: defaultText, doc } as const;
}

/** The row of a duration. */
export function time(defaultText: string, doc: string, range: DurationRange = {}) {
  return { parse: duration(range), default: defaultText, doc } as const;
}

/** The row of an integer. */
export function count(defaultText: string, doc: string, range: Range) {
  return { parse: integer(range), default: defaultText, doc } as const;
}

/**
 * Puts settings into a group of the documentation. `vendors` has pairs of a neutral word in their names and the word of
 * envoyproxy/ratelimit; the first that a name contains gives its alias, unless the row has its own.
 */
export function inGroup<const Rows extends Readonly<Record<string, Omit<Setting, "group">>>>(
  group: SettingGroup,
  rows: Rows,
  vendors: readonly (readonly [word: string, vendorWord: string])[] = [],
): { readonly [Name in keyof Rows]: Rows[Name] & { readonly group: SettingGroup } } {
  const grouped = Object.entries(rows).map(([name, row]) => {
    const pair = vendors.find(([word]) => name.includes(word));
    const aliases = pair === undefined ? {} : { aliases: [name.replace(...pair)] };
    return [name, { ...aliases, ...row, group }];
  });
  return Object.fromEntries(grouped);
}

/** A row without a counterpart in envoyproxy/ratelimit, although its name has a neutral word. */
export function ours<const Row>(row: Row) {
  return { ...row, aliases: [] } as const;
}
