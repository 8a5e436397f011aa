import { crossProblems, storeWarnings } from "./cross_rules.ts";
import { type EffectiveSetting, effectiveSettings } from "./effective_settings.ts";
import { cacheWarnings } from "./kv_rules.ts";
import type { Environment, Setting } from "./setting.ts";
import { familyPattern, settingEntries, type Settings } from "./table.ts";
import { unreadWarnings } from "./unread_names.ts";

export type { Environment, Settings };

/** The settings, and warnings about them. */
export interface SettingsReading {
  readonly settings: Settings;
  readonly warnings: string[];
  /** For operators: without secrets. */
  readonly effective: readonly EffectiveSetting[];
}

/** Settings that the service cannot start with; the message has one problem a line. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
  /** Every problem, in the order of the table, those between settings last. */
  readonly problems: readonly string[];
  /** May explain a problem. */
  readonly warnings: readonly string[];

  constructor(problems: readonly string[], warnings: readonly string[] = []) {
    super(problems.join("\n"));
    this.problems = problems;
    this.warnings = warnings;
  }
}

const MAX_SHOWN_LENGTH = 100;

/**
 * Reads every setting from the environment; a variable that is set but empty counts as unset. Throws a
 * `SettingsError` with all problems and warnings, which never show secrets.
 */
export function readSettings(env: Environment): SettingsReading {
  const values: Record<string, unknown> = {};
  const notes: Notes = { problems: [], warnings: [], bad: new Set() };
  for (const [name, setting] of settingEntries()) {
    const pattern = familyPattern(name);
    values[name] = pattern === undefined
      ? readOne(name, setting, env[name], notes)
      : readFamily(pattern, setting, env, notes);
  }
  // `Settings` is computed from the same table; the compiler cannot see that.
  const settings = values as Settings;
  const problems = [...notes.problems, ...crossProblems(settings, notes.bad)];
  const warnings = [
    ...notes.warnings,
    ...backendWarnings(env),
    ...cacheWarnings(settings, env, notes.bad),
    ...storeWarnings(settings, env, notes.bad),
    ...unreadWarnings(env),
  ];
  if (problems.length > 0) throw new SettingsError(problems, warnings);
  return { settings, warnings, effective: effectiveSettings(env) };
}

interface Notes {
  readonly problems: string[];
  readonly warnings: string[];
  /** Names of settings whose text could not be read. */
  readonly bad: Set<string>;
}

function readOne(name: string, setting: Setting, text: string | undefined, notes: Notes): unknown {
  if (text === undefined || text === "") return defaultOf(name, setting);
  const parsed = setting.parse(text);
  if ("expected" in parsed) {
    notes.problems.push(`Invalid ${name} ${shown(setting, text)}: expected ${parsed.expected}`);
    notes.bad.add(name);
    return defaultOf(name, setting);
  }
  note(name, setting, notes);
  return parsed.value;
}

function readFamily(
  pattern: RegExp,
  setting: Setting,
  env: Environment,
  notes: Notes,
): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>();
  for (const variable of Object.keys(env).sort()) {
    const filled = pattern.exec(variable)?.[1];
    const text = env[variable];
    if (filled === undefined || text === undefined || text === "") continue;
    values.set(filled, readOne(variable, setting, text, notes));
  }
  return values;
}

function defaultOf(name: string, setting: Setting): unknown {
  if (setting.default === undefined) return undefined;
  const parsed = setting.parse(setting.default);
  if ("value" in parsed) return parsed.value;
  throw new Error(`Invalid default of ${name} "${setting.default}": expected ${parsed.expected}`);
}

function note(name: string, { deprecated }: Setting, notes: Notes): void {
  if (deprecated !== undefined) notes.warnings.push(`${name} has no effect: ${deprecated}`);
}

function shown(setting: Setting, text: string): string {
  if (setting.secret) return "(value not shown)";
  return JSON.stringify(text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH)}…` : text);
}

function backendWarnings(env: Environment): string[] {
  const text = env.BACKEND_TYPE ?? "";
  if (["", "kv", "mc", "memory"].includes(text)) return [];
  const meant = /^memcached?$/i.test(text) ? "; mc is the memcached-style cache" : "";
  return [`BACKEND_TYPE ${JSON.stringify(text)} is none of kv, mc and memory; kv is used${meant}`];
}
