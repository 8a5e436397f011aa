import { defaultText } from "./docs.ts";
import type { Environment, Setting } from "./setting.ts";
import { familyPattern, settingEntries } from "./table.ts";

/** A setting as an operator may see it. */
export interface EffectiveSetting {
  /** The variable; a family without variables has its placeholder. */
  readonly name: string;
  readonly group: string;
  /** The text of the value; absent without one, and for a secret. */
  readonly value?: string;
  readonly source: "default" | "environment";
  /** What applies without a value, if there is none. */
  readonly whenUnset?: string;
  readonly isSecret: boolean;
  readonly doc: string;
}

/** Every setting with its value and where it came from, in the order of the table; never shows a secret. */
export function effectiveSettings(environment: Environment): EffectiveSetting[] {
  return settingEntries().flatMap(([name, setting]) => {
    const pattern = familyPattern(name);
    if (pattern === undefined) return [effective(name, setting, environment)];
    const variables = Object.keys(environment).filter((variable) =>
      pattern.test(variable) && isSet(environment, variable)
    );
    return (variables.length === 0 ? [name] : variables.sort()).map((variable) => {
      return effective(variable, setting, environment);
    });
  });
}

function effective(name: string, setting: Setting, environment: Environment): EffectiveSetting {
  const { group, doc, secret: isSecret = false } = setting;
  const isGiven = isSet(environment, name);
  const value = isGiven ? environment[name] : setting.default;
  return {
    ...{ name, group, source: isGiven ? "environment" : "default", isSecret, doc: doc.replaceAll("`", "") },
    ...isSecret || value === undefined ? {} : { value },
    ...value === undefined ? { whenUnset: defaultText(setting).replaceAll("`", "") } : {},
  };
}

function isSet(environment: Environment, name: string): boolean {
  return (environment[name] ?? "") !== "";
}
