import { parseArgs } from "node:util";
import { EXPECTED_CODES, type ExpectedCode } from "../../tests/harness/bench_answer.ts";
import { oneOf, positive } from "./flag_values.ts";
import { type LoadName, LOADS } from "../../tests/harness/bench_rules.ts";
import { RATE_LIMIT_PATH } from "../../src/load/rate_limit_message.ts";

/** Options of a load. */
export interface LoadOptions {
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

/** Reads the flags of the load generator; throws `RangeError` or `TypeError` that says what would be right. */
export function readLoadOptions(args: string[]): LoadOptions {
  const { values } = parseArgs({
    args,
    options: {
      host: { type: "string", default: "127.0.0.1" },
      port: { type: "string", default: "8081" },
      ca: { type: "string" },
      connections: { type: "string", default: "8" },
      "in-flight": { type: "string", default: "32" },
      keys: { type: "string", default: "10000" },
      stride: { type: "string", default: "1" },
      batch: { type: "string", default: "1" },
      load: { type: "string", default: "keys" },
      expect: { type: "string", default: "OK" },
      count: { type: "string" },
      path: { type: "string", default: RATE_LIMIT_PATH },
      "warm-up": { type: "string", default: "0.5" },
      seconds: { type: "string", default: "3" },
      calls: { type: "string" },
      "per-second": { type: "string" },
    },
  });
  const optional = (name: "count" | "calls" | "per-second") =>
    values[name] === undefined ? undefined : positive(name, values[name]);
  return {
    host: values.host,
    port: positive("port", values.port),
    caFile: values.ca,
    connections: positive("connections", values.connections),
    inFlight: positive("in-flight", values["in-flight"]),
    keys: positive("keys", values.keys),
    stride: positive("stride", values.stride),
    batch: positive("batch", values.batch),
    load: oneOf("load", values.load, LOADS),
    expect: oneOf("expect", values.expect, EXPECTED_CODES),
    count: optional("count"),
    path: values.path,
    warmUpSeconds: values["warm-up"] === "0" ? 0 : positive("warm-up", values["warm-up"]),
    seconds: positive("seconds", values.seconds),
    calls: optional("calls") ?? Infinity,
    perSecond: optional("per-second"),
  };
}
