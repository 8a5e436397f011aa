import { assert, assertEquals } from "#assert";
import { type Re2Matcher, re2Matcher } from "../../../src/base/re2_matcher.ts";
import { seededRandom } from "../../harness/seeded_random.ts";

function matcherOf(pattern: string, maxSteps = 1_000): Re2Matcher {
  const read = re2Matcher(pattern, maxSteps);
  assert("matcher" in read, pattern);
  return read.matcher;
}

/** A random expression in the syntax that RE2 and JavaScript share. */
function randomPattern(random: () => number, depth = 0): string {
  const pick = <T>(items: readonly [T, ...T[]]): T => items[Math.floor(random() * items.length)] ?? items[0];
  const part = () => randomPattern(random, depth + 1);
  if (depth > 3) return pick(["a", "b", "[ab]", "[^a]", ".", "ä", "\\w"]);
  return pick([
    () => pick(["a", "b", "c", "\\d", "^", "$", "\\b"]),
    () => `${part()}${part()}`,
    () => `${part()}${part()}${part()}`,
    () => `(${part()}|${part()})`,
    () => `(?:${part()})${pick(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "{0}"])}`,
  ])();
}

Deno.test("matcher: random expressions find what those of JavaScript find", () => {
  let found = 0;
  for (let seed = 1; seed <= 1_500; seed++) {
    const random = seededRandom(seed);
    const pattern = randomPattern(random);
    const [matcher, expected] = [matcherOf(pattern), new RegExp(pattern, "u")];
    for (let text = 0; text < 8; text++) {
      const length = Math.floor(random() * 7);
      const value = Array.from({ length }, () => "abcä1 "[Math.floor(random() * 6)]).join("");
      const isFound = expected.test(value);
      assertEquals(matcher.matches(value), isFound, `${pattern} on "${value}"`);
      if (isFound) found++;
    }
  }
  assert(found > 2_000 && found < 10_000, `${found}`);
});

/** Expressions that backtracking never ends for. */
const HOSTILE = ["^(a+)+$", "^(a|aa)+$", "(a*)*b", "^(?:a?){50}a{50}$", "(x+x+)+y", "(.*)*(.*)*(.*)*c$"];

for (const pattern of HOSTILE) {
  Deno.test(`matcher: ${pattern} takes a step at most once for each character`, () => {
    const value = `${"a".repeat(500)}${"x".repeat(500)}!`;
    assertEquals(matcherOf(pattern).matches(value), false);
  });
}

Deno.test("matcher: an expression with too many steps is refused before they take memory", () => {
  const problem = "it has more than 100 steps, with each repetition by a count as often as it counts";
  for (const pattern of ["a{100}", "((a{10}){10}){10}", "[a-z]{1000}", "(ab|cd){40}"]) {
    assertEquals(re2Matcher(pattern, 100), { problem });
  }
  const fits = re2Matcher("a{99}", 100);
  assertEquals("steps" in fits && fits.steps, 100);
});

Deno.test("matcher: a character is one, whatever its bytes, and bytes that are not UTF-8 are characters", () => {
  const cases: readonly (readonly [pattern: string, value: string, matches: boolean])[] = [
    ["^.$", "\u{1f600}", true],
    ["^..$", "\u{1f600}", false],
    ["^.$", "\udc80", true],
    ["^\\pL$", "\udc80", false],
    ["^[^a]$", "\udcff", true],
    ["", "", true],
    ["a", "xay", true],
    ["^a$", "xay", false],
  ];
  for (const [pattern, value, matches] of cases) {
    assertEquals(matcherOf(pattern).matches(value), matches, pattern);
  }
});

Deno.test("matcher: repetitions of nothing take neither steps nor time", () => {
  const read = re2Matcher(`(${"()".repeat(10_000)}){1000}`, 1_000);
  assertEquals("steps" in read && read.steps, 1);
  for (const pattern of ["^(?:){3}a$", "^(?:(){5}a){2}$", "^(?:|a){2}$"]) {
    assertEquals(matcherOf(pattern).matches("aa"), new RegExp(pattern, "u").test("aa"), pattern);
  }
});

Deno.test("matcher: characters of words are those of ASCII", () => {
  for (let code = 0; code < 0x250; code++) {
    const character = String.fromCodePoint(code);
    assertEquals(matcherOf("^\\b").matches(character), /^\w/.test(character), `${code}`);
  }
});
