import { assertEquals } from "#assert";
import type { Policy } from "../../../../src/ratelimit/decision/policy.ts";
import type { Descriptor, Entry, LimitOverride } from "../../../../src/ratelimit/request.ts";
import { ServiceFixture } from "../../../harness/service_fixture.ts";

const RULES = `
domain: d
descriptors:
- {key: second, rate_limit: {unit: second, requests_per_unit: 10}}
- {key: user, rate_limit: {unit: minute, requests_per_unit: 5}}
- {key: user, value: none, rate_limit: {unit: minute, requests_per_unit: 0}}
- {key: quota, quota_mode: true, rate_limit: {unit: minute, requests_per_unit: 0}}
- {key: shadow, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 0}}
- {key: tens, rate_limit: {unit: minute, unit_multiplier: 10, requests_per_unit: 70}}
- {key: sliding, rate_limit: {unit: hour, requests_per_unit: 3, algorithm: sliding_window}}
- {key: bill, rate_limit: {unit: year, requests_per_unit: 3, calendar: true}}
- {key: flight, rate_limit: {algorithm: concurrency, max_in_flight: 2, lease: 60s}}
- {key: free, rate_limit: {unlimited: true}}
- {key: named, rate_limit: {unit: day, requests_per_unit: 7, name: user}}
- key: path
  value: /a/*
  descriptors:
  - {key: user, rate_limit: {unit: week, requests_per_unit: 8}}
- {key: "${"k".repeat(70)}", value: "1", rate_limit: {unit: day, requests_per_unit: 1}}
- {key: "${"k".repeat(70)}", value: "2", rate_limit: {unit: day, requests_per_unit: 2}}
- key: token
  value: {in: [mine, yours]}
  rate_limit: {unit: day, requests_per_unit: 5}
  descriptors:
  - {key: path, value: {regex: ^/a}, rate_limit: {unit: day, requests_per_unit: 6}}
- {key: 'é"', rate_limit: {unit: day, requests_per_unit: 3}}
- {key: 'è"', rate_limit: {unit: day, requests_per_unit: 4}}
`;
const UNITS = { limit: "ratelimit-limit", remaining: "ratelimit-remaining" };
const ALL: Partial<Policy> = { unitHeaders: UNITS };
const STANDARD: Partial<Policy> = { standardHeaders: true };
const BOTH: Partial<Policy> = { unitHeaders: UNITS, standardHeaders: true };
const NAMED: Partial<Policy> = { responseHeaders: { limit: "L", remaining: "M", reset: "R" } };

/** A descriptor from `key=value,key=value`; a value is `v` if it is not given. */
function descriptor(text: string, limit?: LimitOverride): Descriptor {
  const entries = text.split(",").map((pair): Entry => {
    const [key = "", value = "v"] = pair.split("=");
    return { key, value };
  });
  return { entries, limit };
}

async function headers(policy: Partial<Policy>, descriptors: readonly Descriptor[]): Promise<string[]> {
  await using fixture = new ServiceFixture({ files: { "r.yaml": RULES }, policy });
  const decision = await fixture.service.shouldRateLimit({ domain: "d", hitsAddend: 0, descriptors });
  return decision.responseHeadersToAdd.map(({ key, value }) => `${key}: ${value}`);
}

const own = (requestsPerUnit: number): LimitOverride => ({ requestsPerUnit, unit: "MONTH" });
const LONG = "k".repeat(64);

const CASES: Readonly<
  Record<string, [policy: Partial<Policy>, descriptors: Descriptor[], headers: string[]]>
> = {
  "no values of a list, of which each client has one": [
    BOTH,
    ["token=mine", "token=mine,path=/ab"].map((text) => descriptor(text)),
    [
      "ratelimit-limit-days: 5",
      "ratelimit-remaining-days: 4",
      'RateLimit-Policy: "token";q=5;w=86400, "token.path_regex(^/a)";q=6;w=86400',
      'RateLimit: "token";r=4;t=6400, "token.path_regex(^/a)";r=5;t=6400',
    ],
  ],
  "a header for each unit, in the order of the request": [
    ALL,
    ["second", "user", "path=/a/b,user"].map((text) => descriptor(text)),
    [
      "ratelimit-limit-seconds: 10",
      "ratelimit-remaining-seconds: 9",
      "ratelimit-limit-minutes: 5",
      "ratelimit-remaining-minutes: 4",
      "ratelimit-limit-weeks: 8",
      "ratelimit-remaining-weeks: 7",
    ],
  ],
  "of two limits of one unit, that with the least remaining": [
    ALL,
    ["tens", "user"].map((text) => descriptor(text)),
    ["ratelimit-limit-minutes: 5", "ratelimit-remaining-minutes: 4"],
  ],
  "of two limits of one unit, the exceeded one that is not a quota": [
    ALL,
    ["user=none", "quota", "user"].map((text) => descriptor(text)),
    ["ratelimit-limit-minutes: 0", "ratelimit-remaining-minutes: 0"],
  ],
  "each unit has its own, whatever decides on the call": [
    ALL,
    ["user=none", "second"].map((text) => descriptor(text)),
    [
      "ratelimit-limit-minutes: 0",
      "ratelimit-remaining-minutes: 0",
      "ratelimit-limit-seconds: 10",
      "ratelimit-remaining-seconds: 9",
    ],
  ],
  "limits of all kinds, but not those without a count": [
    ALL,
    ["free", "nothing", "shadow", "sliding", "flight"].map((text) => descriptor(text)),
    [
      "ratelimit-limit-days: 0",
      "ratelimit-remaining-days: 0",
      "ratelimit-limit-hours: 3",
      "ratelimit-remaining-hours: 2",
      "ratelimit-limit-concurrent-requests: 2",
      "ratelimit-remaining-concurrent-requests: 1",
    ],
  ],
  "the limit of a request": [
    ALL,
    [descriptor("a", own(6))],
    ["ratelimit-limit-months: 6", "ratelimit-remaining-months: 5"],
  ],
  "no headers without a limit": [BOTH, [descriptor("free"), descriptor("nothing")], []],
  "they take the place of the three headers": [
    { ...NAMED, ...ALL },
    [descriptor("second")],
    ["ratelimit-limit-seconds: 10", "ratelimit-remaining-seconds: 9"],
  ],
  "the three headers are of the limit that decides": [
    NAMED,
    ["user=none", "second"].map((text) => descriptor(text)),
    ["L: 0", "M: 0", "R: 40"],
  ],
  "the standard headers name the limit that decides by its key": [
    STANDARD,
    ["second", "path=/a/b,user=ann"].map((text) => descriptor(text)),
    ['RateLimit-Policy: "path_/a/*.user";q=8;w=604800', 'RateLimit: "path_/a/*.user";r=7;t=92800'],
  ],
  "the length of a calendar window is that of the current one": [
    STANDARD,
    [descriptor("bill")],
    ['RateLimit-Policy: "bill";q=3;w=31536000', 'RateLimit: "bill";r=2;t=4067200'],
  ],
  "a value that a request has is not in a name": [
    STANDARD,
    [descriptor("user=secret")],
    ['RateLimit-Policy: "user";q=5;w=60', 'RateLimit: "user";r=4;t=40'],
  ],
  "the limit of a request is named by the keys of its entries": [
    STANDARD,
    [descriptor("user=secret,path=/x", own(6))],
    ['RateLimit-Policy: "user.path";q=6;w=2592000', 'RateLimit: "user.path";r=5;t=352000'],
  ],
  "with all limits, the standard headers are lists": [
    BOTH,
    ["second", "flight", "named", "user"].map((text) => descriptor(text)),
    [
      "ratelimit-limit-seconds: 10",
      "ratelimit-remaining-seconds: 9",
      "ratelimit-limit-concurrent-requests: 2",
      "ratelimit-remaining-concurrent-requests: 1",
      "ratelimit-limit-days: 7",
      "ratelimit-remaining-days: 6",
      "ratelimit-limit-minutes: 5",
      "ratelimit-remaining-minutes: 4",
      'RateLimit-Policy: "second";q=10;w=1, "flight";q=2;qu="concurrent-requests", "user";q=7;w=86400, ' +
      '"user-2";q=5;w=60',
      'RateLimit: "second";r=9;t=1, "flight";r=1, "user";r=6;t=6400, "user-2";r=4;t=40',
    ],
  ],
  "names are short, printable and differ": [
    { ...BOTH, unitHeaders: { limit: "l", remaining: "r" } },
    [`${"k".repeat(70)}=1`, `${"k".repeat(70)}=2`, 'é"', 'è"'].map((text) => descriptor(text)),
    [
      "l-days: 1",
      "r-days: 0",
      `RateLimit-Policy: "${LONG}";q=1;w=86400, "${LONG}-2";q=2;w=86400, "?\\"";q=3;w=86400, "?\\"-2";q=4;w=86400`,
      `RateLimit: "${LONG}";r=0;t=6400, "${LONG}-2";r=1;t=6400, "?\\"";r=2;t=6400, "?\\"-2";r=3;t=6400`,
    ],
  ],
};

for (const [name, [policy, descriptors, expected]] of Object.entries(CASES)) {
  Deno.test(`headers: ${name}`, async () => {
    assertEquals(await headers(policy, descriptors), expected);
  });
}

Deno.test("headers: the lists have at most 32 limits, among them the one that decides", async () => {
  const descriptors = Array.from(
    { length: 1_000 },
    (_, index) => descriptor(`user=${index}`, own(index === 900 ? 1 : 9)),
  );
  const lists = (await headers(BOTH, descriptors)).slice(2);
  const quotas = lists.map((list) => list.split(", ").length);
  assertEquals(quotas, [32, 32]);
  assertEquals(lists.map((list) => list.split(", ").at(-1)), [
    '"user-32";q=1;w=2592000',
    '"user-32";r=0;t=352000',
  ]);
});
