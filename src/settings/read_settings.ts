import { readAliases } from "./aliases.ts";
import { BACKEND_ALIASES } from "./cache_table.ts";
import { crossProblems, quotaWarnings, storeWarnings } from "./cross_rules.ts";
import { type EffectiveSetting, effectiveSettings } from "./effective_settings.ts";
import { cacheWarnings } from "./kv_rules.ts";
import { readSecretFiles, type SecretFiles } from "./secret_files.ts";
import type { Environment, Setting } from "./setting.ts";
import { familyPattern, settingEntries, type Settings } from "./table.ts";
import { unreadWarnings } from "./unread_names.ts";

export type { Environment, Settings };

/** The settings, and warnings about them. */
interface SettingsReading {
  readonly settings: Settings;
  readonly warnings: string[];
  /** A line for each variable of envoyproxy/ratelimit that was read, or ignored. */
  readonly notes: readonly string[];
  /** For operators: without secrets. */
  readonly effective: readonly EffectiveSetting[];
  /** The `NAME_FILE` that named the file of a value, by the `NAME` that was set from it. */
  readonly sources: ReadonlyMap<string, string>;
  /** The paths of those files, by the same `NAME`. */
  readonly secretFiles: ReadonlyMap<string, string>;
}

/** Settings that the service cannot start with; the message has one problem a line. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
  /** Every problem: those of secret files first, those between settings last, the others in the order of the table. */
  readonly problems: readonly string[];
  /** May explain a problem. */
  readonly warnings: readonly string[];
  /** As those of a reading. */
  readonly notes: readonly string[];

  constructor(
    problems: readonly string[],
    { warnings = [], notes = [] }: Partial<Pick<SettingsError, "warnings" | "notes">> = {},
  ) {
    super(problems.join("\n"));
    this.problems = problems;
    this.warnings = warnings;
    this.notes = notes;
  }
}

const MAX_SHOWN_LENGTH = 100;

/**
 * Reads every setting from the environment, and the files that `NAME_FILE` names for secrets; a variable that is set but
 * empty counts as unset. Throws a `SettingsError` with all problems and warnings, which never show secrets.
 */
export function readSettings(environment: Environment): SettingsReading {
  const values: Record<string, unknown> = {};
  const { environment: env, notes: lines, files, sources } = readEnvironment(environment);
  const notes: Notes = {
    problems: [...files.problems],
    warnings: [],
    bad: new Set(files.bad),
    files,
    sources,
  };
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
    ...quotaWarnings(settings, env, notes.bad),
    ...unreadWarnings(env),
  ];
  if (problems.length > 0) throw new SettingsError(problems, { warnings, notes: lines });
  const effective = effectiveSettings(env, sources);
  const { sources: ofFiles, paths: secretFiles } = files;
  return { settings, warnings, notes: lines, sources: ofFiles, secretFiles, effective };
}

/** The environment in our names, with the values of secret files, and what supplied which variable. */
export function readEnvironment(variables: Environment) {
  const { environment: renamed, sources: aliases, notes } = readAliases(variables);
  const files = readSecretFiles(renamed);
  const sources: ReadonlyMap<string, string> = new Map([...aliases, ...files.sources]);
  return { environment: files.environment, notes, files, sources };
}

interface Notes {
  readonly problems: string[];
  readonly warnings: string[];
  /** Names of settings whose text could not be read. */
  readonly bad: Set<string>;
  readonly files: SecretFiles;
  /** Aliases too. */
  readonly sources: ReadonlyMap<string, string>;
}

function readOne(name: string, setting: Setting, text: string | undefined, notes: Notes): unknown {
  if (text === undefined || text === "") return defaultOf(name, setting);
  const parsed = setting.parse(text);
  if ("expected" in parsed) {
    const value = shown(name, setting, text, notes);
    notes.problems.push(`Invalid ${name} ${value}: expected ${parsed.expected}`);
    notes.bad.add(name);
    return defaultOf(name, setting);
  }
  if (parsed.warning !== undefined) notes.warnings.push(`${name}: ${parsed.warning}`);
  note(name, setting, notes);
  if (setting.secret && parsed.value === text && text.trim() !== text) {
    const variable = notes.sources.get(name) ?? name;
    notes.warnings.push(`${variable} begins or ends with a blank, which is a part of the value`);
  }
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

function shown(name: string, setting: Setting, text: string, { files, sources }: Notes): string {
  const source = sources.get(name);
  const from = source === undefined ? "" : `(set from ${source})`;
  if (files.sources.has(name)) return from;
  const value = setting.secret
    ? "(value not shown)"
    : JSON.stringify(text.length > MAX_SHOWN_LENGTH ? `${text.slice(0, MAX_SHOWN_LENGTH)}…` : text);
  return from === "" ? value : `${value} ${from}`;
}

function backendWarnings(env: Environment): string[] {
  const text = env.BACKEND_TYPE ?? "";
  if (["", "kv", "mc", "memory"].includes(text) || BACKEND_ALIASES.has(text)) return [];
  const meant = /^memcached?$/i.test(text) ? "; mc is the memcached-style cache" : "";
  return [`BACKEND_TYPE ${JSON.stringify(text)} is none of kv, mc and memory; kv is used${meant}`];
}
