import { parseArgs } from "node:util";
import { oneOf, positiveInteger } from "../bench/flag_values.ts";

/** What a soak of the webhook service may look at; the last three take a database that several share. */
export const WEBHOOK_SOAK_PARTS = [
  "events",
  "executions",
  "hanging",
  "starvation",
  "pressure",
  "outages",
  "failover",
  "concurrency",
] as const;
/** The name of a part. */
export type WebhookSoakPart = typeof WEBHOOK_SOAK_PARTS[number];

/** What the soak of the webhook service is to do. */
export interface WebhookSoakOptions {
  /** One process on a file, or three on one PostgreSQL. */
  readonly store: "file" | "postgres";
  readonly parts: readonly WebhookSoakPart[];
  readonly events: number;
  readonly eventKills: number;
  readonly executions: number;
  readonly executionKills: number;
  /** How often the database goes away. */
  readonly outages: number;
  /** Pieces of work before each time. */
  readonly works: number;
  /** Endpoints that never answer, those that do, and for how long these have ten events a second. */
  readonly hanging: number;
  readonly healthy: number;
  readonly seconds: number;
  readonly seed: number;
}

const STORES = ["file", "postgres"] as const;
const OF_FILE: readonly WebhookSoakPart[] = ["events", "executions", "hanging", "starvation", "pressure"];
const OF_POSTGRES = WEBHOOK_SOAK_PARTS.filter((part) => part !== "starvation" && part !== "pressure");

/** Reads the flags; throws `RangeError` or `TypeError` that says what would be right. */
export function readWebhookSoakOptions(args: string[]): WebhookSoakOptions {
  const { values } = parseArgs({
    args,
    options: {
      store: { type: "string", default: "file" },
      what: { type: "string", default: "all" },
      events: { type: "string", default: "10000" },
      "event-kills": { type: "string", default: "50" },
      executions: { type: "string", default: "1000" },
      "execution-kills": { type: "string", default: "20" },
      outages: { type: "string", default: "3" },
      works: { type: "string", default: "500" },
      hanging: { type: "string", default: "130" },
      healthy: { type: "string", default: "1" },
      seconds: { type: "string", default: "40" },
      seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    },
  });
  const store = oneOf("store", values.store, STORES);
  const possible = store === "file" ? OF_FILE : OF_POSTGRES;
  const what = oneOf("what", values.what, ["all", ...possible]);
  return {
    store,
    parts: possible.filter((part) => what === "all" || part === what),
    events: positiveInteger("events", values.events),
    eventKills: positiveInteger("event-kills", values["event-kills"]),
    executions: positiveInteger("executions", values.executions),
    executionKills: positiveInteger("execution-kills", values["execution-kills"]),
    outages: positiveInteger("outages", values.outages),
    works: positiveInteger("works", values.works),
    hanging: positiveInteger("hanging", values.hanging),
    healthy: positiveInteger("healthy", values.healthy),
    seconds: positiveInteger("seconds", values.seconds),
    seed: positiveInteger("seed", values.seed),
  };
}
