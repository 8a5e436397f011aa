import { fileVariable } from "./secret_files.ts";
import { GROUPS, type Setting, type SettingGroup } from "./setting.ts";
import { settingEntries, type SettingName } from "./table.ts";

/** The settings of one group of the documentation. */
export interface DocumentedGroup {
  readonly group: SettingGroup;
  readonly entries: readonly (readonly [SettingName, Setting])[];
}

/** Every group with its settings, in the order of the documentation. */
export function settingGroups(): readonly DocumentedGroup[] {
  return GROUPS.map((group) => ({
    group,
    entries: settingEntries().filter(([, setting]) => setting.group === group).map(withFile),
  }));
}

/** A setting whose text also names the variable of its file. */
function withFile([name, setting]: readonly [SettingName, Setting]): readonly [SettingName, Setting] {
  const file = fileVariable(name);
  return file === undefined
    ? [name, setting]
    : [name, { ...setting, doc: `${setting.doc} ${fileText(file)}` }];
}

function fileText(variable: string): string {
  return `\`${variable}\` names a file with the value instead.`;
}

/** The settings as plain text for `weir help`. */
export function settingsHelp(): string {
  return settingGroups().map(({ group, entries }) => {
    const texts = entries.map(([name, setting]) =>
      `  ${name} (${plain(defaultText(setting))})\n      ${plain(setting.doc)}`
    );
    return [`${group}:`, ...texts].join("\n");
  }).join("\n\n");
}

/** The default, or the behaviour without a value, in Markdown. */
export function defaultText(setting: Setting): string {
  if (setting.default === undefined) return setting.whenUnset ?? "unset";
  return setting.default === "" ? "empty" : `\`${setting.default}\``;
}

function plain(text: string): string {
  return text.replaceAll("`", "");
}
