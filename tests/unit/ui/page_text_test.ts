import { assertEquals, assertStringIncludes, assertThrows } from "#assert";
import { exactText, parseExact } from "../../../src/ui/page/fields.ts";
import { errorCount, percentilesOf, responseTimes, shownMetrics } from "../../../src/ui/page/metric_rows.ts";
import { CACHE, ERRORS, EVICTIONS, OPEN_BREAKERS, RESPONSE_TIME } from "../../../src/ui/page/metric_rows.ts";
import { METRIC_SECTIONS } from "../../../src/serve/metric_groups.ts";
import { namedMetrics } from "../../../src/base/metrics.ts";
import { BUCKET_BOUNDS_MS } from "../../../src/stats/timer.ts";
import { type Counts, readSnapshot, withCounts } from "../../../src/ui/page/snapshot.ts";
import {
  agoText,
  countText,
  curlText,
  latencyText,
  momentText,
  rateText,
  shareText,
  spanText,
  tookText,
} from "../../../src/ui/page/text.ts";
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
  const latencies = [null, 0.1834, 4.26, 12.6, 1_260].map(latencyText);
  assertEquals(latencies, ["–", "0.18 ms", "4.3 ms", "13 ms", "1.3 s"]);
  assertEquals([0, 999.4, 1_260, 75_000].map(tookText), ["0 ms", "999 ms", "1.3 s", "75 s"]);
});

Deno.test("page: a moment has its day only when that is another one", () => {
  const now = new Date(2026, 10, 22, 8, 5, 9).getTime();
  assertEquals(momentText(now, now), "08:05:09");
  assertEquals(momentText(new Date(2026, 10, 21, 23, 59, 1).getTime(), now), "21 Nov 23:59:01");
  for (const none of [Number.NaN, Infinity, 1e300]) assertEquals(momentText(none, now), "–");
});

Deno.test("page: a relative time has one unit, and is a date beyond a month", () => {
  const now = new Date(2026, 10, 22, 12).getTime();
  const seconds = [0, 1, 59, 60, 7_199, 86_400, 30 * 86_400];
  assertEquals(seconds.map((ago) => agoText(now - ago * 1_000, now)), [
    ...["now", "1 s ago", "59 s ago", "1 min ago", "1 h ago", "1 d ago", "30 d ago"],
  ]);
  assertEquals([90, 7_200].map((ahead) => agoText(now + ahead * 1_000, now)), ["in 1 min", "in 2 h"]);
  assertEquals(agoText(now - 31 * 86_400_000, now), "22 Oct 2026");
});

Deno.test("page: numbers keep the digits that they came with", () => {
  const text = '{"big":12345678901234567890,"one":1.0,"small":3,"list":[1e400,-0.10]}';
  assertEquals(exactText(parseExact(text)).replaceAll(/\s/g, ""), text);
  assertEquals(parseExact('{"small":3}'), { small: 3 });
});

Deno.test("page: a snapshot that lacks something is read as far as it goes", () => {
  const { decisions, rules, topOverLimited, configuration, health, failing } = readSnapshot(
    '{"health":{"state":"degraded","failing":[{"component":"cache"},7]},"decisions":{"total":"x","perSecond":null},"rules":5}',
  );
  assertEquals([health, failing, rules, topOverLimited], [
    "degraded",
    [{ component: "cache", text: "" }, { component: "", text: "" }],
    [],
    [],
  ]);
  assertEquals(decisions, { total: 0, overLimit: 0, perSecond: null, overLimitShare: null });
  assertEquals(configuration, { loadedAt: null, version: "", loaded: 0, failed: 0, error: null, loads: [] });
  assertThrows(() => readSnapshot("no JSON"));
});

/** The counts at a time; an error and a slow call more each second. */
function countsAt(at: number): Counts {
  const count = at / 1_000;
  const metrics = new Map([["ratelimit.service.config_load_error", count], ["ratelimit.memory.keys", 9]]);
  const decisions = { total: 0, overLimit: 0, perSecond: null, overLimitShare: null };
  return { at, decisions, metrics, timers: new Map([[RESPONSE_TIME, [10 * count, 0, count, 0]]]) };
}

Deno.test("page: metrics that do not exist have no row, and counters show their growth", () => {
  const snapshot = { ...readSnapshot('{"boundsMs":[1,2,4]}'), ...countsAt(60_000) };
  const history = [countsAt(10_000), countsAt(60_000)];
  const shown = shownMetrics([...ERRORS, ...EVICTIONS, ...CACHE], snapshot, history);
  assertEquals(shown.map(({ label, total, recent }) => [label, total, recent]), [
    ["Rejected configurations", 60, 50],
    ["Counters in this process", 9, 0],
  ]);
  assertEquals(errorCount(snapshot, history), { total: 60, recent: 50 });
  assertEquals(responseTimes(snapshot, history).count, 550);
  // Nothing is known of the time before the first snapshot.
  assertEquals(errorCount(snapshot, [countsAt(60_000)]), { total: 60, recent: 0 });
});

Deno.test("page: a call with a failing cache is one error, however many metrics count it", () => {
  const metrics = new Map([
    ["ratelimit.service.call.should_rate_limit.kv_error", 3],
    ["ratelimit.service.cache_failure.allow", 5],
    ["ratelimit.service.cache_failure.deny", 2],
    ["ratelimit.service.cache_failure.local", 1],
    ["ratelimit.cache.in_flight_refused", 1],
    ["ratelimit.service.config_load_error", 1],
  ]);
  const snapshot = { ...readSnapshot("{}"), ...countsAt(0), metrics };
  assertEquals(shownMetrics(ERRORS, snapshot, []).length, metrics.size);
  assertEquals(errorCount(snapshot, []), { total: 4, recent: 0 });
});

Deno.test("page: every row shows metrics that exist", () => {
  const named = METRIC_SECTIONS.flatMap(({ groups }) => groups);
  const names = (["counter", "gauge"] as const).flatMap((kind) => {
    return named.flatMap((group) => namedMetrics(group, kind).map(({ fullName }) => fullName));
  });
  for (const { label, names: pattern } of [...ERRORS, ...CACHE, ...EVICTIONS, OPEN_BREAKERS]) {
    assertEquals([label, names.some((name) => pattern.test(name))], [label, true]);
  }
});

/** Buckets up to 1, 2, 4 and beyond; those before; p50 and p99. */
const PERCENTILES: readonly [number[], number[], number | null, number | null][] = [
  [[], [], null, null],
  [[0, 0, 0, 0], [], null, null],
  [[100, 0, 0, 0], [], 0.5, 0.99],
  [[0, 100, 0, 0], [], 1.5, 1.99],
  [[90, 0, 10, 0], [], 50 / 90, 3.8],
  [[90, 0, 10, 0], [90, 0, 0, 0], 3, 3.98],
  // Longer than all bounds: at least the last one.
  [[0, 0, 0, 5], [], 4, 4],
  // Another process counts from zero.
  [[1, 0, 0, 0], [50, 0, 0, 0], null, null],
];

Deno.test("page: percentiles of the durations between two snapshots", () => {
  for (const [buckets, before, p50, p99] of PERCENTILES) {
    const found = percentilesOf([1, 2, 4], buckets, before);
    assertEquals([found.p50, found.p99].map((one) => one && Number(one.toFixed(6))), [
      ...[p50, p99].map((one) => one && Number(one.toFixed(6))),
    ]);
  }
  assertEquals(percentilesOf(BUCKET_BOUNDS_MS, new Array<number>(18).fill(1)).count, 18);
});

Deno.test("page: two minutes of counts are kept, in their order", () => {
  let history: readonly Counts[] = [];
  for (let second = 0; second < 300; second++) history = withCounts(history, countsAt(second * 1_000));
  assertEquals([history.length, history[0]?.at, history.at(-1)?.at], [120, 180_000, 299_000]);
  // A clock that was set back begins anew.
  assertEquals(withCounts(history, countsAt(5_000)).length, 1);
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
    [
      () => descriptorsIn("7=a\ntier=gold,7=a", "d"),
      'Invalid descriptor "tier=gold,7=a": the page cannot keep the place of the key "7"; use weir triggers edit',
    ],
    [
      () => descriptorsIn('{"tier":"x,y","0":"a"}', "d"),
      'Invalid descriptor "{"tier":"x,y","0":"a"}": the page cannot keep the place of the key "0"',
    ],
    [() => wholeIn("1.5", "n"), 'Invalid number "1.5": expected an integer'],
    [() => objectIn("[]", "data"), "expected an object"],
    [() => objectIn("{", "data"), "Invalid JSON"],
    [() => momentIn("soon", "since"), 'Invalid time "soon": expected a date and a time'],
  ];
  for (const [run, words] of cases) assertStringIncludes(assertThrows(run).message, words);
});

Deno.test("page: a request becomes a command whose values a shell takes as they are", () => {
  const headers = [["x-note", "it's $HOME"], ["content-type", "application/json"]] as const;
  const command = curlText("https://example.com/?a='b'", headers, '{"a":"`id`","b":"@c"}');
  assertEquals(command.split(" \\\n  "), [
    `curl -X POST 'https://example.com/?a='\\''b'\\'''`,
    `-H 'x-note: it'\\''s $HOME'`,
    `-H 'content-type: application/json'`,
    `--data-raw '{"a":"\`id\`","b":"@c"}'`,
  ]);
});
