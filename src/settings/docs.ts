import { GROUPS, type Setting, type SettingGroup } from "./setting.ts";
import { settingEntries, type SettingName } from "./table.ts";

const START = "<!-- settings -->";
const END = "<!-- /settings -->";

/** The settings as Markdown: a heading and a table for each group. */
export function settingsTable(): string {
  return GROUPS.map((group) => {
    const rows = entriesOf(group).map(([name, setting]) =>
      `| \`${name}\` | ${cell(defaultCell(setting))} | ${cell(setting.doc)} |`
    );
    return [`### ${group}`, "", "| Variable | Default | Meaning |", "| --- | --- | --- |", ...rows].join(
      "\n",
    );
  }).join("\n\n");
}

/** The settings as plain text for `weir help`. */
export function settingsHelp(): string {
  return GROUPS.map((group) => {
    const entries = entriesOf(group).map(([name, setting]) =>
      `  ${name} (${plain(defaultText(setting))})\n      ${plain(setting.doc)}`
    );
    return [`${group}:`, ...entries].join("\n");
  }).join("\n\n");
}

/**
 * The text with the table of settings between its two marker comments, in place of what stood there.
 * Throws when a marker is missing. The formatter is kept away from the table: it would pad its columns.
 */
export function withSettingsTable(markdown: string): string {
  const start = markdown.indexOf(START);
  const end = markdown.indexOf(END);
  if (start < 0 || end < start) {
    throw new Error(`Cannot write the table of settings: expected "${START}" before "${END}"`);
  }
  const section = ["<!-- deno-fmt-ignore-start -->", settingsTable(), "<!-- deno-fmt-ignore-end -->"];
  return `${markdown.slice(0, start + START.length)}\n\n${section.join("\n\n")}\n\n${markdown.slice(end)}`;
}

function entriesOf(group: SettingGroup): readonly (readonly [SettingName, Setting])[] {
  return settingEntries().filter(([, setting]) => setting.group === group);
}

function defaultText(setting: Setting): string {
  if (setting.default === undefined) return setting.whenUnset ?? "unset";
  return setting.default === "" ? "empty" : `\`${setting.default}\``;
}

function defaultCell(setting: Setting): string {
  return setting.default === undefined
    ? `unset${setting.whenUnset === undefined ? "" : `: ${setting.whenUnset}`}`
    : defaultText(setting);
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

function plain(text: string): string {
  return text.replaceAll("`", "");
}
