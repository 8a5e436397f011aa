import { errorText } from "../base/error_text.ts";
import type { CommandOptions, GivenCommand, GivenFlags, RunnableCommand } from "./command.ts";
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
      "decide the requests of a file by the rules of a folder, and report the changes against another folder",
    flags: {
      config: { value: "DIR", doc: "folder of the rules to try" },
      against: { value: "DIR", doc: "folder of the rules to compare with (default: no comparison)" },
      requests: {
        value: "FILE",
        doc: 'requests as /json takes them, one a line, each with its "time"; - for standard input',
      },
      merge: MERGE_FLAG,
      "max-changes": { value: "N", doc: "show at most N requests of each kind of change (default 100)" },
      "max-wrong": { value: "N", doc: "continue past at most N wrong lines (default 10)" },
      json: { doc: "print JSON, one object a line: the changes, then the summary" },
    },
    notes:
      "A time is RFC 3339 or seconds since the epoch. Only the files are read: counters are exact and in\n" +
      "memory, and the clock is that of the lines. Of the environment, only SHADOW_MODE, QUOTA_MODE,\n" +
      "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT, MERGE_DOMAIN_CONFIG, RUNTIME_IGNOREDOTFILES and\n" +
      "MEMORY_MAX_KEYS are used, as by the service.\n\n" +
      "exit code: 0 no decision changes, 1 some do, 2 wrong usage, rules or lines",
  },
  run: simulateCommand,
};

async function simulateCommand({ flags }: GivenCommand, options: CommandOptions): Promise<number> {
  const config = ruleFolder(flags.required("config", "simulate"), flags, options.environment);
  const against = flags.text("against");
  const wanted: SimulateOptions = {
    config,
    against: against === undefined ? undefined : { ...config, folder: against },
    requests: flags.required("requests", "simulate"),
    maxChanges: wholeOf(flags, "max-changes", 100),
    maxWrong: wholeOf(flags, "max-wrong", 10),
    json: flags.boolean("json") === true,
  };
  try {
    // Loaded here, so that other commands start without it.
    const { simulate } = await import("./simulate_run.ts");
    return await simulate(wanted, options);
  } catch (error) {
    // Exit code 1 would mean that a decision changes.
    options.output.stderr(errorText(error));
    return EXIT.wrongInput;
  }
}

function wholeOf(flags: GivenFlags, name: string, otherwise: number): number {
  const text = flags.text(name);
  if (text === undefined) return otherwise;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new FlagError(`Invalid --${name} "${text}": expected an integer`);
}
