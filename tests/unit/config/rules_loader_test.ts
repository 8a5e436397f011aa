import { assertEquals } from "#assert";
import { Health } from "../../../src/base/health.ts";
import type { LogFields, Logger } from "../../../src/base/log.ts";
import type { LoadReceiver, RulesLoad } from "../../../src/config/provider.ts";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import { type ConcludedLoad, startRules } from "../../../src/config/rules_loader.ts";
import { settledTurns } from "../../harness/until.ts";
import { oneSourcePerDomain } from "../../../src/settings/rule_support.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

/** Options of `Story`. */
interface StoryOptions {
  readonly clock?: FakeClock;
  readonly mergeDomains?: boolean;
  readonly requiresRules?: boolean;
  /** Settles when other threads have applied the rules. */
  readonly applied?: Promise<void>;
}

/** A loader whose provider is the test, and everything that it did, in order. */
class Story {
  readonly lines: string[] = [];
  readonly concluded: ConcludedLoad[] = [];
  readonly health = new Health();
  readonly clock: FakeClock;
  readonly loader;
  load: LoadReceiver = () => Promise.resolve([]);

  constructor(options: StoryOptions = {}) {
    const { clock = new FakeClock(1_000), mergeDomains = false, requiresRules = true, applied } = options;
    const line = (level: string) => (message: string, { errors }: LogFields = {}) => {
      this.lines.push(`${level}: ${message}${errors === undefined ? "" : ` errors=${errors}`}`);
    };
    const [debug, info, warning, error] = [line("debug"), line("info"), line("warning"), line("error")];
    const logger: Logger = { debug, info, warning, error };
    const start = (onLoad: LoadReceiver) => void (this.load = onLoad);
    this.clock = clock;
    this.loader = startRules({
      provider: { start, reload: () => {}, close: () => Promise.resolve() },
      onRules: ({ rules, version }) => {
        this.lines.push(`rules: ${[...rules.domains.keys()].join(" ")} ${version}`);
        return applied;
      },
      onConcluded: (end) => void this.concluded.push(end),
      counters: {
        loadSucceeded: () => void this.lines.push("succeeded"),
        loadFailed: () => void this.lines.push("failed"),
      },
      oneSourcePerDomain: oneSourcePerDomain(mergeDomains),
      health: this.health,
      requiresRules,
      logger,
      clock,
    });
  }

  /** The lines since the last look. */
  take(): string[] {
    return this.lines.splice(0);
  }

  /** Closes the loader, which leaves no timer. */
  async close(): Promise<void> {
    await this.loader.close();
    assertEquals(this.clock.waiting, 0);
  }
}

/** A load of these files. */
function load(files: Readonly<Record<string, string>>): RulesLoad {
  const read = Object.entries(files).map(([name, text]) => readRuleFile(name, text));
  return {
    sources: read.flatMap(({ source }) => source === undefined ? [] : [source]),
    problems: read.flatMap(({ problems }) => problems),
    version: "v7",
  };
}

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

const REJECTED = "error: Rules rejected; keeping the previous rules errors=1";
const GONE = ["error: dir: gone", "failed", REJECTED];
const GOOD_LINES = ["rules: a v7", "succeeded", LOADED];
const NO_RULES = "no rate limit configuration loaded";
const NO_DOMAIN = "the rate limit configuration has no domain";

const CASES: readonly (readonly [name: string, loads: RulesLoad[], story: string[], ...failing: string[]])[] =
  [
    ["every problem of a rejected one", [BAD], [
      ...BAD_LINES,
      "failed",
      "error: Rules rejected; waiting for valid rules errors=3",
    ], NO_RULES],
    ["problems of several passes in the order of the file", [MIXED], [
      "error: a.yaml:4:3: descriptors[1]: duplicate descriptor composite key 'd.k'; the first one is at a.yaml:3:3",
      "error: a.yaml:5:16: descriptors[1].shadow_mode: expected true or false, got '1'",
      "failed",
      "error: Rules rejected; waiting for valid rules errors=2",
    ], NO_RULES],
    ["unchanged after a good one with a warning", [DUBIOUS, UNCHANGED], [
      ...[DUBIOUS_LINE, "rules: b v7", "succeeded", LOADED],
      ...[DUBIOUS_LINE, "rules: b ", "succeeded", LOADED],
    ]],
    ["unchanged after a rejected one", [GOOD, UNREADABLE, UNCHANGED], [...GOOD_LINES, ...GONE, ...GONE]],
    ["without a domain after a good one, and rejected", [GOOD, EMPTY, UNREADABLE], [
      ...[...GOOD_LINES, "rules:  ", "succeeded", LOADED, ...GONE],
    ], NO_DOMAIN],
  ];

for (const [name, loads, expected, ...failing] of CASES) {
  Deno.test(`rules loader: ${name}`, async () => {
    const story = new Story();
    for (const one of loads) await story.load(one);
    assertEquals(story.take(), expected);
    assertEquals(
      story.health.failing().map(({ name, reason }) => `${name}: ${reason}`),
      failing.map((reason) => `config: ${reason}`),
    );
    await story.close();
  });
}

const NOTE = "a.yaml:3:3: descriptors[0]: unknown key 'vale'; did you mean 'value'?";
const NOTES: readonly (readonly [name: string, loads: RulesLoad[], isNoted: boolean, lastLine: string])[] = [
  ["at first", [BAD], true, "error: Rules rejected; waiting for valid rules errors=3"],
  ["and the first rules follow", [BAD, GOOD], false, LOADED],
  ["twice", [GOOD, UNREADABLE, BAD], true, "error: Rules rejected; keeping the previous rules errors=3"],
  ["and rules load again", [GOOD, BAD, GOOD], false, "info: Rules loaded again"],
  ["and rules load twice", [GOOD, BAD, GOOD, GOOD], false, LOADED],
];

for (const [name, loads, isNoted, lastLine] of NOTES) {
  Deno.test(`rules loader: a note while the last load is rejected, ${name}`, async () => {
    const story = new Story({ requiresRules: false });
    for (const one of loads) await story.load(one);
    const noted = story.health.degraded().map(({ name, reason }) => `${name}: ${reason}`);
    const meanwhile = loads.includes(GOOD) ? "the previous rules stay" : "there are no rules yet";
    const [first, ...others] = noted;
    assertEquals(first, isNoted ? `config: rules rejected, ${meanwhile}: ${NOTE}` : undefined);
    assertEquals([story.health.failing(), others.length], [[], isNoted ? 2 : 0]);
    assertEquals(story.take().at(-1), lastLine);
    await story.close();
  });
}

Deno.test("rules loader: merging allows the same domain twice", async () => {
  const story = new Story({ mergeDomains: true });
  const twice = load({ "a.yaml": "domain: a\ndescriptors: []\n", "b.yaml": "domain: a\ndescriptors: []\n" });
  assertEquals([await story.load(twice), story.take()], [[], GOOD_LINES]);
  await story.close();
});

Deno.test("rules loader: answers the problems, keeps the last loads, and reports each that differs", async () => {
  const story = new Story();
  const { loader, clock } = story;
  const { problems, version } = UNREADABLE;
  assertEquals([loader.loads(), await story.load(UNREADABLE)], [[], problems]);
  await story.load(UNCHANGED);
  const rejected = { at: 1_000, ok: false, problems, changed: [], version, limits: 0 };
  assertEquals(loader.loads(), [rejected, rejected]);
  clock.advance(500);
  await story.load({ ...GOOD, changed: ["a.yaml"] });
  const accepted = { at: 1_500, ok: true, problems: [], changed: ["a.yaml"], version: "v7", limits: 0 };
  assertEquals(loader.loads(), [accepted, rejected, rejected]);
  await story.load(UNCHANGED);
  await loader.firstRules;
  for (let time = 0; time < 20; time++) await story.load(UNREADABLE);
  const told = ({ rules, hasRules, problems, version }: ConcludedLoad) => {
    return [rules?.domainCount, hasRules, problems.length, version];
  };
  assertEquals(story.concluded.slice(0, 3).map(told), [[undefined, false, 1, ""], [1, true, 0, "v7"], [
    undefined,
    true,
    1,
    "",
  ]]);
  assertEquals(loader.loads().length, 10);
  await story.close();
});

Deno.test("rules loader: a rejected first configuration is logged every 30 s until one is good, or it is closed", async () => {
  const story = new Story();
  const told = ["error: dir: gone", "error: Rules rejected; waiting for valid rules errors=1"];
  await story.load(UNREADABLE);
  assertEquals(story.take(), [told[0], "failed", told[1]]);
  story.clock.advance(29_999);
  assertEquals(story.take(), []);
  story.clock.advance(1);
  assertEquals(story.take(), told);
  story.clock.advance(60_000);
  assertEquals(story.take(), [...told, ...told]);
  await story.load(GOOD);
  await story.load(UNREADABLE);
  assertEquals([story.take(), story.clock.waiting], [[
    ...GOOD_LINES.toSpliced(-1, 1, LOADED),
    ...GONE,
  ], 0]);
  await story.close();
  const closed = new Story();
  await closed.load(UNREADABLE);
  assertEquals(closed.clock.waiting, 1);
  await closed.close();
});

Deno.test("rules loader: of many problems 100 are logged, errors before warnings, each in its place", async () => {
  const story = new Story();
  const problems = Array.from({ length: 120 }, (_, index) => {
    const severity = (index + 1) % 12 === 0 ? "error" as const : "warning" as const;
    return { severity, at: `a.yaml:${index + 1}:1`, path: "", text: severity };
  });
  await story.load({ sources: undefined, problems, version: "" });
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
  assertEquals(story.loader.loads()[0]?.problems.length, 120);
  await story.close();
});

Deno.test("rules loader: rules that are applied in other threads are reported once they are in force", async () => {
  const applied = Promise.withResolvers<void>();
  const story = new Story({ applied: applied.promise });
  const loading = story.load(GOOD);
  await settledTurns();
  assertEquals([story.take(), story.health.healthy], [["rules: a v7"], false]);
  applied.resolve();
  await story.loader.firstRules;
  assertEquals([await loading, story.take(), story.health.healthy], [[], ["succeeded", LOADED], true]);
});

Deno.test("rules loader: many rules are compiled in slices, and closing ends that", async () => {
  const rules = Array.from({ length: 1_000 }, (_, index) => `- key: k${index}\n`).join("");
  const many = load({ "m.yaml": `domain: m\ndescriptors:\n${rules}` });
  for (const isClosed of [false, true]) {
    const story = new Story();
    const { clock } = story;
    // Each look at the clock takes as long as a slice.
    let elapsedMs = 0;
    clock.elapsed = () => elapsedMs += 10;
    const loading = story.load(many);
    assertEquals([story.take(), clock.waiting], [[], 1]);
    if (isClosed) await story.close();
    while (clock.waiting > 0) clock.advance(0);
    if (!isClosed) await loading;
    assertEquals(story.take(), isClosed ? [] : ["rules: m v7", "succeeded", LOADED]);
  }
});
