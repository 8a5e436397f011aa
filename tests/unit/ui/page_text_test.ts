import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { exactText, parseExact } from "../../../src/ui/page/fields.ts";
import { type RatePoint, readSnapshot, withPoint } from "../../../src/ui/page/snapshot.ts";
import { countText, momentText, rateText, shareText, spanText, tookText } from "../../../src/ui/page/text.ts";
import {
  descriptorsIn,
  descriptorsText,
  headersIn,
  momentIn,
  objectIn,
  wholeIn,
  wordsIn,
} from "../../../src/ui/page/typed_text.ts";

Deno.test("page: metrics as people read them", () => {
  assertEquals([0, 999, 1_234_567].map(countText), ["0", "999", "1,234,567"]);
  assertEquals([null, 0, 2.34, 99.96, 1_234.5].map(rateText), ["–", "0", "2.3", "100", "1,235"]);
  assertEquals([null, 0, 0.1234, 1].map(shareText), ["–", "0%", "12.3%", "100%"]);
  const spans = [-5, 999, 61_000, 7_500_000, 90_061_000].map(spanText);
  assertEquals(spans, ["0 s", "0 s", "1 min 1 s", "2 h 5 min", "1 d 1 h"]);
  assertEquals([0, 999.4, 1_260, 75_000].map(tookText), ["0 ms", "999 ms", "1.3 s", "75 s"]);
});

Deno.test("page: a moment has its day only when that is another one", () => {
  const now = new Date(2026, 10, 22, 8, 5, 9).getTime();
  assertEquals(momentText(now, now), "08:05:09");
  assertEquals(momentText(new Date(2026, 10, 21, 23, 59, 1).getTime(), now), "21 Nov 23:59:01");
  for (const none of [Number.NaN, Infinity, 1e300]) assertEquals(momentText(none, now), "–");
});

Deno.test("page: numbers keep the digits that they came with", () => {
  const text = '{"big":12345678901234567890,"one":1.0,"small":3,"list":[1e400,-0.10]}';
  assertEquals(exactText(parseExact(text)).replaceAll(/\s/g, ""), text);
  assertEquals(parseExact('{"small":3}'), { small: 3 });
});

Deno.test("page: a snapshot that lacks something is read as far as it goes", () => {
  const { decisions, rules, topOverLimited, configuration, healthy, failing } = readSnapshot(
    '{"health":{"healthy":true,"failing":[{"component":"cache"},7]},"decisions":{"total":"x","perSecond":null},"rules":5}',
  );
  assertEquals([healthy, failing, rules, topOverLimited], [
    true,
    [{ component: "cache", text: "" }, { component: "", text: "" }],
    [],
    [],
  ]);
  assertEquals(decisions, { total: 0, overLimit: 0, perSecond: null, overLimitShare: null });
  assertEquals(configuration, { loadedAt: null, version: "", loaded: 0, failed: 0, error: null });
  assertThrows(() => readSnapshot("no JSON"));
});

Deno.test("page: two minutes of rates are kept, in their order", () => {
  let points: readonly RatePoint[] = [];
  for (let second = 0; second < 300; second++) {
    points = withPoint(points, { at: second * 1_000, perSecond: second, overShare: 0 });
  }
  assertEquals([points.length, points[0]?.perSecond, points.at(-1)?.perSecond], [120, 180, 299]);
  // A clock that was set back begins anew.
  assertEquals(withPoint(points, { at: 5_000, perSecond: 1, overShare: 0 }).length, 1);
});

Deno.test("page: what is typed in becomes what the service takes", () => {
  assertEquals(wordsIn(" a.b, workflow.*\n* "), ["a.b", "workflow.*", "*"]);
  assertEquals(headersIn("X-A: 1\n\n x-b :a:b \n"), { "X-A": "1", "x-b": "a:b" });
  assertEquals(headersIn("\n"), undefined);
  assertEquals(descriptorsIn("a=1,b={{ input.x }}\nc", "d"), [{ a: "1", b: "{{ input.x }}" }, { c: "" }]);
  assertEquals([wholeIn(" ", "n"), wholeIn(" 12 ", "n")], [undefined, 12]);
  assertEquals(objectIn('{"n": 1.0}', "data"), '{"n": 1.0}');
  assertEquals(momentIn("2026-01-02T03:04:05Z", "since"), "2026-01-02T03:04:05.000Z");
});

Deno.test("page: descriptors become lines that are read as the same descriptors", () => {
  const cases: readonly (readonly [Record<string, string>, string])[] = [
    [{ a: "1", b: "{{ input.x }}" }, "a=1,b={{ input.x }}"],
    [{ a: "" }, "a="],
    [{ a: "x=y" }, "a=x=y"],
    [{ a: "1,2" }, '{"a":"1,2"}'],
    [{ a: " 1" }, '{"a":" 1"}'],
    [{ "a=b": "1\n2" }, '{"a=b":"1\\n2"}'],
  ];
  for (const [descriptor, line] of cases) assertEquals(descriptorsText([descriptor]), line);
  const all = cases.map(([descriptor]) => descriptor);
  assertEquals(descriptorsIn(descriptorsText(all), "d"), all);
});

Deno.test("page: what is typed in wrongly is refused in words", () => {
  const cases: readonly (readonly [() => unknown, string])[] = [
    [() => headersIn("none"), 'Invalid header "none": expected Name: value'],
    [() => headersIn("a: 1\na: 2"), 'Invalid header "a: 2": expected Name: value, each name once'],
    [() => descriptorsIn("=1", "d"), 'Invalid descriptor "=1": expected key=value'],
    [() => descriptorsIn("a=1,a=2", "d"), 'Invalid descriptor "a=1,a=2": expected key=value, each key once'],
    [() => descriptorsIn('{"a":1}', "d"), 'Invalid descriptor "{"a":1}": expected strings'],
    [() => descriptorsIn('{"a"', "d"), "Invalid JSON"],
    [() => wholeIn("1.5", "n"), 'Invalid number "1.5": expected an integer'],
    [() => objectIn("[]", "data"), "expected an object"],
    [() => objectIn("{", "data"), "Invalid JSON"],
    [() => momentIn("soon", "since"), 'Invalid time "soon": expected a date and a time'],
  ];
  for (const [run, words] of cases) assertStringIncludes(assertThrows(run).message, words);
});
