import type { JsonObject } from "../base/exact_json.ts";
import { JsonText } from "../base/json_text.ts";
import { type AdministrationCall, argument, callOfCommand } from "./administration_call.ts";
import {
  type AdministrationAnswer,
  callAdministration,
  findTarget,
  TARGET_FLAGS,
} from "./administration_client.ts";
import { LIST_FLAGS, printList, printProblems } from "./administration_list.ts";
import { type AdministrationCommand, idOf } from "./administration_verbs.ts";
import { ADMINISTRATION_COMMANDS } from "./administration_commands.ts";
import {
  type Command,
  CommandError,
  type CommandOptions,
  type GivenCommand,
  type Output,
  readText,
  type RunnableCommand,
} from "./command.ts";
import { FlagError } from "./flags.ts";
import { IDENTIFIER_FORMATS, IDENTIFIER_OUTPUT_FLAGS, printerOf } from "./output_format.ts";
import { Progress } from "./progress.ts";
import { asSent, fieldText, recordLines } from "./table_text.ts";

/** Every command over the administration, ready to run. */
export function administrationCommands(): RunnableCommand[] {
  return ADMINISTRATION_COMMANDS.map((command) => ({
    command: documented(command),
    run: (given, options) => run({ command, given, options }),
  }));
}

function documented(command: AdministrationCommand): Command {
  const { shown, question } = command;
  const own = {
    ...shown.as === "list" ? LIST_FLAGS : {},
    ...question === undefined ? {} : { yes: { doc: "answer the question that is asked on a terminal" } },
  };
  const flags = { ...command.flags, ...own, ...IDENTIFIER_OUTPUT_FLAGS, ...TARGET_FLAGS };
  return { ...command, flags, formats: IDENTIFIER_FORMATS };
}

interface Run {
  readonly command: AdministrationCommand;
  readonly given: GivenCommand;
  readonly options: CommandOptions;
}

async function run(one: Run): Promise<number> {
  const { command, given, options } = one;
  const { words, shown } = command;
  const { flags } = given;
  if (flags.text("output") === "id" && idOf(shown) === undefined) {
    throw new FlagError(`Cannot use --output id with "${words}": its answer has no identifier`);
  }
  const sources = () => ({ now: options.clock.now(), readText: (path: string) => readText(path, options) });
  const call = await callOfCommand(command, given, sources());
  const target = await findTarget(flags, options);
  const ask = async (sent: AdministrationCall, output: Output) => {
    using _progress = new Progress("waiting for the service", { ...options, output });
    return await callAdministration(words, target, sent);
  };
  if (shown.as === "list") {
    return await printList({
      words,
      shown,
      given,
      options,
      async ask(more, output) {
        const { query, ...again } = await callOfCommand(command, given, sources());
        return await ask({ ...again, query: { ...query, ...more } }, output);
      },
    });
  }
  confirm(one);
  return print(one, await ask(call, options.output));
}

/** Asks before a deletion where a person can answer; throws a `CommandError` unless the answer is yes. */
function confirm(one: Run): void {
  const { command: { words, question }, given: { flags }, options: { output } } = one;
  if (question === undefined || output.ask === undefined || flags.boolean("yes") === true) return;
  const answer = output.ask(`${filled(question, one, {})}. Continue? [y/N] `);
  if (!/^y(?:es)?$/i.test(answer)) throw new CommandError(`Cannot run "${words}": not confirmed`);
}

/** Prints an answer other than a list; returns the exit code. */
function print(one: Run, { text, record }: AdministrationAnswer): number {
  const { command: { shown }, given, options } = one;
  const { output } = options;
  const printer = printerOf(given.flags, output);
  const id = idOf(shown);
  if (printer !== undefined) {
    printer.printText(text, id);
  } else if (shown.as === "sentence") {
    const isHeld = shown.held !== undefined && Object.hasOwn(record, "why");
    output.stdout(filled(isHeld ? shown.held : shown.text, one, record));
  } else if (shown.as === "field" && Object.hasOwn(record, shown.field)) {
    output.stdout(fieldText(record, shown.field));
  } else {
    const sent = asSent(record, new JsonText(text));
    const { problems: _, ...rest } = sent;
    const hasProblems = shown.as === "record" && shown.hasProblems === true;
    const now = output.screen === undefined ? undefined : options.clock.now();
    const columns = shown.as === "list" ? undefined : shown.columns;
    for (const line of recordLines(hasProblems ? rest : sent, { now, columns })) output.stdout(line);
    if (hasProblems) printProblems([record], output);
    const next = shown.as === "record" ? shown.next : undefined;
    if (next !== undefined && hasAll(next, one, record)) output.stderr(`Next: ${filled(next, one, record)}`);
  }
  if (shown.as !== "record") return 0;
  for (const secret of shown.secrets ?? []) {
    if (!Object.hasOwn(record, secret)) continue;
    const isShown = given.flags.text("output") !== "id";
    output.stderr(
      isShown
        ? `Save the ${secret} now: it is shown only once`
        : `The ${secret} was not printed: --output json prints it, only once`,
    );
  }
  return shown.good !== undefined && record[shown.good] === false ? 1 : 0;
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
