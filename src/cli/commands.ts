import { systemClock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { CHECK_COMMAND } from "./check.ts";
import { administrationCommands } from "./administration.ts";
import { GROUPS } from "./administration_table.ts";
import { callOf, readCommand, type RunnableCommand, sentenceOf, usageOf } from "./command.ts";
import { CommandError, type CommandOptions } from "./command_input.ts";
import { EXPLAIN_COMMAND } from "./explain.ts";
import { FlagError } from "./flags.ts";
import { HEALTH_COMMAND } from "./health.ts";
import { SIMULATE_COMMAND } from "./simulate.ts";
import { STORE_COMMANDS } from "./store.ts";
import { WEBHOOKS_COMMANDS } from "./webhooks.ts";

const EXIT = { failed: 1, usage: 2 } as const;

/** What each group is about; the order of the documentation. */
const GROUP_DOCS: Readonly<Record<string, string>> = {
  ...GROUPS,
  webhooks: "the receiver's side",
  store: "the database file of the webhook service",
};

/** Commands that stand alone. */
const LONE_COMMANDS: readonly RunnableCommand[] = [
  CHECK_COMMAND,
  EXPLAIN_COMMAND,
  SIMULATE_COMMAND,
  HEALTH_COMMAND,
];

const COMMANDS: readonly RunnableCommand[] = [
  ...LONE_COMMANDS,
  ...administrationCommands(),
  ...WEBHOOKS_COMMANDS,
  ...STORE_COMMANDS,
];

/** Whether a word begins one of these commands. */
export function isCommandGroup(word: string): boolean {
  return Object.hasOwn(GROUP_DOCS, word) || LONE_COMMANDS.some(({ command }) => command.words === word);
}

/**
 * Runs the command that the arguments name and answers its exit code: 0 fine, 1 refused or failed, 2 wrong usage. What
 * is wrong is told in one line.
 */
export async function runCommand(
  args: readonly string[],
  options: Partial<CommandOptions> & Pick<CommandOptions, "environment" | "output">,
): Promise<number> {
  const { output } = options;
  const found = findCommand(args);
  if (found === undefined) return unknownCommand(args, options);
  const { command } = found.runnable;
  try {
    const given = readCommand(command, found.rest);
    if (given === undefined) {
      output.stdout(usageOf(command));
      return 0;
    }
    return await found.runnable.run(given, {
      clock: systemClock,
      stdin: () => Deno.stdin.readable,
      ...options,
    });
  } catch (error) {
    if (error instanceof FlagError) {
      output.stderr(`${error.message}\n\n${usageOf(command)}`);
      return EXIT.usage;
    }
    const isKnown = error instanceof CommandError;
    output.stderr(isKnown ? error.message : `Cannot run "${command.words}": ${errorText(error)}`);
    return isKnown && error.isUsage ? EXIT.usage : EXIT.failed;
  }
}

/** The groups of these commands, one a line, each with what can be done in it. */
export function groupLines(): string[] {
  const width = Math.max(...Object.keys(GROUP_DOCS).map((name) => name.length));
  return Object.entries(GROUP_DOCS).map(([name, doc]) => {
    const actions = membersOf(name).map(({ command }) => command.words.slice(name.length + 1));
    const list = actions.join("") === "" ? "" : `: ${actions.join(", ")}`;
    return `  weir ${name.padEnd(width)}  ${doc}${list}`;
  });
}

/** The usage of a group, or of the one command of it that the arguments name. */
export function usageFor(args: readonly string[]): string {
  const found = findCommand(args);
  return found === undefined ? groupUsage(args[0] ?? "") : usageOf(found.runnable.command);
}

/** Every command as Markdown: a table for each group. */
export function commandsMarkdown(): string {
  return Object.entries(GROUP_DOCS).map(([name, doc]) => {
    const rows = membersOf(name).map(({ command }) => {
      const flags = Object.keys(command.flags).filter((flag) => !isShared(flag)).map((flag) =>
        `\`--${flag}\``
      );
      return `| \`weir ${callOf(command)}\` | ${cell(sentenceOf(command.doc))} | ${flags.join(" ")} |`;
    });
    return [`**${name}**: ${doc}`, "", "| Command | What it does | Flags |", "| --- | --- | --- |", ...rows]
      .join("\n");
  }).join("\n\n");
}

function membersOf(group: string): RunnableCommand[] {
  return COMMANDS.filter(({ command }) => command.words.split(" ")[0] === group);
}

/** Flags that every command over the administration has: documented once. */
function isShared(flag: string): boolean {
  return ["url", "token-file", "timeout", "json"].includes(flag);
}

function findCommand(
  args: readonly string[],
): { runnable: RunnableCommand; rest: readonly string[] } | undefined {
  for (const length of [2, 1]) {
    const words = args.slice(0, length).join(" ");
    const runnable = COMMANDS.find(({ command }) => command.words === words);
    if (runnable !== undefined) return { runnable, rest: args.slice(length) };
  }
  return undefined;
}

function unknownCommand(
  [group = "", action]: readonly string[],
  { output }: Pick<CommandOptions, "output">,
): number {
  if (action !== undefined && ["-h", "--h", "-help", "--help"].includes(action)) {
    output.stdout(groupUsage(group));
    return 0;
  }
  const problem = action === undefined
    ? `Cannot run "${group}": what to do is missing`
    : `Cannot run "${group} ${action}": there is no such command`;
  output.stderr(`${problem}\n\n${groupUsage(group)}`);
  return EXIT.usage;
}

function groupUsage(group: string): string {
  const members = membersOf(group);
  const width = Math.max(0, ...members.map(({ command }) => callOf(command).length));
  const rows = members.map(({ command }) => `  weir ${callOf(command).padEnd(width)}  ${command.doc}`);
  return [`usage: weir ${group} COMMAND [flags]`, "", ...rows, "", "Each has a --help of its own."].join(
    "\n",
  );
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
