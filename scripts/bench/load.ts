import { benchCalls, type LoadName, RULES_OF } from "../../tests/harness/bench_rules.ts";
import { type ExpectedCode, messageCheck } from "../../tests/harness/bench_answer.ts";
import type { LoadResult } from "../../src/load/load_record.ts";
import { RATE_LIMIT_PATH } from "../../src/wire/rls.ts";
import { runLoad } from "../../src/load/run_load.ts";
import { printResult } from "./measuring_script.ts";

/** Options of a load. */
interface LoadOptions {
  readonly host: string;
  readonly port: number;
  /** File with the certificate that the server's is signed by; absent for plain text. */
  readonly caFile?: string | undefined;
  readonly connections: number;
  /** Calls in flight on each connection. */
  readonly inFlight: number;
  /** Different keys, taken in turn. */
  readonly keys: number;
  /** Only every so many keys are taken. */
  readonly stride: number;
  /** Keys a call, each with a descriptor for every rule of the load. */
  readonly batch: number;
  readonly load: LoadName;
  readonly expect: ExpectedCode;
  /** The count that every counter is to have after its call. */
  readonly count?: number | undefined;
  /** Every status must have the limit of the rules of the bench. */
  readonly hasLimit?: boolean | undefined;
  /** An answer without any status is right as well. */
  readonly areStatusesOptional?: boolean | undefined;
  readonly path: string;
  /** Time before the measured one. */
  readonly warmUpSeconds: number;
  /** Measured time; no call begins after it. */
  readonly seconds: number;
  /** No more calls than this; `Infinity` leaves it to the time. */
  readonly calls: number;
  /** Evenly paced calls a second; absent for as many as are answered. */
  readonly perSecond?: number | undefined;
}

const DEFAULTS: LoadOptions = {
  host: "127.0.0.1",
  port: 8081,
  connections: 8,
  inFlight: 32,
  keys: 10_000,
  stride: 1,
  batch: 1,
  load: "keys",
  expect: "OK",
  path: RATE_LIMIT_PATH,
  warmUpSeconds: 0.5,
  seconds: 3,
  calls: Infinity,
};

/** Makes the calls of the bench, and checks each answer. */
export async function runBenchLoad(given: Partial<LoadOptions>): Promise<LoadResult> {
  const options = { ...DEFAULTS, ...given };
  const { host, port, caFile, expect, batch, load } = options;
  const tls = caFile === undefined ? undefined : { ca: await Deno.readTextFile(caFile) };
  const { result } = await runLoad({
    ...options,
    peer: { address: { host, port }, tls },
    source: benchCalls(options),
    checkMessage: messageCheck({ ...options, code: expect, descriptors: batch * RULES_OF[load].length }),
  });
  return result;
}

if (import.meta.main) await printResult(runBenchLoad);
