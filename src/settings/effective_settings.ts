import { defaultText, plainMarkdown } from "./docs.ts";
import { type Environment, isSet, type Setting } from "./setting.ts";
import { familyPattern, settingEntries } from "./table.ts";

/** A setting as an operator may see it. */
export interface EffectiveSetting {
  /** The variable; a family without variables has its placeholder. */
  readonly name: string;
  readonly group: string;
  /** The text of the value; absent without one, and for a secret. */
  readonly value?: string;
  /** `default`, `environment`, or the variable that names the file of the value. */
  readonly source: string;
  /** The behaviour without a value, if there is none. */
  readonly whenUnset?: string;
  readonly isSecret: boolean;
  readonly doc: string;
}

/** The variables that named the files of values, by the variables that were set from them. */
type Sources = ReadonlyMap<string, string>;

/** Every setting with its value and where it came from, in the order of the table; never shows a secret. */
export function effectiveSettings(
  environment: Environment,
  sources: Sources = new Map(),
): EffectiveSetting[] {
  return settingEntries().flatMap(([name, setting]) => {
    const pattern = familyPattern(name);
    if (pattern === undefined) return [effective(name, setting, { environment, sources })];
    const variables = Object.keys(environment).filter((variable) =>
      pattern.test(variable) && isSet(environment, variable)
    );
    return (variables.length === 0 ? [name] : variables.sort()).map((variable) => {
      return effective(variable, setting, { environment, sources });
    });
  });
}

function effective(
  name: string,
  setting: Setting,
  { environment, sources }: { readonly environment: Environment; readonly sources: Sources },
): EffectiveSetting {
  const { group, doc, secret: isSecret = false } = setting;
  const isGiven = isSet(environment, name);
  const source = isGiven ? sources.get(name) ?? "environment" : "default";
  const value = isGiven ? environment[name] : setting.default;
  return {
    name,
    group,
    source,
    isSecret,
    doc: plainMarkdown(doc),
    ...isSecret || value === undefined ? {} : { value },
    ...value === undefined ? { whenUnset: plainMarkdown(defaultText(setting)) } : {},
  };
}
