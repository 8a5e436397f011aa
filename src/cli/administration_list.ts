import { isJsonObject, type JsonObject } from "../base/exact_json.ts";
import { unlessAborted, waitUnlessAborted } from "../base/wait.ts";
import type { AdministrationCall } from "./administration_call.ts";
import type { AdministrationAnswer } from "./administration_client.ts";
import type { AdministrationCommand } from "./administration_verbs.ts";
import {
  CommandError,
  type CommandFlag,
  type CommandOptions,
  type GivenCommand,
  type Output,
} from "./command.ts";
import { Interruption } from "./interruption.ts";
import { printerOf } from "./output_format.ts";
import { plainText } from "./plain_text.ts";
import { TableText } from "./table_text.ts";

/** The flags of every list, in addition to its filters. */
export const LIST_FLAGS: Readonly<Record<string, CommandFlag>> = {
  all: { doc: "print every page" },
  watch: {
    doc:
      "print the list again when it changes, every 2 seconds until interrupted; on a terminal, in its place",
  },
};

const WATCH_MS = 2_000;
const SILENT: Output = { stdout() {}, stderr() {} };

type ListShown = Extract<AdministrationCommand["shown"], { readonly as: "list" }>;

/** A list to print. */
interface PrintedList {
  readonly words: string;
  readonly shown: ListShown;
  readonly given: GivenCommand;
  readonly options: CommandOptions;
  /** Makes the call, which a relative time of its flags changes, and shows its progress. */
  readonly ask: (more: AdministrationCall["query"], progress: Output) => Promise<AdministrationAnswer>;
}

/** Prints one page, or every page as it arrives; with `--watch` again and again. */
export async function printList(list: PrintedList): Promise<number> {
  const { given: { flags }, options } = list;
  if (flags.boolean("watch") !== true) return await printOnce(list, options.output);
  const { output, clock } = options;
  using interruption = new Interruption(options.stop);
  const { signal } = interruption;
  let previous: string | undefined;
  while (!signal.aborted) {
    const lines: string[] = [];
    const add = (line: string) => void lines.push(line);
    const printed = printOnce(list, { stdout: add, stderr: add, screen: output.screen });
    // Only an interruption ends the wait for the answer.
    if (!await unlessAborted(printed.then(() => true), signal).catch(endedBy(signal))) break;
    const text = lines.join("\n");
    if (output.screen !== undefined) output.screen(lines);
    else if (text !== previous) { for (const line of lines) output.stdout(line); }
    previous = text;
    await waitUnlessAborted(WATCH_MS, clock, signal);
  }
  return 0;
}

function endedBy(signal: AbortSignal): (error: unknown) => false {
  return (error) => {
    if (signal.aborted) return false;
    throw error;
  };
}

async function printOnce(
  { words, shown, given, options, ask }: PrintedList,
  output: Output,
): Promise<number> {
  const { flags } = given;
  const printer = printerOf(flags, output);
  const now = output.screen === undefined ? undefined : options.clock.now();
  const table = new TableText(shown.columns, { now });
  const seen = new Set<string>();
  for (let more: AdministrationCall["query"] = {};;) {
    const { text, record } = await ask(more, flags.boolean("watch") === true ? SILENT : output);
    if (printer !== undefined) printer.printText(text);
    else {
      const items = itemsOf(words, record);
      for (const line of table.lines(items)) output.stdout(line);
      if (shown.hasProblems === true) printProblems([record, ...items], output);
    }
    const cursor = record["nextCursor"];
    if (typeof cursor !== "string") return 0;
    if (flags.boolean("all") !== true) {
      if (printer === undefined) output.stderr(`More: --cursor ${cursor}, or --all`);
      return 0;
    }
    // A service that returns the same page again would never end this.
    if (seen.has(cursor)) throw new CommandError(`Cannot run "${words}": a page repeats`);
    seen.add(cursor);
    more = { cursor };
  }
}

function itemsOf(words: string, page: JsonObject): readonly JsonObject[] {
  const items = page["items"];
  if (Array.isArray(items) && items.every(isJsonObject)) return items;
  throw new CommandError(`Cannot run "${words}": the answer is not a list`);
}

/** Prints the problems of configuration files that records have, a line each. */
export function printProblems(records: readonly JsonObject[], output: Output): void {
  for (const { problems } of records) {
    for (const problem of Array.isArray(problems) ? problems.filter(isJsonObject) : []) {
      const parts = ["at", "path", "text"].map((name) => problem[name]);
      output.stderr(plainText(parts.filter((part) => typeof part === "string" && part !== "").join(": ")));
    }
  }
}
