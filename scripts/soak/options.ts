import { parseArgs } from "node:util";
import { oneOf, positive, positiveInteger } from "../bench/flag_values.ts";

/** How the key-value cache goes away: it stands still with its connections open, or it is gone. */
export type OutageMode = "stop" | "kill";

const MODES = ["stop", "kill", "both"] as const;

/** What the soak is to do. */
export interface SoakOptions {
  /** How long the key-value cache is away, each time. */
  readonly seconds: number;
  /** Calls a second. */
  readonly rate: number;
  /** One outage after the other. */
  readonly modes: readonly OutageMode[];
}

/** Reads the flags of the soak; throws `RangeError` or `TypeError` that says what would be right. */
export function readSoakOptions(args: string[]): SoakOptions {
  const { values } = parseArgs({
    args,
    options: {
      seconds: { type: "string", default: "300" },
      rate: { type: "string", default: "1000" },
      mode: { type: "string", default: "both" },
    },
  });
  const mode = oneOf("mode", values.mode, MODES);
  return {
    seconds: positive("seconds", values.seconds),
    rate: positiveInteger("rate", values.rate),
    modes: mode === "both" ? ["stop", "kill"] : [mode],
  };
}
