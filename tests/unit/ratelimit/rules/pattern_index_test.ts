import { assertEquals } from "#assert";
import {
  compilePattern,
  matchesPattern,
  PatternIndex,
} from "../../../../src/ratelimit/rules/pattern_index.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";

for (const count of [0, 1, 8, 9, 40, 300]) {
  Deno.test(`pattern index: of ${count} patterns the first declared one wins, as if tried one by one`, () => {
    const random = seededRandom(7 + count);
    const text = (most: number) => {
      let word = "";
      for (let left = Math.floor(random() * (most + 1)); left > 0; left--) {
        word += "ab/"[Math.floor(random() * 3)];
      }
      return word;
    };
    for (let round = 0; round < 50; round++) {
      const patterns = Array.from({ length: count }, () => {
        const middle = random() < 0.3 ? `${text(2)}*` : "";
        return compilePattern(`${text(4)}*${middle}${text(2)}`);
      });
      const index = new PatternIndex<number>();
      patterns.forEach((pattern, target) => index.add(pattern, target));
      for (let value = 0; value < 40; value++) {
        const asked = text(9);
        const first = patterns.findIndex((pattern) => matchesPattern(pattern, asked));
        assertEquals(
          index.find(asked),
          first < 0 ? undefined : first,
          `${asked} in ${patterns.map((p) => p.text).join(" ")}`,
        );
      }
    }
  });
}

const CASES: readonly [pattern: string, matching: string[], others: string[]][] = [
  ["files/*", ["files/", "files/a", "files/a/b", "files/*"], ["files", "file/a", "xfiles/a", "FILES/a", ""]],
  ["*", ["", "a", "*", "a b"], []],
  ["*.png", [".png", "a.png", "a.png.png"], ["a.PNG", "png", "a.png "]],
  ["a*c", ["ac", "abc", "acc", "abcabc"], ["a", "c", "ab", "bac", "acb"]],
  ["a*b*c", ["abc", "axbxc", "abbc", "abcbc"], ["ac", "acb", "abb", "cba"]],
  ["aa*aa", ["aaaa", "aaxaa"], ["aaa", "aa", "aaaab"]],
  ["ab*ba", ["abba", "abxba"], ["aba", "ab"]],
  ["*a*", ["a", "xax", "aa"], ["", "b"]],
  ["**", ["", "a"], []],
  ["a**b", ["ab", "axb"], ["a", "b"]],
  ["x*y*x", ["xyx", "x1y2x", "xyyx"], ["xx", "x", "xy", "yx"]],
  ["*ab*bc*", ["abbc", "xabybcz"], ["abc", "bcab"]],
  ["ключ*", ["ключ", "ключи"], ["клю"]],
];

for (const [text, matching, others] of CASES) {
  Deno.test(`pattern "${text}"`, () => {
    const pattern = compilePattern(text);
    const found = [...matching, ...others].filter((value) => matchesPattern(pattern, value));
    assertEquals(found, matching);
  });
}
