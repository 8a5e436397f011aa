import { systemClock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { settingsHelp } from "../settings/docs.ts";
import { administrationCommands } from "./administration.ts";
import { GROUPS } from "./administration_table.ts";
import { BENCH_COMMAND } from "./bench.ts";
import { CHECK_COMMAND } from "./check.ts";
import { CLIENT_COMMAND } from "./client.ts";
import {
  callOf,
  type Command,
  CommandError,
  type CommandOptions,
  readCommand,
  type RunnableCommand,
  usageOf,
} from "./command.ts";
import { EXPLAIN_COMMAND } from "./explain.ts";
import { FlagError } from "./flags.ts";
import { HEALTH_COMMAND } from "./health.ts";
import { printerOf } from "./output_format.ts";
import { SIMULATE_COMMAND } from "./simulate.ts";
import { STORE_COMMANDS } from "./store.ts";
import { LISTEN_COMMAND } from "./webhooks_listen.ts";
import { VERIFY_COMMAND } from "./webhooks_verify.ts";
import { WORKFLOWS_CHECK_COMMAND } from "./workflows_check.ts";

const EXIT = { failed: 1, usage: 2 } as const;
const HELP_WORDS = ["-h", "--h", "-help", "--help"];

/** The groups of commands, in the order of the documentation. */
const GROUP_DOCS: Readonly<Record<string, string>> = {
  ...GROUPS,
  webhooks: "tools for receivers of deliveries",
  store: "maintenance of the database of the webhook service",
};

const SERVE_COMMAND: RunnableCommand = {
  command: {
    words: "serve",
    args: [],
    doc: "start the service (the default)",
    flags: {},
    notes: 'Settings are environment variables; "weir help" lists them.',
  },
  run: () => Promise.reject(new FlagError('Cannot run "serve" with flags')),
};

const LONE_COMMANDS: readonly RunnableCommand[] = [
  SERVE_COMMAND,
  CLIENT_COMMAND,
  CHECK_COMMAND,
  EXPLAIN_COMMAND,
  SIMULATE_COMMAND,
  HEALTH_COMMAND,
  BENCH_COMMAND,
];

/** Commands that are read before all others. */
const WORD_COMMANDS: readonly Command[] = [
  { words: "help", args: [], doc: "show all commands and settings", flags: {} },
  { words: "version", args: [], doc: "show the version", flags: {} },
];

const COMMANDS: readonly RunnableCommand[] = [
  ...LONE_COMMANDS,
  ...administrationCommands(),
  WORKFLOWS_CHECK_COMMAND,
  VERIFY_COMMAND,
  LISTEN_COMMAND,
  ...STORE_COMMANDS,
];

/** The options of `runCommand`. */
export type RunOptions = Partial<CommandOptions> & Pick<CommandOptions, "environment" | "output"> & {
  readonly version?: string;
};

/**
 * Runs the command that the arguments name, and returns its exit code: 0 fine, 1 refused or failed, 2 wrong usage.
 * Prints a failure as one line.
 */
export async function runCommand(args: readonly string[], options: RunOptions): Promise<number> {
  const { output, version = "" } = options;
  if (args[0] === "help" || HELP_WORDS.includes(args[0] ?? "")) {
    output.stdout(helpText(args.slice(1), version));
    return 0;
  }
  const found = findCommand(args);
  if (found === undefined) return unknownCommand(args, options);
  const { command } = found.runnable;
  try {
    const given = readCommand(command, found.rest);
    if (given === undefined) {
      output.stdout(usageOf(command));
      return 0;
    }
    // A wrong format is refused before a command has an effect.
    printerOf(given.flags, output);
    const defaults = { clock: systemClock, stdin: () => Deno.stdin.readable };
    return await found.runnable.run(given, { ...defaults, ...options });
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

/** The usage of the command or group that the arguments name; else all commands and every setting. */
export function helpText(args: readonly string[], version: string): string {
  const found = findCommand(args);
  if (found !== undefined) return usageOf(found.runnable.command);
  const [group = ""] = args;
  if (isGroup(group)) return groupUsage(group);
  return `${commandsText(version)}\n\nSettings are environment variables:\n\n${settingsHelp()}`;
}

/** All commands. */
export function commandsText(version: string): string {
  const rows = documentedCommands().lone.map((command) => [callOf(command), command.doc] as const);
  const width = Math.max(...rows.map(([call]) => call.length));
  return [
    `weir ${version}: a rate limit decision service and a workflow webhook service`,
    "",
    ...rows.map(([call, doc]) => `  weir ${call.padEnd(width)}  ${doc}`),
    "",
    "Commands that call the administration API at WEIR_URL with the token ADMIN_TOKEN;",
    '"webhooks", "store" and "workflows check" do not call the service:',
    "",
    ...groupLines(),
    "",
    'Every command has --help; "weir help COMMAND" shows the same. Flags start with one dash or two.',
  ].join("\n");
}

/** A line for each group with its commands. */
export function groupLines(): string[] {
  const width = Math.max(...Object.keys(GROUP_DOCS).map((name) => name.length));
  return Object.entries(GROUP_DOCS).map(([name, doc]) => {
    const actions = membersOf(name).map(({ command }) => command.words.slice(name.length + 1));
    const list = actions.join("") === "" ? "" : `: ${actions.join(", ")}`;
    return `  weir ${name.padEnd(width)}  ${doc}${list}`;
  });
}

/** A group of commands, for the documentation. */
export interface CommandGroup {
  readonly name: string;
  readonly doc: string;
  readonly commands: readonly Command[];
}

/** Every command, for the documentation: those without a group first. */
export function documentedCommands(): {
  readonly lone: readonly Command[];
  readonly groups: readonly CommandGroup[];
} {
  return {
    lone: [...LONE_COMMANDS.map(({ command }) => command), ...WORD_COMMANDS],
    groups: Object.entries(GROUP_DOCS).map(([name, doc]) => {
      return { name, doc, commands: membersOf(name).map(({ command }) => command) };
    }),
  };
}

function membersOf(group: string): RunnableCommand[] {
  return COMMANDS.filter(({ command }) => command.words.split(" ")[0] === group);
}

function isGroup(word: string): boolean {
  return Object.hasOwn(GROUP_DOCS, word);
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
  [word = "", action]: readonly string[],
  { output, version = "" }: RunOptions,
): number {
  if (!isGroup(word)) {
    output.stderr(`Unknown command "${word}"\n\n${commandsText(version)}`);
    return EXIT.usage;
  }
  if (action !== undefined && HELP_WORDS.includes(action)) {
    output.stdout(groupUsage(word));
    return 0;
  }
  const problem = action === undefined
    ? `Cannot run "${word}": the command is missing`
    : `Unknown command "${word} ${action}"`;
  output.stderr(`${problem}\n\n${groupUsage(word)}`);
  return EXIT.usage;
}

function groupUsage(group: string): string {
  const members = membersOf(group);
  const width = Math.max(0, ...members.map(({ command }) => callOf(command).length));
  const rows = members.map(({ command }) => `  weir ${callOf(command).padEnd(width)}  ${command.doc}`);
  return [`usage: weir ${group} COMMAND [flags]`, "", ...rows, "", "Every command has --help."].join("\n");
}
