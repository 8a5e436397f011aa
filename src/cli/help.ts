import { settingHelp, settingsHelp } from "../settings/docs.ts";
import { settingEntries } from "../settings/table.ts";
import { callOf, type Command, type CommandGroup, type DocumentedCommands, usageOf } from "./command.ts";
import { nearestName } from "./flags.ts";

/** The output of `weir help` for these words; undefined for an unknown command or setting. */
export function helpText(
  words: readonly string[],
  table: DocumentedCommands,
  version: string,
): string | undefined {
  const [first, second] = words;
  if (first === undefined) return commandsText(table, version);
  const command = commandOf(words, table);
  if (command !== undefined) return usageOf(command);
  if (first === "settings") return second === undefined ? settingsText() : settingHelp(second.toUpperCase());
  const group = table.groups.find(({ name }) => name === first);
  return group && groupUsage(group);
}

/** The text for people who run the program without a command and without any setting. */
export function firstSteps(version: string): string {
  return [
    titleOf(version),
    "",
    "Nothing to start: no setting is in the environment. To serve the rules of a folder, with counters in memory:",
    "",
    "  mkdir -p data/config",
    "  BACKEND_TYPE=memory USE_STATSD=false RUNTIME_ROOT=. RUNTIME_SUBDIRECTORY=data weir serve",
    "",
    '"weir serve" alone starts with the default of each setting. "weir help" lists all commands,',
    'and "weir help settings" all settings.',
  ].join("\n");
}

function titleOf(version: string): string {
  return `weir ${version}: a rate limit decision service and a workflow webhook service`;
}

/** A line for people whose words name neither a command nor a setting. */
export function unknownText(words: readonly string[], table: DocumentedCommands): string {
  const [first = "", second] = words;
  if (first === "settings" && second !== undefined) {
    const nearest = nearestName(second.toUpperCase(), settingEntries().map(([name]) => name));
    return `Unknown setting "${second}"${advice(nearest)}\nRun "weir help settings" to list all settings`;
  }
  // Nothing follows it.
  if (first === "version") {
    return `Cannot run "version": expected "weir version"\nRun "weir help" to list all commands`;
  }
  const names = [...table.lone.map(({ words }) => words), ...table.groups.map(({ name }) => name)];
  const nearest = nearestName(first, names);
  return `Unknown command "${first}"${advice(nearest)}\nRun "weir help" to list all commands`;
}

/** Two lines for people whose words name a group without one of its commands. */
export function unknownMember({ name, commands }: CommandGroup, action: string | undefined): string {
  const actions = commands.map(({ words }) => words.slice(name.length + 1));
  const problem = action === undefined
    ? `Cannot run "${name}": the command is missing`
    : `Unknown command "${name} ${action}"${advice(nearestName(action, actions))}`;
  return `${problem}\nRun "weir ${name} --help" to list its commands`;
}

/** All commands, one line each. */
function commandsText({ lone, groups }: DocumentedCommands, version: string): string {
  const calls = [...lone, ...groups.flatMap(({ commands }) => commands)].map(callOf);
  const width = Math.max(...calls.map((call) => call.length));
  const lines = (commands: readonly Command[]) => commandLines(commands, width);
  return [
    titleOf(version),
    "",
    "usage: weir COMMAND [flags]",
    "",
    ...lines(lone),
    "",
    ...groups.flatMap(({ doc, commands }) => [`${capitalized(doc)}:`, ...lines(commands), ""]),
    '"weir help COMMAND" and "weir COMMAND --help" show the flags of a command.',
  ].join("\n");
}

/** The commands of a group. */
export function groupUsage({ name, commands }: CommandGroup): string {
  const width = Math.max(0, ...commands.map((command) => callOf(command).length));
  const lines = commandLines(commands, width);
  return [`usage: weir ${name} COMMAND [flags]`, "", ...lines, "", "Every command has --help."].join("\n");
}

function settingsText(): string {
  return `Settings are environment variables:\n\n${settingsHelp()}`;
}

function commandOf(words: readonly string[], { lone, groups }: DocumentedCommands): Command | undefined {
  const all = [...lone, ...groups.flatMap(({ commands }) => commands)].filter(({ words }) =>
    words !== "help settings"
  );
  return [2, 1].map((length) => words.slice(0, length).join(" "))
    .flatMap((given) => all.find((command) => command.words === given) ?? [])[0];
}

function commandLines(commands: readonly Command[], width: number): string[] {
  return commands.map((command) => `  weir ${callOf(command).padEnd(width)}  ${command.doc}`);
}

function advice(nearest: string | undefined): string {
  return nearest === undefined ? "" : `; did you mean ${nearest}?`;
}

function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
