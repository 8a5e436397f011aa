import { assertEquals } from "#assert";
import {
  type Mogrifier,
  type MogrifierSettings,
  mogrifiersOf,
  mogrify,
} from "../../../src/stats/mogrifier.ts";

const RULES: readonly Mogrifier[] = [
  {
    pattern: /^ratelimit\.service\.rate_limit\.([^.]+)\.(.+)\.([^.]+)$/,
    name: "ratelimit.$3",
    tags: new Map([["domain", "$1"], ["rule", "$2"]]),
  },
  { pattern: /(x)|(y)/, name: "$0-$1-$2-$3", tags: new Map([["cost", "$$1 $10"]]) },
  { pattern: /y/, name: "never", tags: new Map() },
];

type Becomes = ReturnType<typeof mogrify>;

const CASES: readonly (readonly [name: string, stat: string, becomes: Becomes])[] = [
  ["groups make the name and the tags", "ratelimit.service.rate_limit.shop.a_1.b.total_hits", {
    name: "ratelimit.total_hits",
    tags: new Map([["domain", "shop"], ["rule", "a_1.b"]]),
  }],
  ["the first that matches counts; unknown groups stay, idle ones are empty", "some y", {
    name: "y--y-$3",
    tags: new Map([["cost", "$ $10"]]),
  }],
  ["nothing matches", "ratelimit.go", undefined],
];

for (const [name, stat, becomes] of CASES) {
  Deno.test(`mogrifier: ${name}`, () => assertEquals(mogrify(RULES, stat), becomes));
}

Deno.test("mogrifier: the settings of both lists, in their order", () => {
  const settings: MogrifierSettings = {
    TAGGED_PUSH_STATS_MOGRIFIERS: ["B", "a"],
    USE_TAGGED_PUSH_STATS_MOGRIFIERS: ["C", "B"],
    "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_PATTERN": new Map([["A", /a/], ["B", /b/], ["C", /c/], ["D", /d/]]),
    "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_NAME": new Map([["A", "a"], ["B", "b"], ["C", "c"], ["D", "d"]]),
    "TAGGED_PUSH_STATS_MOGRIFIER_<NAME>_TAGS": new Map([["B", new Map([["k", "v"]])]]),
  };
  assertEquals(mogrifiersOf(settings), [
    { pattern: /b/, name: "b", tags: new Map([["k", "v"]]) },
    { pattern: /a/, name: "a", tags: new Map() },
    { pattern: /c/, name: "c", tags: new Map() },
  ]);
});
