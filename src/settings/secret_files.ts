import { errorText } from "../base/error_text.ts";
import { checkSecretFile, secretOf, secretProblem } from "../base/secret_text.ts";
import { type Environment, isSet } from "./setting.ts";
import { familyPattern, settingEntries } from "./table.ts";

/** The environment with the values of its secret files. */
export interface SecretFiles {
  /** `NAME` in place of each `NAME_FILE`. */
  readonly environment: Environment;
  /** The variable that named the file, by the variable that the file supplies. */
  readonly sources: ReadonlyMap<string, string>;
  /** The paths of those files, by the same variable. */
  readonly paths: ReadonlyMap<string, string>;
  /** The problems of files, without their values. */
  readonly problems: readonly string[];
  /** The variables that a bad file was meant for. */
  readonly bad: readonly string[];
}

const SUFFIX = "_FILE";
const ALL: ReadonlySet<string> = new Set(settingEntries().map(([name]) => name));
const SECRETS: ReadonlySet<string> = new Set(
  settingEntries().flatMap(([name, { secret }]) => secret ? [name] : []),
);
const FAMILIES = [...SECRETS].flatMap((name) => familyPattern(name) ?? []);

/** The variable that names a file with the value of a secret setting; absent where that name is another setting. */
export function fileVariable(name: string): string | undefined {
  const isSecret = SECRETS.has(name) || FAMILIES.some((pattern) => pattern.test(name));
  return isSecret && !ALL.has(`${name}${SUFFIX}`) ? `${name}${SUFFIX}` : undefined;
}

/** The variable that the file of `variable` supplies; absent if `variable` names no such file. */
export function suppliedVariable(variable: string): string | undefined {
  if (!variable.endsWith(SUFFIX)) return undefined;
  const name = variable.slice(0, -SUFFIX.length);
  return fileVariable(name) === variable ? name : undefined;
}

/** Returns whether the environment has a value for a setting, or a file with one. */
export function isGiven(env: Environment, name: string): boolean {
  const file = fileVariable(name);
  return isSet(env, name) || (file !== undefined && isSet(env, file));
}

/** Reads every file that the environment names for a secret setting. */
export function readSecretFiles(env: Environment): SecretFiles {
  const environment: Record<string, string | undefined> = { ...env };
  const sources = new Map<string, string>();
  const paths = new Map<string, string>();
  const problems: string[] = [];
  const bad: string[] = [];
  for (const variable of Object.keys(env).sort()) {
    const name = suppliedVariable(variable);
    if (name === undefined) continue;
    delete environment[variable];
    if (!isSet(env, variable)) continue;
    try {
      environment[name] = secretIn(env, name, variable);
      sources.set(name, variable);
      paths.set(name, env[variable] ?? "");
    } catch (error) {
      problems.push(errorText(error));
      bad.push(name);
    }
  }
  return { environment, sources, paths, problems, bad };
}

/** The value of one secret setting, from its variable or its file; undefined without either. Throws for a bad file. */
export function secretValue(env: Environment, name: string): string | undefined {
  const file = fileVariable(name);
  if (file !== undefined && isSet(env, file)) return secretIn(env, name, file);
  return isSet(env, name) ? env[name] : undefined;
}

function secretIn(env: Environment, name: string, variable: string): string {
  const path = env[variable] ?? "";
  const refused = (state: string) => new Error(`Invalid ${variable} ${JSON.stringify(path)}: ${state}`);
  if (isSet(env, name)) throw refused(`${name} is also set; expected only one of them`);
  try {
    checkSecretFile(Deno.statSync(path));
    return secretOf(Deno.readTextFileSync(path));
  } catch (error) {
    throw refused(secretProblem(error));
  }
}
