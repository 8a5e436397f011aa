import { defaultText, plainMarkdown } from "./docs.ts";
import { type Environment, isSet, type Setting } from "./setting.ts";
import { familyPattern, settingEntries } from "./table.ts";

/** In place of the credentials in an address. */
const CREDENTIALS = "***";

/** A setting as an operator may see it. */
export interface EffectiveSetting {
  /** The variable; a family without variables has its placeholder. */
  readonly name: string;
  readonly group: string;
  /** The text of the value, with `***` for the credentials in an address; absent without one, and for a secret. */
  readonly value?: string;
  /** `default`, `environment`, or the variable that names the file of the value. */
  readonly source: string;
  /** The behaviour without a value, if there is none. */
  readonly whenUnset?: string;
  /** True if the value, or a part of it, is not shown. */
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
  const { group, doc } = setting;
  const isGiven = isSet(environment, name);
  const source = isGiven ? sources.get(name) ?? "environment" : "default";
  const text = isGiven ? environment[name] : setting.default;
  const value = text === undefined ? undefined : shownValue(text, setting);
  const isSecret = setting.secret === true && (setting.isAddress !== true || value !== text);
  return {
    name,
    group,
    source,
    isSecret,
    doc: plainMarkdown(doc),
    ...value === undefined ? {} : { value },
    ...text === undefined ? { whenUnset: plainMarkdown(defaultText(setting)) } : {},
  };
}

/** A value without its secrets; undefined where nothing of it may be shown. */
function shownValue(text: string, { secret, isAddress, parse }: Setting): string | undefined {
  if (secret === undefined) return text;
  // What cannot be read may have its secret anywhere.
  if (isAddress === undefined || "expected" in parse(text)) return undefined;
  const at = text.lastIndexOf("@");
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0] ?? "";
  const shown = at < 0 ? text : `${scheme}${CREDENTIALS}${text.slice(at)}`;
  return shown.replace(/\?.*/s, `?${CREDENTIALS}`);
}
