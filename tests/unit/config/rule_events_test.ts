import { assertEquals } from "#assert";
import { problemText } from "../../../src/base/problem.ts";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import { compileRules } from "../../../src/ratelimit/rules/compile_rules.ts";
import { eventsUnsent } from "../../../src/settings/rule_support.ts";
import type { RuleEvents } from "../../../src/ratelimit/rule_events.ts";

const LIMIT = "rate_limit: {unit: minute, requests_per_unit: 1}";

/** The events of a rule with these fields, and every problem. */
function read(fields: string, webhookStore: string | null = "weir.db") {
  const text = `domain: d\ndescriptors:\n- key: k\n${fields.replace(/^/gm, "  ")}\n`;
  const { source, problems } = readRuleFile("r.yaml", text);
  const checks = { eventsUnsent: eventsUnsent(webhookStore ?? undefined) };
  const compiled = compileRules(source === undefined ? [] : [source], checks);
  const texts = [...problems, ...compiled.problems].map((one) => `${one.severity} ${problemText(one)}`);
  return { events: compiled.rules?.limits[0]?.events, problems: texts };
}

const EVENTS = { at: "r.yaml:3:3", overLimit: false, nearLimit: false, redact: undefined };

const VALID: readonly (readonly [fields: string, events: RuleEvents | undefined])[] = [
  ["", undefined],
  ["events: []", undefined],
  ["events: ~", undefined],
  ["events: [over_limit]", { ...EVENTS, overLimit: true }],
  [
    'events:\n- near_limit\n- "over_limit"\nevents_redact: hash',
    { ...EVENTS, overLimit: true, nearLimit: true, redact: "hash" },
  ],
  ["events: [near_limit]\nevents_redact: omit", { ...EVENTS, nearLimit: true, redact: "omit" }],
];

for (const [fields, events] of VALID) {
  Deno.test(`events of a rule: ${JSON.stringify(fields)}`, () => {
    assertEquals(read(`${fields}\n${LIMIT}`.trimStart()), { events, problems: [] });
  });
}

const ONE_OF = "expected one of over_limit, near_limit";

const INVALID: readonly (readonly [fields: string, problem: string])[] = [
  ["events: [over_limit, above_limit]", `5:24: descriptors[0].events[1]: ${ONE_OF}; got 'above_limit'`],
  [
    "events: [over_limit, over_limit]",
    `5:24: descriptors[0].events[1]: ${ONE_OF}, each one time; got 'over_limit'`,
  ],
  ["events: [[over_limit]]", `5:12: descriptors[0].events[0]: ${ONE_OF}; got a list`],
  [
    "events: over_limit",
    "5:11: descriptors[0].events: expected a list, each item beginning with '-', got 'over_limit'",
  ],
  [
    "events: [over_limit]\nevents_redact: mask",
    "6:18: descriptors[0].events_redact: expected one of hash, omit, got 'mask'",
  ],
  [
    "events_redact: hash",
    "5:18: descriptors[0].events_redact: requires events; add events, or remove events_redact",
  ],
];

for (const [fields, problem] of INVALID) {
  Deno.test(`events of a rule that are refused: ${fields}`, () => {
    assertEquals(read(`${LIMIT}\n${fields}`).problems, [`error r.yaml:${problem}`]);
  });
}

Deno.test("events of a rule without a limit, or with none, are refused", () => {
  const at = "error r.yaml:3:3: descriptors[0].events:";
  assertEquals(
    ["", "\nrate_limit: {unlimited: true}"].flatMap((limit) => read(`events: [over_limit]${limit}`).problems),
    [
      `${at} requires a rate_limit; add one, or remove events`,
      `${at} has no meaning with 'unlimited: true'; remove one of them`,
    ],
  );
});

Deno.test("events of a rule in 'rate_limit' have no effect, which is a warning", () => {
  const { events, problems } = read("rate_limit: {unit: minute, requests_per_unit: 1, events: [over_limit]}");
  assertEquals(events, undefined);
  assertEquals(problems.map((text) => text.split(":").slice(0, 4).join(":")), [
    "warning r.yaml:4:52: descriptors[0].rate_limit.events",
  ]);
});

for (const store of [null, ""]) {
  Deno.test(`events of a rule without a webhook store are a warning: ${JSON.stringify(store)}`, () => {
    const { events, problems } = read(`events: [over_limit]\n${LIMIT}`, store);
    assertEquals([events?.overLimit, problems], [true, [
      "warning r.yaml:3:3: descriptors[0].events: has no effect without WEBHOOK_STORE, which stores and delivers " +
      "events; set it, or remove events",
    ]]);
  });
}
