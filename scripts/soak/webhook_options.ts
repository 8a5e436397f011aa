import { parseArgs } from "node:util";
import { oneOf, positiveInteger } from "../bench/flag_values.ts";

/** What the soak of the webhook service is to do. */
export interface WebhookSoakOptions {
  readonly events: number;
  readonly eventKills: number;
  readonly executions: number;
  readonly executionKills: number;
  readonly seed: number;
}

const PARTS = ["events", "executions", "both"] as const;

/** Reads the flags; throws `RangeError` or `TypeError` that says what would be right. */
export function readWebhookSoakOptions(args: string[]): WebhookSoakOptions {
  const { values } = parseArgs({
    args,
    options: {
      what: { type: "string", default: "both" },
      events: { type: "string", default: "10000" },
      "event-kills": { type: "string", default: "50" },
      executions: { type: "string", default: "1000" },
      "execution-kills": { type: "string", default: "20" },
      seed: { type: "string", default: String(Math.floor(Math.random() * 2 ** 31)) },
    },
  });
  const what = oneOf("what", values.what, PARTS);
  return {
    events: what === "executions" ? 0 : positiveInteger("events", values.events),
    eventKills: positiveInteger("event-kills", values["event-kills"]),
    executions: what === "events" ? 0 : positiveInteger("executions", values.executions),
    executionKills: positiveInteger("execution-kills", values["execution-kills"]),
    seed: positiveInteger("seed", values.seed),
  };
}
