import { parseBoolean, parsePath } from "./parsers.ts";
import type { Setting, SettingGroup } from "./setting.ts";

/** The row of a boolean setting. */
export function flag<const Default extends "true" | "false">(defaultText: Default, doc: string) {
  return { parse: parseBoolean, default: defaultText, doc } as const;
}

/** The row of an optional path. */
export function file(doc: string, whenUnset?: string) {
  return { parse: parsePath, doc, ...(whenUnset === undefined ? {} : { whenUnset }) } as const;
}

/** Puts settings into a group of the documentation. */
export function inGroup<const Rows extends Readonly<Record<string, Omit<Setting, "group">>>>(
  group: SettingGroup,
  rows: Rows,
): { readonly [Name in keyof Rows]: Rows[Name] & { readonly group: SettingGroup } } {
  const grouped = Object.entries(rows).map(([name, row]) => [name, { ...row, group }]);
  return Object.fromEntries(grouped);
}
