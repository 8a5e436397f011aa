import { assertEquals } from "#assert";
import { fillGroups, readPattern } from "../../../src/base/pattern.ts";
import { re2Matcher } from "../../../src/base/re2_matcher.ts";

/** A pattern of Go, a text, and the match with its groups as Go finds them. */
const GO: readonly [pattern: string, text: string, match: readonly string[] | null][] = [
  ["^[[:alpha:]]+$", "shop", ["shop"]],
  ["^[[:alpha:]]+$", "sh0p", null],
  ["[[:^alpha:]]+", "ab12c", ["12"]],
  ["[^[:digit:].]+", "1.ab.", ["ab"]],
  ["[[:alnum:]_-]+", "+a-1_b+", ["a-1_b"]],
  ["[[:punct:]]+", "a:|b", [":|"]],
  ["[[:space:]]", "\u00a0", null],
  ["[[:word:]]+", "é_a", ["_a"]],
  ["[[:upper:]][[:lower:]][[:xdigit:]]", "Shf", ["Shf"]],
  ["[:alpha:]+", "xalphax", ["alpha"]],
  ["\\A(a)\\z", "a", ["a", "a"]],
  ["\\Aa\\z", "ba", null],
  ["a\\z", "a\n", null],
  ["a$", "a\n", null],
  ["(?m)^b$", "a\nb\nc", ["b"]],
  ["(?m)^b$", "a\rb", null],
  ["\\pL+", "1äb2", ["äb"]],
  ["\\PL+", "ä1.b", ["1."]],
  ["\\p{Greek}+", "aαβb", ["αβ"]],
  ["\\p{^Greek}+", "αabβ", ["ab"]],
  ["\\P{^Greek}+", "aαβb", ["αβ"]],
  ["\\pN\\PN", "1a", ["1a"]],
  ["[\\pL\\d]+", "-ä1-", ["ä1"]],
  ["[^\\PL]+", "1ab2", ["ab"]],
  ["\\p{Lu}\\p{letter}", "Ab", ["Ab"]],
  ["\\p{Any}", "\n", ["\n"]],
  ["(?i)SHOP", "shop", ["shop"]],
  ["(?i)k", "\u212a", ["\u212a"]],
  ["(?i)[a-z]+", "ABC", ["ABC"]],
  ["a(?i)b|c", "C", ["C"]],
  ["a(?i:b)c", "aBc", ["aBc"]],
  ["a(?i:b)c", "aBC", null],
  ["(?i)a(?-i)b", "Ab", ["Ab"]],
  ["(?i)a(?-i)b", "aB", null],
  ["(?i)\\W", "ſ", null],
  ["(?i)[\\W1]", "\u212a", null],
  ["(?i)[^\\W1]+", "1\u212ab", ["\u212ab"]],
  ["(?i)\\P{Lu}", "a", null],
  ["(?i)x|(?-i)[^\\D0]\\PL[ad]", "7ä1.A1.a", ["1.a"]],
  ["a.b", "a\nb", null],
  ["a.b", "a\rb", ["a\rb"]],
  ["(?s)a.b", "a\nb", ["a\nb"]],
  ["(?s-i:.)", "\n", ["\n"]],
  ["(?U)a+", "aaa", ["a"]],
  ["(?U)a+?", "aaa", ["aaa"]],
  ["(?P<one>.)(?P<two>.)", "ab", ["ab", "a", "b"]],
  ["(?<one>.)", "a", ["a", "a"]],
  ["(?P<1a>.)(?P<n>.)(?P<n>.)", "abc", ["abc", "a", "b", "c"]],
  ["\\Qa.b*\\E+", "a.b**", ["a.b**"]],
  ["\\Q(", "(", ["("]],
  ["\\a\\f\\t\\n\\r\\v", "\x07\f\t\n\r\v", ["\x07\f\t\n\r\v"]],
  ["\\s", "\v", null],
  ["\\S", "\u00a0", ["\u00a0"]],
  ["\\d\\D\\w\\W", "1x_-", ["1x_-"]],
  ["\\d", "١", null],
  ["\\123\\12\\0", "S\n\0", ["S\n\0"]],
  ["\\x41\\x{1F600}\\x{10FFFF}", "A😀\u{10ffff}", ["A😀\u{10ffff}"]],
  ["^.$", "😀", ["😀"]],
  ["[]a]+", "]a", ["]a"]],
  ["[^]a]+", "]ab]", ["b"]],
  ["[a-]+", "-a", ["-a"]],
  ["[-a]+", "-a", ["-a"]],
  ["[a\\-z]+", "b-z", ["-z"]],
  ["[.*+?()|{}$/]+", "a$.", ["$."]],
  ["[a&&b]+", "a&b", ["a&b"]],
  ["[[a]+", "[a", ["[a"]],
  ["[^a]", "\n", ["\n"]],
  ["[^\\x00-\\x{10FFFF}]", "a", null],
  ["\\bk\\b", "ſkſ", ["k"]],
  ["\\_\\-\\/\\ ", "_-/ ", ["_-/ "]],
  ["a{,2}", "a{,2}", ["a{,2}"]],
  ["a{", "a{", ["a{"]],
  ["]}", "]}", ["]}"]],
  ["a{2,3}?", "aaa", ["aa"]],
  ["^*a", "a", ["a"]],
  ["a*(?i)*", "aa", ["aa"]],
  ["|a", "a", [""]],
  ["(|a)b", "ab", ["ab", "a"]],
  ["", "a", [""]],
];

for (const [pattern, text, match] of GO) {
  Deno.test(`pattern of Go: ${JSON.stringify(pattern)} on ${JSON.stringify(text)}`, () => {
    const read = readPattern(pattern);
    const found = "pattern" in read ? read.pattern.exec(text) : read;
    assertEquals([found instanceof Array ? [...found] : found, "warning" in read], [match, false]);
    const matching = re2Matcher(pattern, 1_000);
    assertEquals("matcher" in matching && matching.matcher.matches(text), match !== null);
  });
}

/** A pattern that Go refuses, and why; a text that it matches as one of JavaScript. */
const JAVASCRIPT: readonly [pattern: string, problem: string, text: string][] = [
  ["^a(?!b)", "invalid or unsupported Perl syntax at character 3", "ac"],
  ["(?<=a)b", "invalid or unsupported Perl syntax at character 1", "ab"],
  ["(a)\\1", "invalid escape sequence \\1 at character 4", "aa"],
  ["(?P<x>a)\\k<x>", "invalid escape sequence \\k at character 9", "aa"],
  ["(?i)(?=A)a", "invalid or unsupported Perl syntax at character 5", "A"],
  ["\\u0041\\cJ", "invalid escape sequence \\u at character 1", "A\n"],
  ["[\\b]", "invalid escape sequence \\b at character 2", "\b"],
  ["\\p{Alphabetic}", "invalid character class range at character 1", "ä"],
  ["a{1001}", "invalid repeat count at character 2", "a".repeat(1001)],
  ["(?=a)\\_?a\\-?", "invalid or unsupported Perl syntax at character 1", "a-"],
];

for (const [pattern, problem, text] of JAVASCRIPT) {
  Deno.test(`pattern of JavaScript: ${JSON.stringify(pattern)}`, () => {
    const read = readPattern(pattern);
    const seen = "pattern" in read ? [read.pattern.test(text), read.warning] : read;
    const warning = `Go refuses this regular expression, so it is read as one of JavaScript: ${problem}`;
    assertEquals(seen, [true, warning]);
  });
}

const REFUSED: readonly [pattern: string, problem: string][] = [
  ["a(", "missing closing ) at character 2"],
  ["a)", "unexpected ) at character 2"],
  ["[a", "missing closing ] at character 1"],
  ["*a", "missing argument to repetition operator at character 1"],
  ["a**", "invalid nested repetition operator at character 3"],
  ["a{2,1}", "invalid repeat count at character 2"],
  ["[z-a]", "invalid character class range at character 2"],
  ["[[:foo:]]", "invalid character class range at character 2"],
  ["\\Aa\\Z", "invalid escape sequence \\Z at character 4"],
  ["a\\C", "invalid escape sequence \\C at character 2"],
  ["\\h", "invalid escape sequence \\h at character 1"],
  ["\\1", "invalid escape sequence \\1 at character 1"],
  ["\\x4", "invalid escape sequence \\x at character 1"],
  ["\\x{110000}", "invalid escape sequence \\x at character 1"],
  ["\\p{Foo}", "invalid character class range at character 1"],
  ["\\pX", "invalid character class range at character 1"],
  ["a\\E", "invalid escape sequence \\E at character 2"],
  ["(?x)a", "invalid or unsupported Perl syntax at character 1"],
  ["(?P<a-b>c)", "invalid named capture at character 1"],
  ["(?>a)", "invalid or unsupported Perl syntax at character 1"],
  ["a\\", "trailing backslash at character 2"],
  ["(".repeat(2_000), "expression nests too deeply at character 1002"],
];

for (const [pattern, problem] of REFUSED) {
  Deno.test(`pattern of neither: ${JSON.stringify(pattern.slice(0, 40))}`, () => {
    assertEquals([readPattern(pattern), re2Matcher(pattern, 1_000)], [{ problem }, { problem }]);
  });
}

const FILLED: readonly [pattern: string, template: string, filled: string][] = [
  ["(.)(.)", "$1-$2-$0", "a-b-ab"],
  ["(.)(.)", "${1}0$2_x", "a0b_x"],
  ["(?P<one>.)(?<two>.)", "$one.${two}.$<one>", "a.b.a"],
  ["(?P<one>.)|(?P<no>x)", "[$no]$1", "[]a"],
  ["(.)", "$2 ${3} $name ${name} $< $", "$2 ${3} $name ${name} $< $"],
];

for (const [pattern, template, filled] of FILLED) {
  Deno.test(`groups of a pattern: ${template}`, () => {
    const read = readPattern(pattern);
    const match = "pattern" in read ? read.pattern.exec("ab") : null;
    assertEquals(match === null ? null : fillGroups(template, match), filled);
  });
}
