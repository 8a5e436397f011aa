import { assertEquals } from "@std/assert";
import { problemText } from "../../../src/base/problem.ts";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import { compileRules } from "../../../src/ratelimit/compile_rules.ts";
import { eventsUnsent } from "../../../src/ratelimit/events_unsent.ts";
import type { RuleEvents } from "../../../src/ratelimit/rule_events.ts";

const LIMIT = "rate_limit: {unit: minute, requests_per_unit: 1}";

/** The events of a rule with these fields, and every problem. */
function read(fields: string, webhookStore: string | undefined = "weir.db") {
  const text = `domain: d\ndescriptors:\n- key: k\n${fields.replace(/^/gm, "  ")}\n`;
  const { source, problems } = readRuleFile("r.yaml", text);
  const checks = { mergeDomains: false, eventsUnsent: eventsUnsent(webhookStore) };
  const compiled = compileRules(source === undefined ? [] : [source], checks);
  const texts = [...problems, ...compiled.problems].map((one) => `${one.severity} ${problemText(one)}`);
  return { events: compiled.rules?.limits[0]?.events, problems: texts };
}

const VALID: readonly { name: string; fields: string; events: RuleEvents | undefined }[] = [
  { name: "none", fields: LIMIT, events: undefined },
  { name: "an empty list", fields: `events: []\n${LIMIT}`, events: undefined },
  { name: "nothing in place of the list", fields: `events: ~\n${LIMIT}`, events: undefined },
  {
    name: "over_limit",
    fields: `events: [over_limit]\n${LIMIT}`,
    events: { at: "r.yaml:3:3", overLimit: true, nearLimit: false, redact: undefined },
  },
  {
    name: "both, with hashes",
    fields: `events:\n- near_limit\n- "over_limit"\nevents_redact: hash\n${LIMIT}`,
    events: { at: "r.yaml:3:3", overLimit: true, nearLimit: true, redact: "hash" },
  },
  {
    name: "near_limit without values",
    fields: `events: [near_limit]\nevents_redact: omit\n${LIMIT}`,
    events: { at: "r.yaml:3:3", overLimit: false, nearLimit: true, redact: "omit" },
  },
];

for (const { name, fields, events } of VALID) {
  Deno.test(`events of a rule: ${name}`, () => assertEquals(read(fields), { events, problems: [] }));
}

const INVALID: readonly { name: string; fields: string; problem: string }[] = [
  {
    name: "an unknown event",
    fields: `${LIMIT}\nevents: [over_limit, above_limit]`,
    problem:
      "r.yaml:5:24: descriptors[0].events[1]: expected one of over_limit, near_limit; got 'above_limit'",
  },
  {
    name: "an event given twice",
    fields: `${LIMIT}\nevents: [over_limit, over_limit]`,
    problem:
      "r.yaml:5:24: descriptors[0].events[1]: expected one of over_limit, near_limit, each one time; " +
      "got 'over_limit'",
  },
  {
    name: "a list in the list",
    fields: `${LIMIT}\nevents: [[over_limit]]`,
    problem: "r.yaml:5:12: descriptors[0].events[0]: expected one of over_limit, near_limit; got a list",
  },
  {
    name: "a text in place of the list",
    fields: `${LIMIT}\nevents: over_limit`,
    problem:
      "r.yaml:5:11: descriptors[0].events: expected a list, each item beginning with '-', got 'over_limit'",
  },
  {
    name: "an unknown redaction",
    fields: `${LIMIT}\nevents: [over_limit]\nevents_redact: mask`,
    problem: "r.yaml:6:18: descriptors[0].events_redact: expected one of hash, omit, got 'mask'",
  },
  {
    name: "a redaction without events",
    fields: `${LIMIT}\nevents_redact: hash`,
    problem:
      "r.yaml:5:18: descriptors[0].events_redact: requires events; add events, or remove events_redact",
  },
  {
    name: "with unlimited",
    fields: "events: [over_limit]\nrate_limit: {unlimited: true}",
    problem: "r.yaml:3:3: descriptors[0].events: has no meaning with 'unlimited: true'; remove one of them",
  },
  {
    name: "without a limit",
    fields: "events: [over_limit]",
    problem: "r.yaml:3:3: descriptors[0].events: requires a rate_limit; add one, or remove events",
  },
];

for (const { name, fields, problem } of INVALID) {
  Deno.test(`events of a rule that are refused: ${name}`, () => {
    const { problems } = read(fields);
    assertEquals(problems, [`error ${problem}`]);
  });
}

Deno.test("events of a rule in 'rate_limit' have no effect, which is a warning", () => {
  const { events, problems } = read("rate_limit: {unit: minute, requests_per_unit: 1, events: [over_limit]}");
  assertEquals(events, undefined);
  assertEquals(problems.map((text) => text.split(":").slice(0, 4).join(":")), [
    "warning r.yaml:4:52: descriptors[0].rate_limit.events",
  ]);
});

for (const store of [undefined, ""]) {
  Deno.test(`events of a rule without a webhook store are a warning: ${JSON.stringify(store)}`, () => {
    const { source } = readRuleFile(
      "r.yaml",
      `domain: d\ndescriptors:\n- key: k\n  events: [over_limit]\n  ${LIMIT}\n`,
    );
    const checks = { mergeDomains: false, eventsUnsent: eventsUnsent(store) };
    const { rules, problems } = compileRules(source === undefined ? [] : [source], checks);
    assertEquals(rules?.limits.length, 1);
    assertEquals(problems, [{
      severity: "warning",
      at: "r.yaml:3:3",
      path: "descriptors[0].events",
      text: "has no effect without WEBHOOK_STORE, which stores and delivers events; set it, or remove events",
    }]);
  });
}
