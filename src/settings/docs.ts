import { GROUPS, type Setting, type SettingGroup } from "./setting.ts";
import { settingEntries, type SettingName } from "./table.ts";

const START = "<!-- settings -->";
const END = "<!-- /settings -->";

/** The settings as Markdown: a heading and a table for each group. */
export function settingsTable(): string {
  return GROUPS.map((group) => {
    const rows = entriesOf(group).map(([name, setting]) =>
      `| \`${name}\` | ${cell(defaultCell(setting))} | ${cell(sentence(setting))} |`
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
      `  ${name} (${plain(defaultText(setting))})\n      ${plain(sentence(setting))}`
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
    throw new Error(`Cannot write the table of settings: "${START}" before "${END}" would be right`);
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

/** The doc sentence, and whether it is still to come. */
function sentence({ comesWith, doc }: Setting): string {
  return comesWith === undefined ? doc : `${doc} Not built yet (comes with a later release).`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

function plain(text: string): string {
  return text.replaceAll("`", "");
}
