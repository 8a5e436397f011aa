import { collectBytes, strictText } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { type Entry, parseDescriptorText } from "../ratelimit/request.ts";
import type { Environment } from "../settings/read_settings.ts";
import type { Parser } from "../settings/setting.ts";
import { secretValue } from "../settings/secret_files.ts";
import { EXAMPLES } from "./examples.ts";
import {
  asksForHelp,
  FlagError,
  type FlagKind,
  HELP_FLAGS,
  type ParsedFlags,
  parseFlags,
  readFlag,
} from "./flags.ts";

/** The output of a command: whole lines, each without its line break. */
export interface Output {
  stdout(line: string): void;
  stderr(line: string): void;
  /** Replaces the last line of a terminal; an empty text removes it. Absent where standard error is no terminal. */
  readonly status?: ((text: string) => void) | undefined;
  /** Replaces what the terminal shows by these lines; absent where standard output is no terminal. */
  readonly screen?: ((lines: readonly string[]) => void) | undefined;
  /** Asks the person at the terminal for a line; absent without one. */
  readonly ask?: ((question: string) => string) | undefined;
}

/** The surroundings of a command. */
export interface CommandOptions {
  readonly environment: Environment;
  readonly output: Output;
  readonly clock: Clock;
  /** Standard input; read only when the command line asks for it. */
  readonly stdin: () => ReadableStream<Uint8Array>;
  /** The folder of `data/admin-token`; the working folder when absent. */
  readonly folder?: string | undefined;
  /** Ends a command that runs until it is interrupted; a signal of the process when absent. */
  readonly stop?: AbortSignal | undefined;
}

/** A failure of a command; the message is one line for people and holds no secret. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  /** The command line, or what it names, is wrong: exit code 2 instead of 1. */
  readonly isUsage: boolean;

  constructor(message: string, options: ErrorOptions & { readonly isUsage?: boolean } = {}) {
    super(message, options);
    this.isUsage = options.isUsage ?? false;
  }
}

/** A secret setting of the environment, from its variable or its file; undefined without either. */
export function environmentSecret(environment: Environment, name: string): string | undefined {
  try {
    return secretValue(environment, name);
  } catch (error) {
    throw new FlagError(errorText(error), { cause: error });
  }
}

/** Most bytes that are read from a file or from standard input. */
const MAX_BYTES = 64 * 1_024 * 1_024;

/** The bytes of a file, or of standard input for `-`. */
export async function readBytes(
  path: string,
  options: Pick<CommandOptions, "stdin">,
): Promise<Uint8Array<ArrayBuffer>> {
  if (path === "-") return await collected(options.stdin(), "standard input");
  try {
    const file = await Deno.open(path);
    return await collected(file.readable, path);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`Cannot read "${path}": ${errorText(error)}`, { cause: error, isUsage: true });
  }
}

/** The text of a file, or of standard input for `-`. */
export async function readText(path: string, options: Pick<CommandOptions, "stdin">): Promise<string> {
  const { text } = strictText(await readBytes(path, options), "utf-8");
  if (text === undefined) throw new CommandError(`Cannot read "${path}": not UTF-8`, { isUsage: true });
  return text;
}

/** The lines of a file that are not empty, without the spaces around them. */
export async function readLines(path: string, options: Pick<CommandOptions, "stdin">): Promise<string[]> {
  return (await readText(path, options)).split("\n").map((line) => line.trim()).filter((line) => line !== "");
}

async function collected(stream: ReadableStream<Uint8Array>, name: string): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await collectBytes(stream, MAX_BYTES);
  if (bytes !== undefined) return bytes;
  throw new CommandError(`Cannot read "${name}": longer than ${MAX_BYTES} bytes`, { isUsage: true });
}

/** The exit code where the files of a folder have errors: 1, or 2 where there is no such folder. */
export async function errorsExitCode(folder: string): Promise<1 | 2> {
  const info = await Deno.stat(folder).catch(() => undefined);
  return info?.isDirectory === true ? 1 : 2;
}

/** A value of `--output`. */
type OutputFormat = "table" | "json" | "yaml" | "id";

/** A flag of a command. */
export interface CommandFlag {
  /** The placeholder of its value in the usage; absent for a boolean flag. */
  readonly value?: string | undefined;
  /** It may be repeated; else the last one counts. */
  readonly repeated?: boolean | undefined;
  /** Its name of one letter. */
  readonly short?: string | undefined;
  /** Further names, such as those of earlier releases. */
  readonly aliases?: readonly string[] | undefined;
  readonly doc: string;
}

/** A command as data: the source of its help, its parser and its documentation. */
export interface Command {
  readonly words: string;
  /** Its words in earlier releases. */
  readonly aliases?: readonly string[] | undefined;
  /** Names of the required arguments, such as `ID`. */
  readonly args: readonly string[];
  /** Its effect, in the imperative. */
  readonly doc: string;
  readonly flags: Readonly<Record<string, CommandFlag>>;
  /** The values of `--output`, where they are not the usual ones. */
  readonly formats?: readonly OutputFormat[] | undefined;
  /** Shown below the flags. */
  readonly notes?: string | undefined;
  /** Meanings of exit codes that differ from the usual ones. */
  readonly exitCodes?: Readonly<Record<number, string>> | undefined;
}

/** A group of commands with the same first word. */
export interface CommandGroup {
  readonly name: string;
  readonly doc: string;
  readonly commands: readonly Command[];
}

/** Every command: those without a group, and the groups. */
export interface DocumentedCommands {
  readonly lone: readonly Command[];
  readonly groups: readonly CommandGroup[];
}

/** A parsed command line, with every argument of the command. */
export interface GivenCommand {
  readonly args: readonly string[];
  readonly flags: GivenFlags;
}

/** A command and its implementation; `run` returns the exit code. */
export interface RunnableCommand {
  readonly command: Command;
  run(given: GivenCommand, options: CommandOptions): Promise<number>;
}

/** The given flags. */
export class GivenFlags {
  readonly #flags: ParsedFlags["flags"];

  constructor(flags: ParsedFlags["flags"]) {
    this.#flags = flags;
  }

  /** The value of a flag, if given. */
  text(name: string): string | undefined {
    const value = this.#flags[name];
    return typeof value === "string" ? value : undefined;
  }

  /** The value of a flag, if given; throws a `FlagError` for one that the parser rejects. */
  value<T>(name: string, parse: Parser<T>): T | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : readFlag(name, text, parse);
  }

  /** The entries of each value of a flag such as `--descriptors`; throws a `FlagError` for a list that cannot be read. */
  descriptors(name = "descriptors"): Entry[][] {
    return this.texts(name).map((list) => {
      const entries = parseDescriptorText(list);
      if (typeof entries === "string") throw new FlagError(`Invalid --${name} "${list}": ${entries}`);
      return entries;
    });
  }

  /** Every value of a flag that may be repeated. */
  texts(name: string): readonly string[] {
    const value = this.#flags[name];
    return Array.isArray(value) ? value : [];
  }

  /** The value of a boolean flag, if given. */
  boolean(name: string): boolean | undefined {
    const value = this.#flags[name];
    return typeof value === "boolean" ? value : undefined;
  }

  /** The value of a required flag; throws a `FlagError` when it is missing or empty. */
  required(name: string, command: string): string {
    const value = this.text(name) ?? "";
    if (value !== "") return value;
    throw new FlagError(`Cannot run "${command}": --${name} is missing`);
  }
}

/**
 * Parses the arguments behind the words of a command; undefined when they ask for its help. Throws a `FlagError` for
 * unknown flags, and for arguments that are missing, empty or too many.
 */
export function readCommand(command: Command, args: readonly string[]): GivenCommand | undefined {
  const { flags, rest } = parseFlags(args, { ...flagKinds(command), ...HELP_FLAGS }, aliasesOf(command));
  if (asksForHelp(flags)) return undefined;
  const missing = command.args.find((_, index) => (rest[index] ?? "") === "");
  if (missing !== undefined) throw new FlagError(`Cannot run "${command.words}": ${missing} is missing`);
  // A surplus argument is not shown: it may be a secret whose flag was forgotten.
  if (rest.length > command.args.length) {
    throw new FlagError(`Cannot run "${command.words}": expected "weir ${callOf(command)} [flags]"`);
  }
  return { args: rest, flags: new GivenFlags(flags) };
}

/** The usage of a command: one line, an example, what it does, its flags. */
export function usageOf(command: Command): string {
  const rows = Object.entries(allFlags(command))
    .map(([name, flag]) =>
      [`${flag.short === undefined ? "    " : ""}${flagText(name, flag)}`, flag] as const
    );
  const width = Math.max(...rows.map(([left]) => left.length));
  const flags = rows.map(([left, flag]) => `  ${left.padEnd(width)}  ${flagDoc(flag)}`);
  const notes = [command.notes, exitText(command)].flatMap((note) => note === undefined ? [] : ["", note]);
  const example = `example: weir ${command.words} ${EXAMPLES[command.words] ?? ""}`.trimEnd();
  const head = [`usage: weir ${callOf(command)} [flags]`, example, "", sentenceOf(command.doc), ""];
  return [...head, ...flags, ...notes].join("\n");
}

/** The line below the error of a command line. */
export function usageHint({ words }: Command): string {
  return `Run "weir ${words} --help" for its usage`;
}

/** The exit codes of a command and their meanings; undefined for the usual ones. */
export function exitCodesOf({ exitCodes }: Command): Readonly<Record<number, string>> | undefined {
  return exitCodes && { 2: "invalid usage", ...exitCodes };
}

function exitText(command: Command): string | undefined {
  const codes = exitCodesOf(command);
  return codes && `Exit code: ${Object.entries(codes).map((pair) => pair.join(" ")).join(", ")}.`;
}

/** The words of a command and its arguments. */
export function callOf({ words, args }: Command): string {
  return [words, ...args].join(" ");
}

/** A doc as a sentence: with a capital letter and a period. */
export function sentenceOf(doc: string): string {
  return `${doc.charAt(0).toUpperCase()}${doc.slice(1)}.`;
}

/** The flags of a command, and that of its help. */
export function allFlags({ flags }: Command): Readonly<Record<string, CommandFlag>> {
  return { ...flags, help: { short: "h", doc: "show this text" } };
}

/** A flag as it is written: its name of one letter, its name and the placeholder of its value. */
export function flagText(name: string, { short, value }: CommandFlag): string {
  return `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`;
}

/** The doc of a flag, with its other names. */
export function flagDoc({ doc, repeated, aliases = [] }: CommandFlag): string {
  const also = aliases.length === 0 ? "" : `; also ${aliases.map((name) => `--${name}`).join(", ")}`;
  return `${doc}${repeated === true ? "; may be repeated" : ""}${also}`;
}

function flagKinds({ flags }: Command): Record<string, FlagKind> {
  return Object.fromEntries(
    Object.entries(flags).map(([name, { value, repeated }]) => {
      const kind: FlagKind = value === undefined ? "boolean" : repeated === true ? "strings" : "string";
      return [name, kind];
    }),
  );
}

/** The flags of a command by their other names, with dashes. */
function aliasesOf({ flags }: Command): Readonly<Record<string, string>> {
  const names = Object.entries(flags).flatMap(([name, { short, aliases = [] }]) => {
    const others = short === undefined ? aliases : [short, ...aliases];
    return others.map((other) => [other.replaceAll("_", "-"), name] as const);
  });
  return Object.fromEntries(names);
}
