import { CACHE_TABLE } from "./cache_table.ts";
import { CONFIG_TABLE } from "./config_table.ts";
import { KV_TABLE } from "./kv_table.ts";
import { SERVER_TABLE } from "./server_table.ts";
import type { FamilyValue, Setting, SettingValue } from "./setting.ts";
import { STATS_TABLE } from "./stats_table.ts";
import { WEBHOOK_TABLE } from "./webhook_table.ts";

/** The tables by area; their names are unique. */
export const AREAS = [SERVER_TABLE, CONFIG_TABLE, CACHE_TABLE, KV_TABLE, STATS_TABLE, WEBHOOK_TABLE] as const;

/** Every environment variable that Weir reads. */
export const TABLE = {
  ...SERVER_TABLE,
  ...CONFIG_TABLE,
  ...CACHE_TABLE,
  ...KV_TABLE,
  ...STATS_TABLE,
  ...WEBHOOK_TABLE,
};

/** The name of a setting; one with a `<PLACEHOLDER>` is a family of variables. */
export type SettingName = keyof typeof TABLE;

/**
 * The values of the environment, every setting by its variable's name: durations in milliseconds, a family as
 * a map from what fills its placeholder, undefined for an optional setting without a value.
 */
export type Settings = {
  readonly [K in SettingName]: K extends `${string}<${string}` ? FamilyValue<typeof TABLE[K]>
    : SettingValue<typeof TABLE[K]>;
};

/** A rule across settings; it is left out when one of those that it reads is bad by itself. */
export interface CrossRule {
  readonly reads: readonly SettingName[];
  /** The problems, a sentence each. */
  readonly problem: (settings: Settings) => string | readonly string[] | undefined;
}

/** The entries of the table in their order, by the plain type that readers and documentation walk over. */
export function settingEntries(): readonly (readonly [SettingName, Setting])[] {
  return Object.entries(TABLE) as [SettingName, Setting][];
}

/** Matches the variables of a family; undefined for a single variable. */
export function familyPattern(name: string): RegExp | undefined {
  const parts = /^([A-Z_]+)<[A-Z]+>([A-Z_]*)$/.exec(name);
  return parts === null ? undefined : new RegExp(`^${parts[1] ?? ""}(.+)${parts[2] ?? ""}$`);
}
