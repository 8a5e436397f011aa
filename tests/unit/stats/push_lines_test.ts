import { assertEquals } from "@std/assert";
import type { LineFormat } from "../../../src/stats/flush_ports.ts";
import { pushLines, rateText, sampleWeights, taggedLines } from "../../../src/stats/push_lines.ts";
import type { Mogrifier } from "../../../src/stats/mogrifier.ts";

const PLAIN = pushLines(new Map());
const TAGGED = pushLines(new Map([["zone", "eu"], ["app:x", "a.b:c|d\ne"], ["env", "k=v"]]));
const SUFFIX = ".__app_x=a_b_c_d_e.__env=k=v.__zone=eu";

interface LineCase {
  readonly name: string;
  readonly format?: LineFormat;
  readonly write: (format: LineFormat) => string | readonly string[];
  readonly lines: string | readonly string[];
}

const CASES: readonly LineCase[] = [
  { name: "counter", write: (format) => format.counter("a.b", 3), lines: "a.b:3|c" },
  { name: "gauge", write: (format) => format.gauge("a", 0), lines: "a:0|g" },
  { name: "gauge with a fraction", write: (format) => format.gauge("a", 0.1 + 0.2), lines: "a:0.3|g" },
  { name: "tiny gauge without exponent", write: (format) => format.gauge("a", 1e-9), lines: "a:0|g" },
  { name: "gauge below zero", write: (format) => format.gauge("a", -2.5), lines: "a:0|g\na:-2.5|g" },
  {
    name: "timer",
    write: (format) => format.timer("a", { values: [0.0514, 12, 1 / 3], seen: 3, sumMs: 13 }),
    lines: ["a:0.051|ms", "a:12|ms", "a:0.333|ms"],
  },
  {
    name: "timer of which some durations were left out",
    write: (format) => format.timer("a", { values: [1, 2, 3], seen: 8, sumMs: 9 }),
    lines: ["a:1|ms|@0.3333333333333333", "a:2|ms|@0.3333333333333333", "a:3|ms|@0.5"],
  },
  {
    name: "counter with tags, sorted and made fit for a name",
    format: TAGGED,
    write: (format) => format.counter("a", 1),
    lines: `a${SUFFIX}:1|c`,
  },
  {
    name: "gauge below zero with tags",
    format: TAGGED,
    write: (format) => format.gauge("a", -1),
    lines: `a${SUFFIX}:0|g\na${SUFFIX}:-1|g`,
  },
];

for (const { name, format = PLAIN, write, lines } of CASES) {
  Deno.test(`push lines: ${name}`, () => assertEquals(write(format), lines));
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

interface TagCase {
  readonly name: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly mogrifiers?: readonly Mogrifier[];
  readonly stat: string;
  readonly line: string;
}

const TAG_CASES: readonly TagCase[] = [
  { name: "no tags", stat: "a.b", line: "a.b:1|c" },
  {
    name: "tags of every line",
    tags: { env: "prod", v: "1.2:3" },
    stat: "a",
    line: "a:1|c|#env:prod,v:1.2:3",
  },
  {
    name: "tags in the name",
    tags: { env: "prod" },
    stat: "a.__code=ok.__x=y",
    line: "a:1|c|#env:prod,code:ok,x:y",
  },
  { name: "what only looks like a tag stays", stat: "a.__b.c", line: "a.__b.c:1|c" },
  {
    name: "rewritten; its own tags count before those of every line, empty ones are left out",
    tags: { env: "prod", zone: "eu" },
    mogrifiers: [RULE],
    stat: "rate.shop.",
    line: "rate.:1|c|#env:shop,zone:eu,domain:shop",
  },
  {
    name: "not rewritten",
    tags: { env: "prod" },
    mogrifiers: [RULE],
    stat: "other",
    line: "other:1|c|#env:prod",
  },
  { name: "what would break a line", mogrifiers: [HITS], stat: "hits.b", line: "b:1|c|#k_1:a_b_c" },
  {
    name: "a name that comes out empty is not taken",
    mogrifiers: [HITS],
    stat: "hits.",
    line: "hits.:1|c|#k_1:a_b_c",
  },
];

for (const { name, tags = {}, mogrifiers = [], stat, line } of TAG_CASES) {
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
