import { assertEquals } from "@std/assert";
import { compilePattern, matchesPattern } from "../../../src/ratelimit/pattern_index.ts";

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
