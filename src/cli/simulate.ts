import { errorText } from "../base/error_text.ts";
import type { GivenCommand, GivenFlags, RunnableCommand } from "./command.ts";
import type { CommandOptions } from "./command_input.ts";
import { FlagError } from "./flags.ts";
import { MERGE_FLAG, ruleFolder } from "./rule_folder.ts";
import type { SimulateOptions } from "./simulate_run.ts";

const EXIT = { wrongInput: 2 } as const;

/** `weir simulate`: what other rules would decide. */
export const SIMULATE_COMMAND: RunnableCommand = {
  command: {
    words: "simulate",
    args: [],
    doc:
      "decides requests of a file by the rules of a folder, and tells which decisions change against another",
    flags: {
      config: { value: "DIR", doc: "folder of the rules to try" },
      against: { value: "DIR", doc: "folder of the rules to compare with; without it nothing is compared" },
      requests: {
        value: "FILE",
        doc: 'requests as /json takes them, one a line, each with its "time"; - for standard input',
      },
      merge: MERGE_FLAG,
      "max-changes": { value: "N", doc: "show at most N requests of each kind of change (default 100)" },
      "max-wrong": { value: "N", doc: "go on past at most N wrong lines (default 10)" },
      json: { doc: "print JSON, one object a line: the changes, then the summary" },
    },
    notes:
      "A time is RFC 3339 or seconds since the epoch. Nothing but the files is read: counters are exact and\n" +
      "in memory, and the clock is that of the lines. Of the environment count SHADOW_MODE, QUOTA_MODE,\n" +
      "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT, MERGE_DOMAIN_CONFIG, RUNTIME_IGNOREDOTFILES and\n" +
      "MEMORY_MAX_KEYS, as for the service.\n\n" +
      "exit code: 0 no decision changes, 1 some do, 2 wrong usage, rules or lines",
  },
  run: simulateCommand,
};

async function simulateCommand({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const config = ruleFolder(needed(flags, "config"), flags, options.environment);
  const against = flags.text("against");
  const wanted: SimulateOptions = {
    config,
    against: against === undefined ? undefined : { ...config, folder: against },
    requests: needed(flags, "requests"),
    maxChanges: wholeOf(flags, "max-changes", 100),
    maxWrong: wholeOf(flags, "max-wrong", 10),
    json: flags.said("json") === true,
  };
  try {
    // Loaded only by who uses it: whoever serves knows this file, too.
    const { simulate } = await import("./simulate_run.ts");
    return await simulate(wanted, options);
  } catch (error) {
    // Whatever fails must not look like a decision that changes.
    options.output.stderr(errorText(error));
    return EXIT.wrongInput;
  }
}

function needed(flags: GivenFlags, name: string): string {
  const value = flags.text(name) ?? "";
  if (value !== "") return value;
  throw new FlagError(`Cannot simulate: -${name} is missing`);
}

function wholeOf(flags: GivenFlags, name: string, otherwise: number): number {
  const text = flags.text(name);
  if (text === undefined) return otherwise;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new FlagError(`Cannot use -${name} "${text}": a whole number would be right`);
}
