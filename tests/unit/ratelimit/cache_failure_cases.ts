import type { CacheFailureMode } from "../../../src/ratelimit/rule_source.ts";
import type { Policy } from "../../../src/ratelimit/decision/policy.ts";

/** Calls over a cache that fails, and what comes of them. */
interface CacheFailureCase {
  readonly title: string;
  readonly policy?: Partial<Policy>;
  /** The reaction of the cache to each question, as `FailingCache` reads it. */
  readonly script: readonly string[];
  /** Descriptors of each call: `key`, or `key:hits`. */
  readonly calls: readonly (readonly string[])[];
  /** For each call: the overall code, then code and remaining of each descriptor; or the error. */
  readonly answers: readonly string[];
  /** Every counter that is not zero, without what they all begin with. */
  readonly stats: Readonly<Record<string, number>>;
  readonly asked?: readonly string[];
}

/** Reads first, and adds when nothing goes over. */
export const STOP = { stopIncrementWhenOverLimit: true };
/** The answer to a call that fails. */
export const GONE = "CacheError: gone";

/** The counters of calls of which so many descriptors were answered by the mode. */
export function failed(mode: CacheFailureMode, count = 1, calls = 1): Record<string, number> {
  return { [`cache_failure.${mode}`]: count, "call.should_rate_limit.kv_error": calls };
}

/** One hit on each rule. */
export function hits(...keys: string[]): Record<string, number> {
  return Object.assign({}, ...keys.map((key) => rule(key, { total_hits: 1 })));
}

function within(...keys: string[]): Record<string, number> {
  return Object.assign({}, ...keys.map((key) => rule(key, { within_limit: 1 })));
}

function rule(key: string, counters: Readonly<Record<string, number>>): Record<string, number> {
  const named = Object.entries(counters).map(([name, count]) => [`rate_limit.d.${key}.${name}`, count]);
  return Object.fromEntries(named);
}

/** Nothing that is asked for is counted. */
export const WHOLE: readonly CacheFailureCase[] = [
  {
    title: "error is the default",
    script: ["x"],
    calls: [["plain"], ["plain"]],
    answers: [GONE, "OK: OK 1"],
    stats: { ...failed("error"), ...within("plain"), "rate_limit.d.plain.total_hits": 2 },
  },
  {
    title: "an overload is over the limit in every mode, which the local cache does not learn",
    script: ["o", "o", "ooo"],
    calls: [["plain"], ["allow"], ["error", "local", "shadow"], ["plain"]],
    answers: [
      "OVER_LIMIT: OVER_LIMIT 0",
      "OVER_LIMIT: OVER_LIMIT 0",
      "OVER_LIMIT: OVER_LIMIT 0, OVER_LIMIT 0, OK 0",
      "OK: OK 1",
    ],
    stats: {
      ...within("plain"),
      ...hits("allow", "error", "local", "shadow"),
      ...rule("plain", { total_hits: 2 }),
    },
  },
  {
    title: "allow, and the cache counts again immediately",
    script: ["x"],
    calls: [["allow:7"], ["allow"]],
    answers: ["OK: OK 0", "OK: OK 1"],
    stats: { ...failed("allow"), ...within("allow"), "rate_limit.d.allow.total_hits": 8 },
    asked: ["allow7", "allow1"],
  },
  {
    title: "deny, which the local cache does not learn",
    script: ["x"],
    calls: [["deny"], ["deny"]],
    answers: ["OVER_LIMIT: OVER_LIMIT 0", "OK: OK 1"],
    stats: { ...failed("deny"), ...within("deny"), "rate_limit.d.deny.total_hits": 2 },
    asked: ["deny1", "deny1"],
  },
  {
    title: "local counts up to the limit and says so, and none of it is remembered",
    script: ["x", "x", "x"],
    calls: [["local"], ["local"], ["local"], ["local"]],
    answers: ["OK: OK 1", "OK: OK 0", "OVER_LIMIT: OVER_LIMIT 0", "OK: OK 1"],
    stats: {
      ...failed("local", 3, 3),
      ...rule("local", { total_hits: 4, within_limit: 3, near_limit: 1, over_limit: 1 }),
    },
    asked: ["local1", "local1", "local1", "local1"],
  },
  {
    title: "the policy's mode holds where the rule names none",
    policy: { onCacheFailure: "allow" },
    script: ["x"],
    calls: [["plain"]],
    answers: ["OK: OK 0"],
    stats: { ...failed("allow"), ...hits("plain") },
  },
  {
    title: "the rule's mode wins over the policy's",
    policy: { onCacheFailure: "allow" },
    script: ["x", "x", "x"],
    calls: [["error"], ["deny"], ["local"]],
    answers: [GONE, "OVER_LIMIT: OVER_LIMIT 0", "OK: OK 1"],
    stats: {
      ...failed("error", 1, 3),
      "cache_failure.deny": 1,
      "cache_failure.local": 1,
      ...hits("error", "deny", "local"),
      ...within("local"),
    },
  },
  {
    title: "one error descriptor fails the whole call",
    script: ["xxx"],
    calls: [["allow", "error", "local"]],
    answers: [GONE],
    stats: { ...failed("error"), ...hits("allow", "error", "local") },
  },
  {
    title: "several descriptors, each in its own way",
    script: ["xxx"],
    calls: [["allow", "deny", "local"]],
    answers: ["OVER_LIMIT: OK 0, OVER_LIMIT 0, OK 1"],
    stats: {
      ...failed("allow"),
      "cache_failure.deny": 1,
      "cache_failure.local": 1,
      ...hits("allow", "deny", "local"),
      ...within("local"),
    },
  },
  {
    title: "a rule's shadow mode passes what is denied, and counts nothing",
    script: ["x"],
    calls: [["shadow"]],
    answers: ["OK: OK 0"],
    stats: { ...failed("deny"), ...hits("shadow") },
  },
  {
    title: "global shadow mode passes the call",
    policy: { shadowMode: true },
    script: ["x"],
    calls: [["deny"]],
    answers: ["OK: OVER_LIMIT 0"],
    stats: { ...failed("deny"), "global_shadow_mode": 1, ...hits("deny") },
  },
  {
    title: "a denied quota leaves the call to the others",
    script: ["xx", "x"],
    calls: [["quota", "share"], ["quota"]],
    answers: ["OK: OVER_LIMIT 0, OK 0", "OVER_LIMIT: OVER_LIMIT 0"],
    stats: {
      "cache_failure.allow": 1,
      "cache_failure.deny": 2,
      "call.should_rate_limit.kv_error": 2,
      ...rule("quota", { total_hits: 2 }),
      ...rule("share", { total_hits: 1 }),
    },
  },
  {
    title: "an unlimited descriptor and one without a rule are not asked for",
    script: ["x"],
    calls: [["free", "nothing"], ["free", "nothing", "deny"]],
    answers: ["OK: OK 4294967295, OK 0", "OVER_LIMIT: OK 4294967295, OK 0, OVER_LIMIT 0"],
    stats: { ...failed("deny"), ...hits("deny") },
    asked: ["deny1"],
  },
];

/** Some of what is asked for is counted. */
export const PART: readonly CacheFailureCase[] = [
  {
    title: "what was counted is decided as ever",
    script: [".xx."],
    calls: [["plain:3", "allow", "local", "error"]],
    answers: ["OVER_LIMIT: OVER_LIMIT 0, OK 0, OK 1, OK 1"],
    stats: {
      ...failed("allow"),
      "cache_failure.local": 1,
      ...hits("allow", "local", "error"),
      ...within("local", "error"),
      ...rule("plain", { total_hits: 3, over_limit: 1, near_limit: 1 }),
    },
  },
  {
    title: "a key that went over is remembered next to one that failed",
    script: [".x"],
    calls: [["plain:3", "allow"], ["plain"]],
    answers: ["OVER_LIMIT: OVER_LIMIT 0, OK 0", "OVER_LIMIT: OVER_LIMIT 0"],
    stats: {
      ...failed("allow"),
      ...hits("allow"),
      ...rule("plain", { total_hits: 4, over_limit: 2, near_limit: 1, over_limit_with_local_cache: 1 }),
    },
    asked: ["plain3 allow1"],
  },
  {
    title: "an error descriptor without a count fails what was counted, too",
    script: [".x"],
    calls: [["plain", "error"]],
    answers: [GONE],
    stats: { ...failed("error"), ...hits("plain", "error") },
  },
];

/** The cache is asked twice, and fails at one of the questions or at both. */
export const STOPPING: readonly CacheFailureCase[] = [
  {
    title: "a read that fails whole is not followed by an add",
    policy: STOP,
    script: ["xx"],
    calls: [["allow", "local"]],
    answers: ["OK: OK 0, OK 1"],
    stats: { ...failed("allow"), "cache_failure.local": 1, ...hits("allow", "local"), ...within("local") },
    asked: ["allow0 local0"],
  },
  {
    title: "a read that fails with error",
    policy: STOP,
    script: ["xx"],
    calls: [["allow", "plain"]],
    answers: [GONE],
    stats: { ...failed("error"), ...hits("allow", "plain") },
    asked: ["allow0 plain0"],
  },
  {
    title: "a read that fails in part: the rest is added to",
    policy: STOP,
    script: [".x"],
    calls: [["plain", "allow"]],
    answers: ["OK: OK 1, OK 0"],
    stats: { ...failed("allow"), ...hits("plain", "allow"), ...within("plain") },
    asked: ["plain0 allow0", "plain1"],
  },
  {
    title: "a read that fails in part: next to a denied one the rest is only read",
    policy: STOP,
    script: [".x"],
    calls: [["plain", "deny"]],
    answers: ["OVER_LIMIT: OK 2, OVER_LIMIT 0"],
    stats: { ...failed("deny"), ...hits("plain", "deny"), ...within("plain") },
    asked: ["plain0 deny0", "plain0"],
  },
  {
    title: "a read that fails in part: next to one that goes over, a local one is only read",
    policy: STOP,
    script: [".x"],
    calls: [["plain:3", "local"]],
    answers: ["OVER_LIMIT: OVER_LIMIT 0, OK 2"],
    stats: {
      ...failed("local"),
      ...hits("local"),
      ...within("local"),
      ...rule("plain", { total_hits: 3, over_limit: 1, near_limit: 1 }),
    },
    asked: ["plain0 local0", "plain3"],
  },
  {
    title: "a read that fails in part: next to a local one that goes over, the rest is only read",
    policy: STOP,
    script: ["x", ".x"],
    calls: [["local:2"], ["plain", "local"]],
    answers: ["OK: OK 0", "OVER_LIMIT: OK 2, OVER_LIMIT 0"],
    stats: {
      ...failed("local", 2, 2),
      ...hits("plain"),
      ...within("plain"),
      ...rule("local", { total_hits: 3, within_limit: 2, near_limit: 1, over_limit: 1 }),
    },
    asked: ["local2", "plain0 local0", "plain0"],
  },
  {
    title: "the add fails after a good read",
    policy: STOP,
    script: ["..", "xx"],
    calls: [["allow", "local"]],
    answers: ["OK: OK 0, OK 1"],
    stats: { ...failed("allow"), "cache_failure.local": 1, ...hits("allow", "local"), ...within("local") },
    asked: ["allow0 local0", "allow1 local1"],
  },
  {
    title: "the add fails in part after a good read, and is not asked again",
    policy: STOP,
    script: ["..", ".x"],
    calls: [["plain", "allow"]],
    answers: ["OK: OK 1, OK 0"],
    stats: { ...failed("allow"), ...hits("plain", "allow"), ...within("plain") },
    asked: ["plain0 allow0", "plain1 allow1"],
  },
  {
    title: "read and add each fail in part, and it is one failed call",
    policy: STOP,
    script: ["..x", ".x"],
    calls: [["plain", "deny", "allow"]],
    answers: ["OVER_LIMIT: OK 1, OVER_LIMIT 0, OK 0"],
    stats: {
      ...failed("allow"),
      "cache_failure.deny": 1,
      ...hits("plain", "deny", "allow"),
      ...within("plain"),
    },
    asked: ["plain0 deny0 allow0", "plain1 deny1"],
  },
  {
    title: "the add after a read in part fails with error",
    policy: STOP,
    script: [".x", "x"],
    calls: [["plain", "allow"]],
    answers: [GONE],
    stats: { ...failed("error"), ...hits("plain", "allow") },
    asked: ["plain0 allow0", "plain1"],
  },
  {
    title: "next to a key that the local cache knows, the fallback is only read",
    policy: STOP,
    script: ["", "x"],
    calls: [["plain:3"], ["plain", "local"], ["local"]],
    answers: [
      "OVER_LIMIT: OVER_LIMIT 0",
      "OVER_LIMIT: OVER_LIMIT 0, OK 2",
      "OK: OK 1",
    ],
    stats: {
      ...failed("local"),
      ...rule("local", { total_hits: 2, within_limit: 2 }),
      ...rule("plain", { total_hits: 4, over_limit: 2, near_limit: 1, over_limit_with_local_cache: 1 }),
    },
    asked: ["plain3", "local0", "local1"],
  },
];
