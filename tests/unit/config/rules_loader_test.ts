import { assertEquals } from "@std/assert";
import type { RulesLoad } from "../../../src/config/provider.ts";
import { type ConcludedLoad, startRules } from "../../../src/config/rules_loader.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { HandProvider, rulesLoad as load } from "../../harness/hand_rules_provider.ts";
import { RulesStory } from "../../harness/rules_story.ts";

const GOOD = load({ "a.yaml": "domain: a\ndescriptors: []\n" });
const DUBIOUS = load({ "a.yaml": "domain: b\n" });
const BAD = load({
  "a.yaml": "domain: c\ndescriptors:\n- vale: 1\n",
  "b.yaml": "domain: c\ndescriptors: []\n",
});
const MIXED = load({ "a.yaml": "domain: d\ndescriptors:\n- key: k\n- key: k\n  shadow_mode: 1\n" });
const EMPTY: RulesLoad = { sources: [], problems: [], version: "" };
const UNCHANGED: RulesLoad = { sources: [], problems: [], version: "", isUnchanged: true };
const UNREADABLE: RulesLoad = {
  sources: undefined,
  problems: [{ severity: "error", at: "dir", path: "", text: "gone" }],
  version: "",
};

const BAD_LINES = [
  "error: a.yaml:3:3: descriptors[0]: unknown key 'vale'; did you mean 'value'?",
  "error: a.yaml:3:3: descriptors[0].key: descriptor has empty key",
  "error: b.yaml:1:9: domain: duplicate domain 'c' in config file; it is already in a.yaml:1:9, " +
  "and MERGE_DOMAIN_CONFIG=true would allow that",
];
const DUBIOUS_LINE =
  "warning: a.yaml:1:1: descriptors: there are no descriptors, so nothing in this domain is limited; " +
  "write 'descriptors: []' if that is meant";
const LOADED = "info: Rules loaded";

const CASES: readonly (readonly [name: string, loads: RulesLoad[], story: string[], failing: string[]])[] = [
  ["good", [GOOD], ["rules: a v7", "succeeded", LOADED], []],
  ["good with a warning", [DUBIOUS], [DUBIOUS_LINE, "rules: b v7", "succeeded", LOADED], []],
  ["every problem of a rejected one", [BAD], [
    ...BAD_LINES,
    "failed",
    "error: Rules rejected; waiting for valid rules errors=3",
  ], ["no rate limit configuration loaded"]],
  ["problems of several passes in the order of the file", [MIXED], [
    "error: a.yaml:4:3: descriptors[1]: duplicate descriptor composite key 'd.k'; the first one is at a.yaml:3:3",
    "error: a.yaml:5:16: descriptors[1].shadow_mode: expected true or false, got '1'",
    "failed",
    "error: Rules rejected; waiting for valid rules errors=2",
  ], ["no rate limit configuration loaded"]],
  ["rejected after a good one", [GOOD, UNREADABLE], [
    "rules: a v7",
    "succeeded",
    LOADED,
    "error: dir: gone",
    "failed",
    "error: Rules rejected; keeping the previous rules errors=1",
  ], []],
  ["unchanged after a good one with a warning", [DUBIOUS, UNCHANGED], [
    DUBIOUS_LINE,
    "rules: b v7",
    "succeeded",
    LOADED,
    DUBIOUS_LINE,
    "rules: b ",
    "succeeded",
    LOADED,
  ], []],
  ["unchanged after a rejected one", [GOOD, UNREADABLE, UNCHANGED], [
    "rules: a v7",
    "succeeded",
    LOADED,
    ...["error: dir: gone", "failed", "error: Rules rejected; keeping the previous rules errors=1"],
    ...["error: dir: gone", "failed", "error: Rules rejected; keeping the previous rules errors=1"],
  ], []],
  ["without a domain", [EMPTY], ["rules:  ", "succeeded", LOADED], [
    "the rate limit configuration has no domain",
  ]],
  ["without a domain after a good one, and rejected", [GOOD, EMPTY, UNREADABLE], [
    "rules: a v7",
    "succeeded",
    LOADED,
    "rules:  ",
    "succeeded",
    LOADED,
    "error: dir: gone",
    "failed",
    "error: Rules rejected; keeping the previous rules errors=1",
  ], ["the rate limit configuration has no domain"]],
];

for (const [name, loads, expected, failing] of CASES) {
  Deno.test(`rules loader: ${name}`, async () => {
    const story = new RulesStory();
    const provider = new HandProvider();
    const loader = story.start(provider);
    for (const one of loads) provider.load(one);
    assertEquals(story.take(), expected);
    assertEquals(
      story.health.failing().map(({ name, reason }) => `${name}: ${reason}`),
      failing.map((reason) => `config: ${reason}`),
    );
    await loader.close();
  });
}

const NOTE = "a.yaml:3:3: descriptors[0]: unknown key 'vale'; did you mean 'value'?";
const NOTES: readonly (readonly [name: string, loads: RulesLoad[], isNoted: boolean, lastLine: string])[] = [
  ["at first", [BAD], true, "error: Rules rejected; waiting for valid rules errors=3"],
  ["and the first rules follow", [BAD, GOOD], false, "warning: Rules loaded"],
  ["twice", [GOOD, UNREADABLE, BAD], true, "error: Rules rejected; keeping the previous rules errors=3"],
  ["and rules load again", [GOOD, BAD, GOOD], false, "warning: Rules loaded again"],
  ["and rules load twice", [GOOD, BAD, GOOD, GOOD], false, LOADED],
];

for (const [name, loads, isNoted, lastLine] of NOTES) {
  Deno.test(`rules loader: a note while the last load is rejected, ${name}`, async () => {
    const story = new RulesStory();
    story.requiresRules = false;
    const provider = new HandProvider();
    const loader = story.start(provider);
    for (const one of loads) provider.load(one);
    const noted = story.health.degraded().map(({ name, reason }) => `${name}: ${reason}`);
    const meanwhile = loads.includes(GOOD) ? "the previous rules stay" : "there are no rules yet";
    const [first, ...others] = noted;
    assertEquals(first, isNoted ? `config: rules rejected, ${meanwhile}: ${NOTE}` : undefined);
    assertEquals([story.health.failing(), others.length], [[], isNoted ? 2 : 0]);
    assertEquals(story.take().at(-1), lastLine);
    await loader.close();
  });
}

Deno.test("rules loader: merging allows the same domain twice", async () => {
  const story = new RulesStory();
  const provider = new HandProvider();
  const loader = story.start(provider, new FakeClock(), true);
  const twice = load({ "a.yaml": "domain: a\ndescriptors: []\n", "b.yaml": "domain: a\ndescriptors: []\n" });
  assertEquals(provider.load(twice), []);
  assertEquals(story.take(), ["rules: a v7", "succeeded", LOADED]);
  await loader.close();
});

Deno.test("rules loader: answers the problems and keeps the last loads", async () => {
  const clock = new FakeClock(1_000);
  const provider = new HandProvider();
  const loader = new RulesStory().start(provider, clock);
  assertEquals(loader.loads(), []);
  const { problems } = UNREADABLE;
  assertEquals(provider.load(UNREADABLE), problems);
  const rejected = { at: 1_000, ok: false, problems, changed: [], version: UNREADABLE.version, limits: 0 };
  assertEquals(loader.loads(), [rejected]);
  clock.advance(500);
  provider.load({ ...GOOD, changed: ["a.yaml"] });
  const accepted = {
    at: 1_500,
    ok: true,
    problems: [],
    changed: ["a.yaml"],
    version: GOOD.version,
    limits: 0,
  };
  assertEquals(loader.loads(), [accepted, rejected]);
  for (let count = 0; count < 20; count++) provider.load(UNREADABLE);
  assertEquals(loader.loads().length, 10);
  await loader.firstRules;
  await loader.close();
});

Deno.test("rules loader: a rejected first configuration is told every 30 s until one is good", async () => {
  const clock = new FakeClock();
  const story = new RulesStory();
  const provider = new HandProvider();
  const loader = story.start(provider, clock);
  const told = [
    "error: dir: gone",
    "error: Rules rejected; waiting for valid rules errors=1",
  ];
  provider.load(UNREADABLE);
  assertEquals(story.take(), [told[0], "failed", told[1]]);
  clock.advance(29_999);
  assertEquals(story.take(), []);
  clock.advance(1);
  assertEquals(story.take(), told);
  clock.advance(60_000);
  assertEquals(story.take(), [...told, ...told]);
  provider.load(GOOD);
  story.take();
  provider.load(UNREADABLE);
  story.take();
  clock.advance(60_000);
  assertEquals(story.take(), []);
  assertEquals(clock.waiting, 0);
  await loader.close();
});

Deno.test("rules loader: of many problems 100 are logged, errors before warnings, each in its place", async () => {
  const story = new RulesStory();
  const provider = new HandProvider();
  const loader = story.start(provider);
  const problem = (severity: "error" | "warning", line: number) => {
    return { severity, at: `a.yaml:${line}:1`, path: "", text: severity };
  };
  const lines = Array.from({ length: 120 }, (_, index) => index + 1);
  const problems = lines.map((line) => problem(line % 12 === 0 ? "error" : "warning", line));
  provider.load({ sources: undefined, problems, version: "" });
  const told = problems.map(({ severity, at }) => `${severity}: ${at}: ${severity}`);
  assertEquals(story.take(), [
    // Ten errors, all of them, and the first 90 of the warnings.
    ...told.slice(0, 98),
    "error: a.yaml:108:1: error",
    "error: a.yaml:120:1: error",
    "warning: 20 more problems not logged; 'weir check' shows those of files",
    "failed",
    "error: Rules rejected; waiting for valid rules errors=10",
  ]);
  assertEquals(loader.loads()[0]?.problems.length, 120);
  await loader.close();
});

Deno.test("rules loader: closing ends the telling", async () => {
  const clock = new FakeClock();
  const provider = new HandProvider();
  const loader = new RulesStory().start(provider, clock);
  provider.load(UNREADABLE);
  assertEquals(clock.waiting, 1);
  await loader.close();
  assertEquals(clock.waiting, 0);
});

Deno.test("rules loader: rules that are applied in other threads are reported once they are in force", async () => {
  const bed = new RulesStory();
  const provider = new HandProvider();
  const applied = Promise.withResolvers<void>();
  const loader = bed.start(provider, new FakeClock(1_000), false, applied.promise);
  const loading = provider.load(GOOD);
  assertEquals([bed.take(), bed.health.healthy], [["rules: a v7"], false]);
  applied.resolve();
  await loader.firstRules;
  assertEquals([await loading, bed.take(), bed.health.healthy], [
    [],
    ["succeeded", "info: Rules loaded"],
    true,
  ]);
});

Deno.test("rules loader: many rules are compiled in slices, and closing ends that", async () => {
  const rules = Array.from({ length: 1_000 }, (_, index) => `- key: k${index}\n`).join("");
  const many = load({ "m.yaml": `domain: m\ndescriptors:\n${rules}` });
  for (const isClosed of [false, true]) {
    const bed = new RulesStory();
    const provider = new HandProvider();
    const clock = new FakeClock(1_000);
    // Each look at the clock takes as long as a slice.
    let elapsedMs = 0;
    clock.elapsed = () => elapsedMs += 10;
    const loader = bed.start(provider, clock);
    const loading = provider.load(many);
    assertEquals([bed.take(), clock.waiting], [[], 1]);
    if (isClosed) await loader.close();
    while (clock.waiting > 0) clock.advance(0);
    if (isClosed) await Promise.resolve();
    else await loading;
    assertEquals(bed.take(), isClosed ? [] : ["rules: m v7", "succeeded", "info: Rules loaded"]);
  }
});

Deno.test("each load that differs from the previous one is reported, also to those that listen for events", () => {
  const provider = new HandProvider();
  const concluded: ConcludedLoad[] = [];
  const story = new RulesStory();
  startRules({
    provider,
    mergeDomains: false,
    onRules: () => {},
    onConcluded: (end) => void concluded.push(end),
    counters: { loadSucceeded: () => {}, loadFailed: () => {} },
    health: story.health,
    requiresRules: false,
    logger: story.logger,
    clock: new FakeClock(1_000),
  });
  const good = { "r.yaml": "domain: d\ndescriptors: []\n" };
  const bad = { "r.yaml": "descriptors: []\n" };
  for (const files of [bad, good, bad]) {
    provider.load(load(files));
    provider.load({ sources: [], problems: [], version: "v7", isUnchanged: true });
  }
  assertEquals(
    concluded.map((
      { rules, hasRules, problems, version },
    ) => [rules?.domainCount, hasRules, problems.length, version]),
    [[undefined, false, 1, "v7"], [1, true, 0, "v7"], [undefined, true, 1, "v7"]],
  );
});
