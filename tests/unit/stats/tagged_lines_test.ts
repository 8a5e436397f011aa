import { assertEquals } from "@std/assert";
import type { Mogrifier } from "../../../src/stats/mogrifier.ts";
import { taggedLines } from "../../../src/stats/tagged_lines.ts";

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

const CASES: readonly TagCase[] = [
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

for (const { name, tags = {}, mogrifiers = [], stat, line } of CASES) {
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
