import { assertEquals } from "#assert";
import { rateText, sampleWeights, statsdLines, taggedLines } from "../../../src/stats/statsd_lines.ts";
import type { Mogrifier } from "../../../src/stats/mogrifier.ts";

const PLAIN = statsdLines(new Map());
const TAGGED = statsdLines(new Map([["zone", "eu"], ["app:x", "a.b:c|d\ne"], ["env", "k=v"]]));
const SUFFIX = ".__app_x=a_b_c_d_e.__env=k=v.__zone=eu";

const CASES: readonly (readonly [name: string, written: string | readonly string[], ...lines: string[]])[] = [
  ["counter", PLAIN.counter("a.b", 3), "a.b:3|c"],
  ["gauge", PLAIN.gauge("a", 0), "a:0|g"],
  ["gauge with a fraction", PLAIN.gauge("a", 0.1 + 0.2), "a:0.3|g"],
  ["tiny gauge without exponent", PLAIN.gauge("a", 1e-9), "a:0|g"],
  ["gauge below zero", PLAIN.gauge("a", -2.5), "a:0|g\na:-2.5|g"],
  [
    "timer",
    PLAIN.timer("a", { values: [0.0514, 12, 1 / 3], seen: 3, sumMs: 13 }),
    ...["a:0.051|ms", "a:12|ms", "a:0.333|ms"],
  ],
  [
    "timer of which some durations were left out",
    PLAIN.timer("a", { values: [1, 2, 3], seen: 8, sumMs: 9 }),
    ...["a:1|ms|@0.3333333333333333", "a:2|ms|@0.3333333333333333", "a:3|ms|@0.5"],
  ],
  ["counter with tags, sorted and made fit for a name", TAGGED.counter("a", 1), `a${SUFFIX}:1|c`],
  ["gauge below zero with tags", TAGGED.gauge("a", -1), `a${SUFFIX}:0|g\na${SUFFIX}:-1|g`],
];

for (const [name, written, ...lines] of CASES) {
  Deno.test(`push lines: ${name}`, () => assertEquals([written].flat(), lines));
}

Deno.test("push lines: the weights of durations add up to all that were seen", () => {
  const cases = [[1, 1], [500, 500], [500, 501], [500, 999], [500, 1_000], [7, 1_000_003]] as const;
  const sums = cases.map(([kept, seen]) => sampleWeights(kept, seen).reduce((sum, weight) => sum + weight));
  assertEquals(sums, cases.map(([, seen]) => seen));
});

// Some receivers cut the fraction of one divided by the rate off, others round it.
Deno.test("push lines: every rate gives its weight back", () => {
  const wrong: number[] = [];
  for (let weight = 2; weight <= 20_000; weight++) {
    const factor = 1 / Number(rateText(weight).slice("|@".length));
    if (Math.trunc(factor) !== weight || Math.round(factor) !== weight) wrong.push(weight);
  }
  assertEquals([wrong, rateText(1)], [[], ""]);
});

const RULE: Mogrifier = {
  pattern: /^rate\.([^.]+)\.([^.]*)$/,
  name: "rate.$2",
  tags: new Map([["domain", "$1"], ["empty", "$2"], ["env", "$1"]]),
};
const HITS: Mogrifier = { pattern: /^hits\.(.*)$/, name: "$1", tags: new Map([["k:1", "a|b,c"]]) };

const PROD = { env: "prod" };

const TAG_CASES: readonly (readonly [
  name: string,
  tags: Readonly<Record<string, string>>,
  mogrifiers: readonly Mogrifier[],
  stat: string,
  line: string,
])[] = [
  ["no tags", {}, [], "a.b", "a.b:1|c"],
  ["tags of every line", { ...PROD, v: "1.2:3" }, [], "a", "a:1|c|#env:prod,v:1.2:3"],
  ["tags in the name", PROD, [], "a.__code=ok.__x=y", "a:1|c|#env:prod,code:ok,x:y"],
  ["what only looks like a tag stays", {}, [], "a.__b.c", "a.__b.c:1|c"],
  [
    "rewritten; its own tags count before those of every line, empty ones are left out",
    { ...PROD, zone: "eu" },
    [RULE],
    "rate.shop.",
    "rate.:1|c|#env:shop,zone:eu,domain:shop",
  ],
  ["not rewritten", PROD, [RULE], "other", "other:1|c|#env:prod"],
  ["what would break a line", {}, [HITS], "hits.b", "b:1|c|#k_1:a_b_c"],
  ["a name that comes out empty is not taken", {}, [HITS], "hits.", "hits.:1|c|#k_1:a_b_c"],
];

for (const [name, tags, mogrifiers, stat, line] of TAG_CASES) {
  Deno.test(`tagged lines: ${name}`, () => {
    const format = taggedLines({ tags: new Map(Object.entries(tags)), mogrifiers });
    assertEquals(format.counter(stat, 1), line);
  });
}

Deno.test("tagged lines: gauges and timers have their tags at the end", () => {
  const format = taggedLines({ tags: new Map([["k", "v"]]), mogrifiers: [] });
  const sample = { values: [1.5], seen: 2, sumMs: 3 };
  assertEquals([format.gauge("a", -1), ...format.timer("b", sample)], [
    "a:0|g|#k:v\na:-1|g|#k:v",
    "b:1.5|ms|@0.5|#k:v",
  ]);
});
