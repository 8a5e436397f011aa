import { parseArgs } from "node:util";
import { type Peer, readPeers } from "./peers.ts";

/** The parts of a run. */
export const PARTS = [
  "keys",
  "hot",
  "h2load",
  "shapes",
  "once",
  "workers",
  "batches",
  "paced",
  "caches",
  "stats",
  "events",
  "tls",
  "algorithms",
  "decisions",
  "million",
  "reload",
  "quotas",
  "start",
  "features",
  "client",
  "webhooks",
  "postgres",
] as const;
/** The name of a part. */
export type PartName = typeof PARTS[number];

/** The parts that a comparison with peers has: every load of them is one on the echo server and on Weir. */
const PEER_PARTS = ["keys", "shapes"] as const satisfies readonly PartName[];

/** The engines of Weir's gRPC port. */
const ENGINES = ["native", "grpc-js"] as const;
/** The name of an engine. */
export type EngineName = typeof ENGINES[number];

/** Options of a bench. */
export interface BenchOptions {
  readonly engine: EngineName;
  readonly parts: readonly PartName[];
  /** Other services that get the loads as well; absent in a run of Weir alone. */
  readonly peers?: readonly Peer[] | undefined;
  readonly rounds: number;
  /** Measured time of one load on one target, and the time before it. */
  readonly seconds: number;
  readonly warmUpSeconds: number;
  /** One short round, to see that everything works. */
  readonly isQuick: boolean;
  /** Folder that the results are written to; absent when they are not. */
  readonly results?: string | undefined;
}

const QUICK = { rounds: 1, seconds: 0.5, warmUpSeconds: 0.3 } as const;
const WHOLE = { rounds: 3, seconds: 1, warmUpSeconds: 0.3 } as const;

/** Reads the flags of the bench; throws `RangeError` or `TypeError` that says what is expected. */
export function readBenchOptions(args: string[]): BenchOptions {
  const { values } = parseArgs({
    args,
    options: {
      engine: { type: "string", default: "native" },
      only: { type: "string" },
      rounds: { type: "string" },
      seconds: { type: "string" },
      quick: { type: "boolean", default: false },
      results: { type: "string" },
      peers: { type: "boolean", default: false },
      original: { type: "string" },
      peer: { type: "string", multiple: true, default: [] },
    },
  });
  const { quick: isQuick, rounds, seconds } = values;
  const defaults = isQuick ? QUICK : WHOLE;
  const peers = readPeers(values);
  const choices = peers === undefined ? PARTS : PEER_PARTS;
  const parts = values.only === undefined ? choices : someOf("only", values.only, choices);
  const isWhole = parts.length === PARTS.length && !isQuick;
  const ownFolder = new URL("results/", import.meta.url).pathname;
  return {
    engine: oneOf("engine", values.engine, ENGINES),
    parts,
    peers,
    rounds: rounds === undefined ? defaults.rounds : positiveInteger("rounds", rounds),
    seconds: seconds === undefined ? defaults.seconds : positive("seconds", seconds),
    warmUpSeconds: defaults.warmUpSeconds,
    isQuick,
    results: values.results ?? (isWhole ? ownFolder : undefined),
  };
}

/** A number above 0 from a flag. */
function positive(name: string, text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new RangeError(`Cannot read --${name} "${text}": it must be a number above 0`);
}

/** A whole number above 0 from a flag. */
function positiveInteger(name: string, text: string): number {
  const value = positive(name, text);
  if (Number.isInteger(value)) return value;
  throw new RangeError(`Cannot read --${name} "${text}": it must be a whole number`);
}

/** One of the known words from a flag. */
function oneOf<T extends string>(name: string, text: string, choices: readonly T[]): T {
  const choice = choices.find((known) => known === text);
  if (choice !== undefined) return choice;
  throw new RangeError(`Cannot read --${name} "${text}": it must be one of ${choices.join(", ")}`);
}

/** Some of the known words from a flag, in the order in which they are known. */
function someOf<T extends string>(name: string, text: string, choices: readonly T[]): T[] {
  const chosen = text.split(",");
  for (const word of chosen) oneOf(name, word, choices);
  return choices.filter((known) => chosen.includes(known));
}
