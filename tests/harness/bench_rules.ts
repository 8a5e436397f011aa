import { CallSource } from "../../src/load/call_source.ts";
import { encodeRateLimitRequest } from "../../src/wire/rls.ts";

/** The window of every rule of the bench, by the value of the entry `load`; no run outlives a year. */
const WINDOWS = { one: "year", keys: "year", second: "second", events: "year" } as const;
/** The name of a rule. */
export type RuleName = keyof typeof WINDOWS;
/** Every rule. */
export const RULE_NAMES: readonly RuleName[] = ["one", "keys", "second", "events"];

/**
 * The loads: `one` is for one hot key, `keys` for many, `both` for many with two limits each, `events` for many of
 * which one in a hundred is over its limit, in shadow mode.
 */
export type LoadName = "one" | "keys" | "both" | "events";
/** The rules that a call of each load meets with every key. */
export const RULES_OF: Readonly<Record<LoadName, readonly RuleName[]>> = {
  one: ["one"],
  keys: ["keys"],
  both: ["keys", "second"],
  events: ["events"],
};

/** The limit of every rule of the bench; no run reaches it. */
export const LIMIT = 4_000_000_000;
/** Keys that end like this are over their limit. */
const OVER_LIMIT =
  `{ key: key, value: "*00", shadow_mode: true, rate_limit: { unit: second, requests_per_unit: 0 } }`;
/** The file of all rules. */
export const RULES = `domain: bench
descriptors:
${RULE_NAMES.map(ruleText).join("\n")}
`;
/** The same, where the rule of the keys that are over their limit has events. */
export const RULES_WITH_EVENTS: string = RULES.replace(
  "shadow_mode: true",
  "shadow_mode: true, events: [over_limit]",
);

function ruleText(rule: RuleName): string {
  const limit = `{ key: key, rate_limit: { unit: ${WINDOWS[rule]}, requests_per_unit: ${LIMIT} } }`;
  const rules = rule === "events" ? `${limit}, ${OVER_LIMIT}` : limit;
  return `  - { key: load, value: ${rule}, descriptors: [${rules}] }`;
}

/** Returns whether counters of this rule are still there when a run is over. */
export function isLasting(rule: RuleName): boolean {
  return WINDOWS[rule] === "year";
}

/** A `RateLimitRequest` of domain `bench`: for each key and rule a descriptor of `load=<rule>` and `key=<key>`. */
export function encodeRequest(load: LoadName, keys: readonly string[]): Uint8Array {
  const descriptors = keys.flatMap((key) =>
    RULES_OF[load].map((rule) => ({ entries: [{ key: "load", value: rule }, { key: "key", value: key }] }))
  );
  return encodeRateLimitRequest({ domain: "bench", descriptors });
}

/** Which calls are made. */
interface BenchCallsOptions {
  readonly load: LoadName;
  /** Different keys. */
  readonly keys: number;
  /** Keys a call, each with a descriptor for every rule of the load. */
  readonly batch: number;
  /** Each key is this many further than the previous one it. */
  readonly stride: number;
  /** The number of the first key; 0 when absent. */
  readonly firstKey?: number;
}

/** Makes calls whose keys go round, `k0`, `k1` and so on. */
export function benchCalls({ load, keys, batch, stride, firstKey = 0 }: BenchCallsOptions): CallSource {
  return new CallSource({
    // After so many calls the keys are at the beginning again.
    variants: keys / greatestDivisor(keys, batch * stride),
    message(index) {
      const names = Array.from({ length: batch }, (_, place) => {
        return `k${firstKey + (index * batch + place) * stride % keys}`;
      });
      return encodeRequest(load, names);
    },
  });
}

function greatestDivisor(first: number, second: number): number {
  return second === 0 ? first : greatestDivisor(second, first % second);
}
