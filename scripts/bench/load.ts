import { parseArgs } from "node:util";
import type { Expectation } from "./answer.ts";
import { type CallTemplate, callTemplate } from "./h2_frames.ts";
import { runLoadConnection } from "./load_connection.ts";
import { LoadRecord, type LoadResult } from "./load_record.ts";
import { encodeRequest, frameMessage, type LoadName, LOADS, RATE_LIMIT_PATH } from "./rate_limit_message.ts";

/** How long the last answers may take after the time is over. */
const GRACE_MS = 10_000;
const EXPECTATIONS: readonly Expectation[] = ["echo", "OK", "OVER_LIMIT"];

/** What the load generator is to do. */
export interface LoadOptions {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  /** Calls in flight on each connection. */
  readonly inFlight: number;
  /** Different keys, taken in turn. */
  readonly keys: number;
  /** The value of the entry `load`, so of the rule that matches. */
  readonly load: LoadName;
  readonly expect: Expectation;
  readonly path: string;
  /** No call begins after this time. */
  readonly seconds: number;
  /** No more calls than this; `Infinity` leaves it to the time. */
  readonly calls: number;
}

/** Makes calls until the time or the number is reached, waits for every answer and checks each. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const record = new LoadRecord();
  const templates = callTemplates(options);
  const stopAt = performance.now() + options.seconds * 1_000;
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), options.seconds * 1_000 + GRACE_MS);
  let taken = 0;
  const nextCall = (now: number) => {
    if (taken >= options.calls || now >= stopAt) return undefined;
    return templates[taken++ % templates.length];
  };
  const { host, port, inFlight, expect } = options;
  const connections = Array.from(
    { length: options.connections },
    () => runLoadConnection({ host, port, inFlight, expect, record, nextCall, deadline: deadline.signal }),
  );
  await Promise.all(connections);
  clearTimeout(timer);
  return record.result();
}

function callTemplates(options: LoadOptions): CallTemplate[] {
  const fields = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", options.path],
    [":authority", `${options.host}:${options.port}`],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
  ] as const;
  return Array.from({ length: options.keys }, (_, index) => {
    const message = encodeRequest(options.load, `k${index}`);
    return callTemplate(fields, frameMessage(message), message);
  });
}

function readOptions(args: string[]): LoadOptions {
  const { values } = parseArgs({
    args,
    options: {
      host: { type: "string", default: "127.0.0.1" },
      port: { type: "string", default: "8081" },
      connections: { type: "string", default: "8" },
      "in-flight": { type: "string", default: "32" },
      keys: { type: "string", default: "10000" },
      load: { type: "string", default: "keys" },
      expect: { type: "string", default: "OK" },
      path: { type: "string", default: RATE_LIMIT_PATH },
      seconds: { type: "string", default: "3" },
      calls: { type: "string", default: "" },
    },
  });
  return {
    host: values.host,
    port: positive("port", values.port),
    connections: positive("connections", values.connections),
    inFlight: positive("in-flight", values["in-flight"]),
    keys: positive("keys", values.keys),
    load: oneOf("load", values.load, LOADS),
    expect: oneOf("expect", values.expect, EXPECTATIONS),
    path: values.path,
    seconds: positive("seconds", values.seconds),
    calls: values.calls === "" ? Infinity : positive("calls", values.calls),
  };
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new RangeError(`Cannot read --${name} "${text}": it must be a number above 0`);
}

function oneOf<T extends string>(name: string, text: string, choices: readonly T[]): T {
  const choice = choices.find((known) => known === text);
  if (choice !== undefined) return choice;
  throw new RangeError(`Cannot read --${name} "${text}": it must be one of ${choices.join(", ")}`);
}

if (import.meta.main) {
  const result = await runLoad(readOptions(Deno.args));
  Deno.stdout.writeSync(new TextEncoder().encode(`${JSON.stringify(result)}\n`));
  Deno.exitCode = Object.keys(result.errors).length === 0 ? 0 : 1;
}
