import type { CommandOptions } from "./command_input.ts";
import { asksForHelp, FlagError, type FlagKind, HELP_FLAGS, parseFlags } from "./flags.ts";

/** A flag of a command. */
export interface CommandFlag {
  /** What stands for its value in the usage; absent for a flag that is said or not. */
  readonly value?: string | undefined;
  /** Whether it may be given several times; else the last one counts. */
  readonly repeated?: boolean | undefined;
  readonly doc: string;
}

/** A command as data: its help text, how it is read and its row in the documentation come from here. */
export interface Command {
  /** Such as `endpoints add`. */
  readonly words: string;
  /** Names of the arguments that have to stand there, such as `ID`. */
  readonly args: readonly string[];
  /** What it does, beginning with a verb. */
  readonly doc: string;
  readonly flags: Readonly<Record<string, CommandFlag>>;
  /** What is to be known beside, shown below the flags. */
  readonly notes?: string | undefined;
}

/** What a command line said; every argument of the command is there. */
export interface GivenCommand {
  readonly args: readonly string[];
  readonly flags: GivenFlags;
}

/** A command and what it does; `run` answers the exit code. */
export interface RunnableCommand {
  readonly command: Command;
  run(given: GivenCommand, options: CommandOptions): Promise<number>;
}

/** The flags that were given. */
export class GivenFlags {
  readonly #flags: Readonly<Record<string, string | boolean | string[] | undefined>>;

  constructor(flags: Readonly<Record<string, string | boolean | string[] | undefined>>) {
    this.#flags = flags;
  }

  /** The value of a flag; nothing when it was not given. */
  text(name: string): string | undefined {
    const value = this.#flags[name];
    return typeof value === "string" ? value : undefined;
  }

  /** Every value of a flag that may be repeated. */
  texts(name: string): readonly string[] {
    const value = this.#flags[name];
    return Array.isArray(value) ? value : [];
  }

  /** What was said of a flag without a value; nothing when it was not given. */
  said(name: string): boolean | undefined {
    const value = this.#flags[name];
    return typeof value === "boolean" ? value : undefined;
  }
}

/**
 * Reads what stands behind the words of a command; nothing when its help is asked for. Throws a `FlagError` for a
 * flag it does not have, and for arguments that are missing, empty or too many.
 */
export function readCommand(command: Command, args: readonly string[]): GivenCommand | undefined {
  const { flags, rest } = parseFlags(args, { ...flagKinds(command), ...HELP_FLAGS });
  if (asksForHelp(flags)) return undefined;
  const missing = command.args.find((_, index) => (rest[index] ?? "") === "");
  if (missing !== undefined) throw new FlagError(`Cannot run "${command.words}": ${missing} is missing`);
  // What is too much is not shown: it may be a secret whose flag was forgotten.
  if (rest.length > command.args.length) {
    throw new FlagError(
      `Cannot run "${command.words}": it is called as "weir ${callOf(command)}", with flags`,
    );
  }
  return { args: rest, flags: new GivenFlags(flags) };
}

/** The usage of a command: one line, what it does, its flags. */
export function usageOf(command: Command): string {
  const all: Readonly<Record<string, CommandFlag>> = { ...command.flags, help: { doc: "this text" } };
  const rows = Object.entries(all)
    .map(([name, flag]) => [`--${name}${flag.value === undefined ? "" : ` ${flag.value}`}`, flag] as const);
  const width = Math.max(...rows.map(([left]) => left.length));
  const flags = rows.map(([left, { doc, repeated }]) => {
    return `  ${left.padEnd(width)}  ${doc}${repeated === true ? "; may be repeated" : ""}`;
  });
  const notes = command.notes === undefined ? [] : ["", command.notes];
  return [`usage: weir ${callOf(command)} [flags]`, "", sentenceOf(command.doc), "", ...flags, ...notes].join(
    "\n",
  );
}

/** The words of a command and its arguments. */
export function callOf({ words, args }: Command): string {
  return [words, ...args].join(" ");
}

/** A doc as a sentence: with a capital letter and a period. */
export function sentenceOf(doc: string): string {
  return `${doc.charAt(0).toUpperCase()}${doc.slice(1)}.`;
}

function flagKinds(command: Command): Record<string, FlagKind> {
  return Object.fromEntries(
    Object.entries(command.flags).map(([name, { value, repeated }]) => {
      const kind: FlagKind = value === undefined ? "boolean" : repeated === true ? "strings" : "string";
      return [name, kind];
    }),
  );
}
