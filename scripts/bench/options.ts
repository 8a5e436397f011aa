import { parseArgs } from "node:util";
import { type LoadName, LOADS } from "./rate_limit_message.ts";

/** What the bench can be run against: a bare grpc-js echo, Weir with its embedded cache, Weir with redis-server. */
export const TARGETS = ["echo", "memory", "redis"] as const;
/** The name of a target. */
export type TargetName = typeof TARGETS[number];

/** What the bench is to do. */
export interface BenchOptions {
  readonly rounds: number;
  /** How long one load on one target takes, about. */
  readonly seconds: number;
  readonly targets: readonly TargetName[];
  readonly loads: readonly LoadName[];
  /** Where the results go. */
  readonly json: string;
}

/** Reads the flags of the bench; throws `RangeError` or `TypeError` that says what would be right. */
export function readBenchOptions(args: string[]): BenchOptions {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: "string", default: "5" },
      seconds: { type: "string", default: "3" },
      targets: { type: "string", default: TARGETS.join(",") },
      loads: { type: "string", default: LOADS.join(",") },
      json: { type: "string", default: new URL("results/latest.json", import.meta.url).pathname },
    },
  });
  const rounds = positive("rounds", values.rounds);
  if (!Number.isInteger(rounds)) {
    throw new RangeError(`Cannot read --rounds "${rounds}": it must be a whole number`);
  }
  return {
    rounds,
    seconds: positive("seconds", values.seconds),
    targets: choices("targets", values.targets, TARGETS),
    loads: choices("loads", values.loads, LOADS),
    json: values.json,
  };
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new RangeError(`Cannot read --${name} "${text}": it must be a number above 0`);
}

function choices<T extends string>(name: string, text: string, known: readonly T[]): T[] {
  const chosen = text.split(",");
  const unknown = chosen.find((choice) => !known.some((one) => one === choice));
  if (unknown === undefined) return known.filter((one) => chosen.includes(one));
  throw new RangeError(`Cannot read --${name} "${unknown}": it must be of ${known.join(", ")}, by commas`);
}
