import { assertEquals } from "#assert";
import { problemText } from "../../../src/base/problem.ts";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import { checkSources } from "../../../src/ratelimit/rules/rule_check.ts";
import type { RateLimitSource } from "../../../src/ratelimit/rule_source.ts";
import { fixedWindowsOnly } from "../../../src/settings/rule_support.ts";

function read(block: string): { limit: RateLimitSource | undefined; problems: string[] } {
  const text = `domain: d\ndescriptors:\n- key: k\n  rate_limit: ${block}\n`;
  const { source, problems } = readRuleFile("r.yaml", text);
  const texts = problems.map(({ severity, ...problem }) => {
    return `${severity}: ${problemText({ severity, ...problem }).replace("descriptors[0].rate_limit", "…")}`;
  });
  return { limit: source?.descriptors[0]?.rateLimit, problems: texts };
}

/** The position of the value of a key, or that of the block without it. */
function positionOf(block: string, key: string): string {
  const start = block.indexOf(`${key}: `);
  return `r.yaml:4:${15 + (start < 0 ? 0 : start + key.length + 2)}`;
}

const UNIT = "unit: minute, requests_per_unit: 5";
const MONTH = "unit: month, requests_per_unit: 5";
const FLIGHT = "algorithm: concurrency, max_in_flight: 20";

/** Replaced by the position of the algorithm. */
const AT = "";

/** Blocks without problems, and what is read of them. */
const GOOD: readonly [block: string, read: Partial<RateLimitSource>][] = [
  [`{${UNIT}}`, { requestsPerUnit: 5, unit: "MINUTE" }],
  [`{${UNIT}, algorithm: fixed_window, unit_multiplier: 3}`, { unitMultiplier: 3 }],
  [`{${UNIT}, algorithm: sliding_window}`, { algorithm: { at: AT, name: "sliding_window" } }],
  [
    `{${UNIT}, algorithm: token_bucket}`,
    { algorithm: { at: AT, name: "token_bucket", burst: 5 } },
  ],
  [
    `{${UNIT}, algorithm: token_bucket, burst: 2147483648}`,
    { algorithm: { at: AT, name: "token_bucket", burst: 2 ** 31 } },
  ],
  [
    "{unit: year, requests_per_unit: 0, unit_multiplier: 100, algorithm: token_bucket}",
    { algorithm: { at: AT, name: "token_bucket", burst: 0 } },
  ],
  [
    `{${FLIGHT}, lease: 24h, name: a, replaces: [{name: b}]}`,
    {
      name: "a",
      requestsPerUnit: 20,
      unit: undefined,
      unitMultiplier: 1,
      algorithm: { at: AT, name: "concurrency", leaseSeconds: 86_400 },
    },
  ],
  [`{${MONTH}, calendar: true}`, { calendar: { timezone: "UTC" } }],
  [`{${MONTH}, calendar: false}`, { calendar: false }],
  [
    `{${MONTH}, unit_multiplier: 3, algorithm: fixed_window, calendar: true, timezone: Europe/Paris}`,
    { unitMultiplier: 3, calendar: { timezone: "Europe/Paris" } },
  ],
  ...["day", "WEEK", "year"].map((unit): [string, Partial<RateLimitSource>] => [
    `{unit: ${unit}, requests_per_unit: 5, calendar: true, timezone: "America/Santiago"}`,
    { calendar: { timezone: "America/Santiago" } },
  ]),
];

for (const [block, expected] of GOOD) {
  Deno.test(`rate_limit: ${block}`, () => {
    const { limit, problems } = read(block);
    assertEquals(problems, []);
    const found: Record<string, unknown> = { ...limit };
    for (const [key, value] of Object.entries(expected)) {
      const at = positionOf(block, "algorithm");
      assertEquals(found[key], key === "algorithm" ? { ...Object(value), at } : value, key);
    }
  });
}

const LEASE = "lease: expected whole seconds up to 24h, longer than any request, such as 60s; got ";
const IN_FLIGHT = "has no meaning with 'algorithm: concurrency', which counts hits in flight; " +
  "use max_in_flight and lease";
const UNLIMITED = "has no meaning with 'unlimited: true'; remove one of them";

const NO_CALENDAR = "timezone: requires 'calendar: true'; set it, or remove timezone";
const NO_BURST = "burst: requires 'algorithm: token_bucket'; set it, or remove burst";
const BURST = "burst: expected a whole number from 1 to 2147483648, got";

/** Blocks that become no rule, and their problems. */
const BAD: readonly [block: string, ...problems: string[]][] = [
  [
    `{${UNIT}, algorithm: leaky_bucket}`,
    "algorithm: expected one of fixed_window, sliding_window, token_bucket, concurrency, got 'leaky_bucket'",
  ],
  [`{${UNIT}, burst: 9}`, NO_BURST],
  [`{${UNIT}, algorithm: sliding_window, burst: 9}`, NO_BURST],
  [`{${UNIT}, algorithm: token_bucket, burst: 2147483649}`, `${BURST} '2147483649'`],
  [`{${UNIT}, algorithm: token_bucket, burst: 0}`, `${BURST} '0'`],
  [
    "{unit: minute, requests_per_unit: 0, algorithm: token_bucket, burst: 5}",
    "burst: has no meaning with 'requests_per_unit: 0', which blocks every request",
  ],
  [`{${UNIT}, lease: 5s}`, "lease: requires 'algorithm: concurrency'; set it, or remove lease"],
  [
    `{${UNIT}, max_in_flight: 5}`,
    "max_in_flight: requires 'algorithm: concurrency'; set it, or remove max_in_flight",
  ],
  [`{${FLIGHT}}`, `${LEASE}nothing`],
  ...["25h", "500ms", "0", "soon"].map((lease): [string, string] => {
    return [`{${FLIGHT}, lease: ${lease}}`, `${LEASE}'${lease}'`];
  }),
  [
    "{algorithm: concurrency, lease: 5s}",
    "max_in_flight: expected a whole number from 0 to 4294967295 (0 blocks every request); got nothing",
  ],
  [
    `{${FLIGHT}, lease: 5s, unit: second, requests_per_unit: 3, unit_multiplier: 2}`,
    ...["unit", "requests_per_unit", "unit_multiplier"].map((key) => `${key}: ${IN_FLIGHT}`),
  ],
  [`{${MONTH}, timezone: Europe/Paris}`, NO_CALENDAR],
  [`{${MONTH}, calendar: false, timezone: Europe/Paris}`, NO_CALENDAR],
  [`{${MONTH}, calendar: monthly}`, "calendar: expected true or false, got 'monthly'"],
  ...["Europe/Pariss", "''", "+25:00"].map((zone): [string, string] => {
    const text = `unknown time zone '${
      zone.replaceAll("'", "")
    }'; expected an IANA name, such as Europe/Paris or UTC`;
    return [`{${MONTH}, calendar: true, timezone: ${zone}}`, `timezone: ${text}`];
  }),
  ...["second", "minute", "hour"].map((unit): [string, string] => {
    const text =
      `has no meaning with 'unit: ${unit}'; expected the unit day, week, month or year, or no calendar`;
    return [`{unit: ${unit}, requests_per_unit: 5, calendar: true}`, `calendar: ${text}`];
  }),
  ...["day", "week", "year"].map((unit): [string, string] => {
    const text =
      `has no meaning with 'calendar: true' and 'unit: ${unit}'; remove one of them, or use months`;
    return [
      `{unit: ${unit}, requests_per_unit: 5, unit_multiplier: 2, calendar: true}`,
      `unit_multiplier: ${text}`,
    ];
  }),
  [
    `{${MONTH}, unit_multiplier: 5, calendar: true}`,
    "unit_multiplier: expected one of 1, 2, 3, 4, 6, 12 with 'calendar: true': windows of months divide the year; got 5",
  ],
  ...["sliding_window", "token_bucket"].map((algorithm): [string, string, string] => [
    `{${MONTH}, algorithm: ${algorithm}, calendar: true, timezone: UTC}`,
    `calendar: has no meaning with 'algorithm: ${algorithm}', which has no fixed windows; remove it`,
    `timezone: has no meaning with 'algorithm: ${algorithm}', which has no fixed windows; remove it`,
  ]),
  [
    `{${FLIGHT}, lease: 5s, calendar: false}`,
    "calendar: has no meaning with 'algorithm: concurrency', which has no fixed windows; remove it",
  ],
  ["{unlimited: true, calendar: true}", `calendar: ${UNLIMITED}`],
  ["{unlimited: true, timezone: UTC}", `timezone: ${UNLIMITED}`],
  ["{unlimited: true, algorithm: sliding_window}", `algorithm: ${UNLIMITED}`],
  ["{unlimited: true, algorithm: fixed_window}", `algorithm: ${UNLIMITED}`],
  [
    "{unit: year, requests_per_unit: 5, unit_multiplier: 101, algorithm: sliding_window}",
    "unit_multiplier: expected at most 100 years with 'algorithm: sliding_window'",
  ],
];

for (const [block, ...expected] of BAD) {
  Deno.test(`rate_limit is refused: ${block}`, () => {
    const { limit, problems } = read(block);
    assertEquals([limit, problems], [
      undefined,
      expected.map((text) => {
        return `error: ${positionOf(block, text.split(":")[0] ?? "")}: ….${text}`;
      }),
    ]);
  });
}

Deno.test("rate_limit: a default burst beyond 2^31 is capped with a warning", () => {
  const { limit, problems } = read(
    "{unit: minute, requests_per_unit: 2147483649, algorithm: token_bucket}",
  );
  assertEquals(limit?.algorithm, { at: "r.yaml:4:72", name: "token_bucket", burst: 2 ** 31 });
  assertEquals(problems, [
    "warning: r.yaml:4:49: ….requests_per_unit: the burst is 2147483648, the largest one; " +
    "set 'burst' to this or less",
  ]);
});

Deno.test("a cache that counts fixed windows only refuses other algorithms with their position", () => {
  const text = `domain: d
descriptors:
- {key: a, rate_limit: {${UNIT}}}
- key: b
  descriptors:
  - key: c
    rate_limit: {${UNIT}, algorithm: sliding_window}
`;
  const { source } = readRuleFile("r.yaml", text);
  const problems = (backend: string) => {
    const checks = { fixedWindowsOnly: fixedWindowsOnly(backend) };
    return checkSources(source === undefined ? [] : [source], checks).map(problemText);
  };
  assertEquals([problems("memory"), problems("kv")], [[], []]);
  assertEquals(problems("mc"), [
    "r.yaml:7:65: descriptors[1].descriptors[0].rate_limit.algorithm: sliding_window cannot be counted in " +
    "memcached (BACKEND_TYPE=mc); remove it for a fixed window, or set BACKEND_TYPE to kv or memory",
  ]);
});
