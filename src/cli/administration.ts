import { type AdministrationCall, argument, callOfCommand } from "./administration_call.ts";
import {
  type AdministrationAnswer,
  callAdministration,
  findTarget,
  type Target,
  TARGET_FLAGS,
} from "./administration_client.ts";
import { ADMINISTRATION_COMMANDS, type AdministrationCommand } from "./administration_table.ts";
import {
  type Command,
  CommandError,
  type CommandFlag,
  type CommandOptions,
  type GivenCommand,
  readText,
  type RunnableCommand,
} from "./command.ts";
import { fieldText, isRecord, recordLines, TableText } from "./record_text.ts";

const PRINT_FLAGS: Readonly<Record<string, CommandFlag>> = {
  json: { doc: "print the answer as JSON" },
};
const ALL: CommandFlag = { doc: "every page, not only one" };

/** Every command over the administration, ready to run. */
export function administrationCommands(): RunnableCommand[] {
  return ADMINISTRATION_COMMANDS.map((command) => ({
    command: documented(command),
    run: (given, options) => run(command, given, options),
  }));
}

/** With the flags of every command. */
function documented(command: AdministrationCommand): Command {
  const all = command.shown.as === "list" ? { all: ALL } : {};
  return { ...command, flags: { ...command.flags, ...all, ...PRINT_FLAGS, ...TARGET_FLAGS } };
}

async function run(
  command: AdministrationCommand,
  given: GivenCommand,
  options: CommandOptions,
): Promise<number> {
  const sources = { now: options.clock.now(), readText: (path: string) => readText(path, options) };
  const call = await callOfCommand(command, given, sources);
  const target = await findTarget(given.flags, options);
  if (command.shown.as === "list") return await runList(command, { given, call, target, options });
  const answer = await callAdministration(command.words, target, call);
  return print(command, { given, answer, options });
}

interface ListRun {
  readonly given: GivenCommand;
  readonly call: AdministrationCall;
  readonly target: Target;
  readonly options: CommandOptions;
}

/** Prints one page, or every page as it comes. */
async function runList(
  command: AdministrationCommand,
  { given, call, target, options }: ListRun,
): Promise<number> {
  const { output } = options;
  const table = new TableText(command.shown.as === "list" ? command.shown.columns : []);
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (;;) {
    const query = cursor === undefined ? call.query : { ...call.query, cursor };
    const { text, record } = await callAdministration(command.words, target, { ...call, query });
    if (given.flags.boolean("json") === true) output.stdout(text);
    else for (const line of table.lines(itemsOf(command, record))) output.stdout(line);
    const next = record["nextCursor"];
    if (typeof next !== "string") return 0;
    if (given.flags.boolean("all") !== true) {
      if (given.flags.boolean("json") !== true) output.stderr(`More: --cursor ${next}, or --all`);
      return 0;
    }
    // A service that returns the same page again would never end this.
    if (seen.has(next)) throw new CommandError(`Cannot run "${command.words}": a page repeats`);
    seen.add(next);
    cursor = next;
  }
}

function itemsOf(command: AdministrationCommand, page: AdministrationAnswer["record"]) {
  const items = page["items"];
  if (Array.isArray(items) && items.every(isRecord)) return items;
  throw new CommandError(`Cannot run "${command.words}": the answer is not a list`);
}

interface Answered {
  readonly given: GivenCommand;
  readonly answer: AdministrationAnswer;
  readonly options: CommandOptions;
}

/** Prints an answer that is no list; the exit code. */
function print(command: AdministrationCommand, { given, answer, options }: Answered): number {
  const { output } = options;
  const { shown } = command;
  if (given.flags.boolean("json") === true) {
    if (answer.text !== "") output.stdout(answer.text);
  } else if (shown.as === "sentence") {
    output.stdout(shown.text.replace(/\{(\w+)\}/g, (_, name: string) => argument(command, given, name)));
  } else if (shown.as === "field") {
    output.stdout(fieldText(answer.record, shown.field));
  } else {
    for (const line of recordLines(answer.record)) output.stdout(line);
  }
  if (shown.as !== "record") return 0;
  if (shown.secret !== undefined && Object.hasOwn(answer.record, shown.secret)) {
    output.stderr(`Keep the ${shown.secret} now: it is shown only once`);
  }
  return shown.good !== undefined && answer.record[shown.good] === false ? 1 : 0;
}
