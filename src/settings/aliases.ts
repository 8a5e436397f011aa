import { BACKEND_ALIASES } from "./cache_table.ts";
import { isGiven } from "./secret_files.ts";
import { type Environment, isSet } from "./setting.ts";
import { familyPattern, settingEntries } from "./table.ts";

/** The environment in our names. */
interface Aliases {
  readonly environment: Environment;
  /** The variable that was read instead, by the variable of ours that it supplies. */
  readonly sources: ReadonlyMap<string, string>;
  /** A line for each alias and each ignored variable; shows no value of a setting. */
  readonly notes: readonly string[];
}

interface Family {
  readonly pattern: RegExp;
  readonly variableOf: (filled: string) => string;
}

/** The value that Kubernetes puts into `NAME_PORT` for each service, such as one that is called `grpc`. */
const SERVICE_LINK = /^(?:tcp|udp|sctp):\/\//i;

const NAMES = new Map(
  settingEntries().flatMap(([name, { aliases = [] }]) => aliases.map((alias) => [alias, name as string])),
);
const OURS: ReadonlySet<string> = new Set(settingEntries().map(([name]) => name));
const FAMILIES: readonly Family[] = [...NAMES].flatMap(([alias, name]) => {
  const pattern = familyPattern(alias);
  return pattern === undefined
    ? []
    : [{ pattern, variableOf: (filled: string) => name.replace(/<.*>/, filled) }];
});

/** The variable of ours that a variable of envoyproxy/ratelimit supplies; undefined for any other. */
export function suppliedByAlias(variable: string): string | undefined {
  const name = NAMES.get(variable);
  if (name !== undefined) return name;
  for (const { pattern, variableOf } of FAMILIES) {
    const filled = pattern.exec(variable)?.[1];
    if (filled !== undefined) return variableOf(filled);
  }
  return undefined;
}

/** Returns whether the environment has a value for a setting under any of its names. */
export function isGivenAs(env: Environment, name: string): boolean {
  return isGiven(env, name) || [...NAMES].some(([alias, supplied]) => supplied === name && isSet(env, alias));
}

/** Replaces the variables of envoyproxy/ratelimit by ours, unless ours are given too, and leaves out service links. */
export function readAliases(env: Environment): Aliases {
  const environment: Record<string, string | undefined> = { ...env };
  const sources = new Map<string, string>();
  const notes: string[] = [];
  for (const variable of Object.keys(env).sort()) {
    const name = suppliedByAlias(variable);
    if (!isSet(env, variable) || name === undefined && !OURS.has(variable)) continue;
    if (variable.endsWith("_PORT") && SERVICE_LINK.test(env[variable] ?? "")) {
      delete environment[variable];
      notes.push(`${variable} is ignored: its value is a service link of Kubernetes`);
      continue;
    }
    if (name === undefined) continue;
    delete environment[variable];
    if (isGiven(environment, name)) {
      notes.push(`${variable} is ignored: ${name} is set`);
      continue;
    }
    environment[name] = env[variable];
    sources.set(name, variable);
    notes.push(`${name} is set from ${variable}`);
  }
  const backend = BACKEND_ALIASES.get(env["BACKEND_TYPE"] ?? "");
  if (backend !== undefined) notes.push(`BACKEND_TYPE "${env["BACKEND_TYPE"]}" is read as ${backend}`);
  return { environment, sources, notes };
}
