import { editDistance } from "../base/edit_distance.ts";
import { suppliedByAlias } from "./aliases.ts";
import { fileVariable, suppliedVariable } from "./secret_files.ts";
import { type Environment, isSet } from "./setting.ts";
import { familyPattern, settingEntries } from "./table.ts";

const NAMES: ReadonlySet<string> = new Set(settingEntries().map(([name]) => name));
/** The settings, and the variables that name files for them. */
const VARIABLES = [...NAMES].flatMap((name) => [name, fileVariable(name) ?? []].flat());
const FAMILIES = [...NAMES].flatMap((name) => familyPattern(name) ?? []);
/** Shorter settings allow one wrong letter, others two: few names of other programs are that similar. */
const LONG_NAME = 8;

/** Warnings about variables that are not settings, but were probably meant as one. */
export function unreadWarnings(env: Environment): string[] {
  return Object.keys(env).sort().flatMap((variable) => {
    if (!isSet(env, variable) || isSetting(variable)) return [];
    const renamed = ourNameFor(variable);
    if (renamed !== undefined) return [`${variable} is not read: set ${renamed} instead`];
    const [, plain = ""] = /^(.*_.*)_FILE$/.exec(variable) ?? [];
    if (isSetting(plain)) return [`${variable} is not a setting; only secrets can be read from a file`];
    const similar = similarSetting(variable);
    return similar === undefined ? [] : [`${variable} is not a setting; did you mean ${similar}?`];
  });
}

/** Returns whether the environment has a value for any setting. */
export function hasSettings(env: Environment): boolean {
  return Object.keys(env).some((variable) => {
    return isSet(env, variable) && (isSetting(variable) || suppliedByAlias(variable) !== undefined);
  });
}

function isSetting(variable: string): boolean {
  return NAMES.has(variable) || suppliedVariable(variable) !== undefined ||
    FAMILIES.some((pattern) => pattern.test(variable));
}

/** The variable of ours for a file with the value of a variable of envoyproxy/ratelimit. */
function ourNameFor(variable: string): string | undefined {
  const [, alias = ""] = /^(.*)_FILE$/.exec(variable) ?? [];
  const name = suppliedByAlias(alias);
  return name === undefined ? undefined : fileVariable(name);
}

/**
 * The setting that a variable misspells. Only names with an underscore are compared, because `HOST` and `PORT` are
 * close to names of the system, such as `HOME`.
 */
function similarSetting(variable: string): string | undefined {
  const candidates = VARIABLES.flatMap((name) => {
    const most = name.length < LONG_NAME ? 1 : 2;
    if (!name.includes("_") || name[0] !== variable[0]) return [];
    if (Math.abs(name.length - variable.length) > most) return [];
    const distance = editDistance(variable, name);
    return distance > most ? [] : [{ name, distance }];
  });
  return candidates.sort((a, b) => a.distance - b.distance)[0]?.name;
}
