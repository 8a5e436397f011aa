import { assertEquals } from "#assert";
import { problemText } from "../../../src/base/problem.ts";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import { checkSources } from "../../../src/ratelimit/rules/rule_check.ts";
import type { RateLimitSource } from "../../../src/ratelimit/rule_source.ts";
import { fixedWindowsOnly, separateWindows } from "../../../src/settings/rule_support.ts";

type Settings = Parameters<typeof separateWindows>[0];

const MEMORY: Settings = {
  BACKEND_TYPE: "memory",
  KV_TYPE: "single",
  KV_PERSECOND: false,
  CACHE_KEY_PREFIX: "",
  STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: false,
};
const SECOND = "{unit: second, requests_per_unit: 10}";
const DAY = "{unit: day, requests_per_unit: 1000}";
const SLIDING = "{unit: day, requests_per_unit: 1000, algorithm: sliding_window}";

function read(fields: string, settings = MEMORY): { limit: RateLimitSource | undefined; problems: string[] } {
  const { source, problems } = readRuleFile("r.yaml", `domain: d\ndescriptors:\n- {key: k, ${fields}}\n`);
  const checks = {
    fixedWindowsOnly: fixedWindowsOnly(settings.BACKEND_TYPE),
    separateWindows: separateWindows(settings),
  };
  const found = [...problems, ...checkSources(source === undefined ? [] : [source], checks)];
  const texts = found.map(({ severity, ...problem }) => {
    const text = problemText({ severity, ...problem }).replaceAll("descriptors[0]", "…");
    return severity === "error" ? text : `${severity}: ${text}`;
  });
  return { limit: source?.descriptors[0]?.rateLimit, problems: texts };
}

Deno.test("rate_limits: the windows in their order, with the name and the replaced rules of the rule", () => {
  const { limit, problems } = read(`name: a, replaces: [{name: b}], rate_limits: [${SECOND}, ${SLIDING}]`);
  const { further = [] } = limit ?? {};
  assertEquals(problems, []);
  assertEquals([limit?.name, limit?.replaces.map(({ name }) => name)], ["a", ["b"]]);
  assertEquals(
    [limit, ...further].map((window) => [window?.unit, window?.requestsPerUnit, window?.algorithm?.name]),
    [["SECOND", 10, undefined], ["DAY", 1000, "sliding_window"]],
  );
});

const WRONG: readonly [fields: string, ...problems: string[]][] = [
  [
    `rate_limits: [${DAY}]`,
    "r.yaml:3:25: ….rate_limits: expected two windows or more, got 1; use rate_limit for one",
  ],
  [
    "rate_limits: []",
    "r.yaml:3:25: ….rate_limits: expected two windows or more, got 0; use rate_limit for one",
  ],
  [
    `rate_limit: ${DAY}, rate_limits: [${SECOND}, ${DAY}]`,
    "r.yaml:3:75: ….rate_limits: is another way to write rate_limit; remove one of them",
  ],
  [
    `rate_limits: [${DAY}, {unit: hour, unit_multiplier: 24, requests_per_unit: 1}]`,
    "r.yaml:3:64: ….rate_limits[1]: has the length of ….rate_limits[0], 86400 s; keep the one with the lower limit",
  ],
  [
    `rate_limits: [${DAY}, {unlimited: true}]`,
    "r.yaml:3:76: ….rate_limits[1].unlimited: has no meaning in a list of windows; remove the window, or use rate_limit",
  ],
  [
    `rate_limits: [${DAY}, {algorithm: concurrency, max_in_flight: 1, lease: 1s}]`,
    "r.yaml:3:76: ….rate_limits[1].algorithm: limits hits in flight, not those of a window; use rate_limit in another rule",
  ],
  [
    `rate_limits: [${SECOND}, {unit: day, requests_per_unit: 1, name: a}]`,
    "r.yaml:3:105: ….rate_limits[1].name: belongs to the rule; write it next to rate_limits",
  ],
  [
    `rate_limits: [${SECOND}, 5]`,
    "r.yaml:3:65: ….rate_limits[1]: expected a mapping such as '{ unit: second, requests_per_unit: 10 }', got '5'",
  ],
  [
    `rate_limits: ${DAY}`,
    "r.yaml:3:25: ….rate_limits: expected a list, each item beginning with '-', got a mapping",
  ],
  [
    `rate_limit: [${SECOND}, ${DAY}]`,
    "r.yaml:3:24: ….rate_limit: expected a mapping, got a list; use rate_limits for several windows",
  ],
  [
    `ratelimits: [${SECOND}, ${DAY}]`,
    "r.yaml:3:12: …: unknown key 'ratelimits'; did you mean 'rate_limits'?",
  ],
  [
    `name: a, rate_limit: ${DAY}`,
    "warning: r.yaml:3:12: ….name: has no effect here; it belongs in 'rate_limit' or in an item of 'replaces'",
  ],
];

for (const [fields, ...expected] of WRONG) {
  Deno.test(`rate_limits: wrong: ${fields}`, () => assertEquals(read(fields).problems, expected));
}

Deno.test("rate_limits: at most 8 windows", () => {
  const windows = Array.from(
    { length: 9 },
    (_, index) => `{unit: day, unit_multiplier: ${index + 1}, requests_per_unit: 1}`,
  );
  assertEquals(read(`rate_limits: [${windows.join(", ")}]`).problems, [
    "r.yaml:3:3: ….rate_limits: expected at most 8 windows, got 9",
  ]);
});

Deno.test("rate_limits: a list that is taken together is an error where its windows are on several servers", () => {
  const kv = { ...MEMORY, BACKEND_TYPE: "kv" };
  const perSecond = { ...kv, KV_PERSECOND: true };
  const cluster = { ...kv, KV_TYPE: "cluster" };
  const stops = { STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: true };
  const isRefused = (settings: Settings, ...windows: string[]) =>
    read(`rate_limits: [${windows.join(", ")}]`, settings).problems.length > 0;
  const seconds = `{unit: second, unit_multiplier: 10, requests_per_unit: 5}`;
  const refused = {
    memory: isRefused({ ...MEMORY, ...stops }, SECOND, SLIDING),
    kv: isRefused({ ...kv, ...stops }, SECOND, SLIDING),
    perSecond: isRefused(perSecond, SECOND, SLIDING),
    "perSecond, fixed": isRefused(perSecond, SECOND, DAY),
    "perSecond, fixed, stops": isRefused({ ...perSecond, ...stops }, SECOND, DAY),
    "perSecond, seconds only, stops": isRefused({ ...perSecond, ...stops }, SECOND, seconds),
    cluster: isRefused({ ...cluster, ...stops, CACHE_KEY_PREFIX: "a{b}{}" }, SECOND, SLIDING),
    "cluster, '{}'": isRefused({ ...cluster, CACHE_KEY_PREFIX: "a}{}" }, SECOND, SLIDING),
    "cluster, '{}', fixed": isRefused({ ...cluster, CACHE_KEY_PREFIX: "{}" }, SECOND, DAY),
    "mc, fixed": isRefused({ ...MEMORY, BACKEND_TYPE: "mc" }, SECOND, DAY),
    "mc, fixed, stops": isRefused({ ...MEMORY, ...stops, BACKEND_TYPE: "mc" }, SECOND, DAY),
    "mc, sliding": isRefused({ ...MEMORY, BACKEND_TYPE: "mc" }, SECOND, SLIDING),
  };
  assertEquals(refused, {
    memory: false,
    kv: false,
    perSecond: true,
    "perSecond, fixed": false,
    "perSecond, fixed, stops": true,
    "perSecond, seconds only, stops": false,
    cluster: false,
    "cluster, '{}'": true,
    "cluster, '{}', fixed": false,
    "mc, fixed": false,
    "mc, fixed, stops": true,
    "mc, sliding": true,
  });
  assertEquals(read(`rate_limits: [${SECOND}, ${SLIDING}]`, perSecond).problems, [
    "r.yaml:3:3: ….rate_limits: with an algorithm other than fixed_window, a hit counts in all windows or in none, " +
    "but KV_PERSECOND counts those per second on another server; use two rules, fixed windows, or KV_PERSECOND=false",
  ]);
});
