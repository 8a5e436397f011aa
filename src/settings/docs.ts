import { suppliedByAlias } from "./aliases.ts";
import { fileVariable } from "./secret_files.ts";
import { GROUPS, type Setting, type SettingGroup } from "./setting.ts";
import { familyPattern, settingEntries, type SettingName } from "./table.ts";

/** The settings of one group of the documentation. */
interface DocumentedGroup {
  readonly group: SettingGroup;
  readonly entries: readonly (readonly [SettingName, Setting])[];
}

/** Every group with its settings, in the order of the documentation. */
export function settingGroups(): readonly DocumentedGroup[] {
  return GROUPS.map((group) => ({
    group,
    entries: settingEntries().filter(([, setting]) => setting.group === group).map(withFurtherNames),
  }));
}

/** A setting whose text also names the variable of its file, and its aliases. */
function withFurtherNames([name, setting]: readonly [SettingName, Setting]): readonly [SettingName, Setting] {
  const file = fileVariable(name);
  const [alias] = setting.aliases ?? [];
  const texts = [
    setting.doc,
    ...alias === undefined ? [] : [`Alias: \`${alias}\`.`],
    ...file === undefined ? [] : [`\`${file}\` names a file with the value instead.`],
  ];
  return [name, { ...setting, doc: texts.join(" ") }];
}

/** The settings as plain text for `weir help settings`. */
export function settingsHelp(): string {
  return settingGroups().map(({ group, entries }) => {
    const texts = entries.map((entry) => entryText(entry).replaceAll(/^/gm, "  "));
    return [`${group}:`, ...texts].join("\n");
  }).join("\n\n");
}

/** One setting as plain text, by its name, an alias, or a variable of its family; undefined for another name. */
export function settingHelp(variable: string): string | undefined {
  const name = suppliedByAlias(variable) ?? variable;
  const found = settingGroups().flatMap(({ entries }) => entries)
    .find(([known]) => known === name || familyPattern(known)?.test(name) === true);
  return found && entryText(found);
}

function entryText([name, setting]: readonly [SettingName, Setting]): string {
  return `${name} (${plainMarkdown(defaultText(setting))})\n    ${plainMarkdown(setting.doc)}`;
}

/** The default, or the behaviour without a value, in Markdown. */
export function defaultText(setting: Setting): string {
  if (setting.default === undefined) return setting.whenUnset ?? "unset";
  return setting.default === "" ? "empty" : `\`${setting.default}\``;
}

/** A text of the table without its Markdown. */
export function plainMarkdown(text: string): string {
  return text.replaceAll("`", "");
}
