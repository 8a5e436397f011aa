import { isJsonObject, type JsonObject } from "../base/exact_json.ts";
import { JsonText } from "../base/json_text.ts";
import { type AdministrationCall, argument, callOfCommand } from "./administration_call.ts";
import {
  type AdministrationAnswer,
  callAdministration,
  findTarget,
  TARGET_FLAGS,
} from "./administration_client.ts";
import type { AdministrationCommand } from "./administration_verbs.ts";
import { ADMINISTRATION_COMMANDS } from "./administration_commands.ts";
import {
  type Command,
  CommandError,
  type CommandFlag,
  type CommandOptions,
  type GivenCommand,
  type Output,
  readText,
  type RunnableCommand,
} from "./command.ts";
import { OUTPUT_FLAGS, printerOf } from "./output_format.ts";
import { Progress } from "./progress.ts";
import { plainText } from "./plain_text.ts";
import { asSent, fieldText, recordLines, TableText } from "./table_text.ts";

const ALL: CommandFlag = { doc: "print every page" };

/** Every command over the administration, ready to run. */
export function administrationCommands(): RunnableCommand[] {
  return ADMINISTRATION_COMMANDS.map((command) => ({
    command: documented(command),
    run: (given, options) => run({ command, given, options }),
  }));
}

function documented(command: AdministrationCommand): Command {
  const all = command.shown.as === "list" ? { all: ALL } : {};
  return { ...command, flags: { ...command.flags, ...all, ...OUTPUT_FLAGS, ...TARGET_FLAGS } };
}

interface Run {
  readonly command: AdministrationCommand;
  readonly given: GivenCommand;
  readonly options: CommandOptions;
}

async function run(one: Run): Promise<number> {
  const { command, given, options } = one;
  const sources = { now: options.clock.now(), readText: (path: string) => readText(path, options) };
  const call = await callOfCommand(command, given, sources);
  const target = await findTarget(given.flags, options);
  const ask = async (query = call.query) => {
    using _progress = new Progress("waiting for the service", options);
    return await callAdministration(command.words, target, { ...call, query });
  };
  if (command.shown.as === "list") return await printList(one, command.shown, call.query, ask);
  return print(one, await ask());
}

type ListShown = Extract<AdministrationCommand["shown"], { readonly as: "list" }>;

/** Prints one page, or every page as it arrives. */
async function printList(
  { command, given: { flags }, options: { output } }: Run,
  { columns, hasProblems = false }: ListShown,
  filters: AdministrationCall["query"],
  ask: (query: AdministrationCall["query"]) => Promise<AdministrationAnswer>,
): Promise<number> {
  const printer = printerOf(flags, output);
  const table = new TableText(columns);
  const seen = new Set<string>();
  for (let query = filters;;) {
    const { text, record } = await ask(query);
    if (printer !== undefined) printer.printText(text);
    else {
      const items = itemsOf(command, record);
      for (const line of table.lines(items)) output.stdout(line);
      if (hasProblems) printProblems([record, ...items], output);
    }
    const cursor = record["nextCursor"];
    if (typeof cursor !== "string") return 0;
    if (flags.boolean("all") !== true) {
      if (printer === undefined) output.stderr(`More: --cursor ${cursor}, or --all`);
      return 0;
    }
    // A service that returns the same page again would never end this.
    if (seen.has(cursor)) throw new CommandError(`Cannot run "${command.words}": a page repeats`);
    seen.add(cursor);
    query = { ...filters, cursor };
  }
}

function itemsOf(command: AdministrationCommand, page: AdministrationAnswer["record"]) {
  const items = page["items"];
  if (Array.isArray(items) && items.every(isJsonObject)) return items;
  throw new CommandError(`Cannot run "${command.words}": the answer is not a list`);
}

/** Prints an answer other than a list; returns the exit code. */
function print(one: Run, { text, record }: AdministrationAnswer): number {
  const { command: { shown }, given, options: { output } } = one;
  const printer = printerOf(given.flags, output);
  if (printer !== undefined) {
    printer.printText(text);
  } else if (shown.as === "sentence") {
    const isHeld = shown.held !== undefined && Object.hasOwn(record, "why");
    output.stdout(filled(isHeld ? shown.held : shown.text, one, record));
  } else if (shown.as === "field") {
    output.stdout(fieldText(record, shown.field));
  } else {
    const sent = asSent(record, new JsonText(text));
    const { problems: _, ...rest } = sent;
    const hasProblems = shown.as === "record" && shown.hasProblems === true;
    for (const line of recordLines(hasProblems ? rest : sent)) output.stdout(line);
    if (hasProblems) printProblems([record], output);
    const next = shown.as === "record" ? shown.next : undefined;
    if (next !== undefined && hasAll(next, one, record)) output.stderr(`Next: ${filled(next, one, record)}`);
  }
  if (shown.as !== "record") return 0;
  for (const secret of shown.secrets ?? []) {
    if (Object.hasOwn(record, secret)) output.stderr(`Save the ${secret} now: it is shown only once`);
  }
  return shown.good !== undefined && record[shown.good] === false ? 1 : 0;
}

/** Prints the problems of configuration files that records have, a line each. */
function printProblems(records: readonly JsonObject[], output: Output): void {
  for (const { problems } of records) {
    for (const problem of Array.isArray(problems) ? problems.filter(isJsonObject) : []) {
      const parts = ["at", "path", "text"].map((name) => problem[name]);
      output.stderr(plainText(parts.filter((part) => typeof part === "string" && part !== "").join(": ")));
    }
  }
}

/** Returns whether there is a value for each placeholder of a text. */
function hasAll(text: string, { command }: Run, record: JsonObject): boolean {
  const names = text.matchAll(/\{(\w+)\}/g).map(([, name = ""]) => name);
  return names.every((name) => command.args.includes(name) || Object.hasOwn(record, name));
}

/** A text with the arguments of the command, and the fields of its answer, in place of `{NAME}` and `{name}`. */
function filled(text: string, { command, given }: Run, record: JsonObject): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => {
    return command.args.includes(name) ? argument(command, given, name) : fieldText(record, name);
  });
}
