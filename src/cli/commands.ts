import { systemClock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { administrationCommands } from "./administration.ts";
import { GROUPS } from "./administration_commands.ts";
import { BENCH_COMMAND } from "./bench.ts";
import { CHECK_COMMAND } from "./check.ts";
import { CLIENT_COMMAND } from "./client.ts";
import {
  type Command,
  CommandError,
  type CommandOptions,
  type DocumentedCommands,
  readCommand,
  type RunnableCommand,
  usageHint,
  usageOf,
} from "./command.ts";
import { completionTable, SHELLS } from "./completion_table.ts";
import { bashScript } from "./completions_bash.ts";
import { fishScript } from "./completions_fish.ts";
import { zshScript } from "./completions_zsh.ts";
import { EXPLAIN_COMMAND } from "./explain.ts";
import { FlagError } from "./flags.ts";
import { HEALTH_COMMAND } from "./health.ts";
import { firstSteps, groupUsage, helpText, unknownMember, unknownText } from "./help.ts";
import { OUTPUT_FORMATS, printerOf } from "./output_format.ts";
import { SETTINGS_CHECK_COMMAND } from "./settings_check.ts";
import { SETTINGS_TRANSLATE_COMMAND } from "./settings_translate.ts";
import { SIMULATE_COMMAND } from "./simulate.ts";
import { STORE_COMMANDS } from "./store.ts";
import { LISTEN_COMMAND } from "./webhooks_listen.ts";
import { VERIFY_COMMAND } from "./webhooks_verify.ts";
import { WORKFLOWS_CHECK_COMMAND } from "./workflows_check.ts";

const EXIT = { failed: 1, usage: 2 } as const;
const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript };
const HELP_WORDS = ["-h", "--h", "-help", "--help"];

/** The groups of commands, in the order of the documentation. */
const GROUP_DOCS: Readonly<Record<string, string>> = {
  ...GROUPS,
  settings: "settings of the service",
  webhooks: "tools for receivers of deliveries",
  store: "maintenance of the database of the webhook service",
};

const SERVE_COMMAND: RunnableCommand = {
  command: {
    words: "serve",
    args: [],
    doc: "start the service (the default)",
    flags: {},
    notes: 'Settings are environment variables; "weir help settings" lists them.',
  },
  run: () => Promise.reject(new FlagError('Cannot run "serve" with flags')),
};

const COMPLETIONS_COMMAND: RunnableCommand = {
  command: {
    words: "completions",
    args: ["SHELL"],
    doc: "print the completions of a shell: bash, zsh or fish",
    flags: {},
    notes: "The output is a script; its first lines show how to load it.",
  },
  run({ args: [given = ""] }, { output }) {
    const shell = SHELLS.find((one) => one === given);
    if (shell === undefined) throw new FlagError(`Invalid SHELL "${given}": expected bash, zsh or fish`);
    output.stdout(SCRIPTS[shell](completionTable(documentedCommands())));
    return Promise.resolve(0);
  },
};

const LONE_COMMANDS: readonly RunnableCommand[] = [
  SERVE_COMMAND,
  CLIENT_COMMAND,
  CHECK_COMMAND,
  EXPLAIN_COMMAND,
  SIMULATE_COMMAND,
  HEALTH_COMMAND,
  BENCH_COMMAND,
  COMPLETIONS_COMMAND,
];

/** Commands that are read before all others. */
const WORD_COMMANDS: readonly Command[] = [
  { words: "help", args: ["[COMMAND]"], doc: "show all commands, or the usage of one command", flags: {} },
  { words: "help settings", args: ["[NAME]"], doc: "show all settings, or one setting", flags: {} },
  { words: "version", args: [], doc: "show the version", flags: {} },
];

const COMMANDS: readonly RunnableCommand[] = [
  ...LONE_COMMANDS,
  ...administrationCommands(),
  WORKFLOWS_CHECK_COMMAND,
  SETTINGS_CHECK_COMMAND,
  SETTINGS_TRANSLATE_COMMAND,
  VERIFY_COMMAND,
  LISTEN_COMMAND,
  ...STORE_COMMANDS,
];

/** The options of `runCommand`. */
type RunOptions = Partial<CommandOptions> & {
  readonly environment: CommandOptions["environment"];
  readonly output: CommandOptions["output"];
  readonly version?: string;
};

/**
 * Runs the command that the arguments name, and returns its exit code: 0 fine, 1 refused or failed, 2 wrong usage.
 * Prints a failure as one line.
 */
export async function runCommand(args: readonly string[], options: RunOptions): Promise<number> {
  const { output, version = "" } = options;
  if (args.length === 0) {
    output.stderr(firstSteps(version));
    return EXIT.usage;
  }
  if (args[0] === "help" || HELP_WORDS.includes(args[0] ?? "")) {
    const text = helpText(args.slice(1), documentedCommands(), version);
    if (text !== undefined) output.stdout(text);
    else output.stderr(unknownText(args.slice(1), documentedCommands()));
    return text === undefined ? EXIT.usage : 0;
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
    printerOf(given.flags, output, command.formats ?? OUTPUT_FORMATS);
    const defaults = { clock: systemClock, stdin: () => Deno.stdin.readable };
    return await found.runnable.run(given, { ...defaults, ...options });
  } catch (error) {
    if (error instanceof FlagError) {
      output.stderr(`${error.message}\n${usageHint(command)}`);
      return EXIT.usage;
    }
    const isKnown = error instanceof CommandError;
    output.stderr(isKnown ? error.message : `Cannot run "${command.words}": ${errorText(error)}`);
    return isKnown && error.isUsage ? EXIT.usage : EXIT.failed;
  }
}

/** Every command, for help and documentation: those without a group first. */
export function documentedCommands(): DocumentedCommands {
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

function findCommand(
  args: readonly string[],
): { runnable: RunnableCommand; rest: readonly string[] } | undefined {
  for (const length of [2, 1]) {
    const words = args.slice(0, length).join(" ");
    const runnable = COMMANDS.find(({ command }) => isNamed(command, words));
    if (runnable !== undefined) return { runnable, rest: args.slice(length) };
  }
  return undefined;
}

function isNamed({ words, aliases = [] }: Command, given: string): boolean {
  return words === given || aliases.includes(given);
}

function unknownCommand(args: readonly string[], { output }: RunOptions): number {
  const [word = "", action] = args;
  const group = documentedCommands().groups.find(({ name }) => name === word);
  if (group === undefined) {
    output.stderr(unknownText(args, documentedCommands()));
    return EXIT.usage;
  }
  if (action !== undefined && HELP_WORDS.includes(action)) {
    output.stdout(groupUsage(group));
    return 0;
  }
  output.stderr(unknownMember(group, action));
  return EXIT.usage;
}
