import { assertEquals } from "#assert";
import { join } from "node:path";
import { loadMetricMapping, readMetricMapping } from "../../../src/config/metric_mapping.ts";
import { problemText } from "../../../src/base/problem.ts";
import type { MetricKind } from "../../../src/stats/pull_families.ts";
import { mapperOf } from "../../../src/stats/pull_mapping.ts";

const OPTIONS = { boundsSeconds: [0.001, 0.01, 0.1, 1] };

/** Every way to write a mapping; the first and the last show that patterns of parts come first. */
const GOOD = `defaults:
  match_type: glob
  observer_type: histogram
  histogram_options: { buckets: [0.01, 1] }
mappings:
  - match: a.regex
    match_type: regex
    name: never_reached
  - match: ratelimit.service.rate_limit.*.*.total_hits
    name: hits_$1_total
    help: All hits.
    labels: { domain: "$1", key: "k_\${2}", fixed: yes }
  - match: "^ratelimit_server\\\\.(?P<method>.*)\\\\.response_time"
    match_type: regex
    match_metric_type: observer
    name: "time_ms"
    timer_type: histogram
    buckets: [1, 100]
    scale: 1000
    labels: { method: $1 }
  - match: a.gauge
    match_metric_type: gauge
    scale: 0.5
    name: b
  - match: secret
    match_type: regex
    action: drop
  - match: a.*
    name: found_first
`;

const DEFAULTS = { labels: {}, help: "Named by the mapping file.", scale: 1, bounds: [0.01, 1] };
const HITS = { domain: "d", key: "k_k_1", fixed: "yes" };
const TIMES = { name: "time_ms", labels: { method: "Check" }, scale: 1_000, bounds: [1, 100] };

/** The result for a metric; fields that are not given are the defaults. */
const MAPPED: readonly [name: string, kind: MetricKind, mapped: object | "drop" | undefined][] = [
  [
    "ratelimit.service.rate_limit.d.k_1.total_hits",
    "counter",
    { name: "hits_d_total", labels: HITS, help: "All hits." },
  ],
  ["ratelimit.service.rate_limit.d.k.l.total_hits", "counter", undefined],
  ["ratelimit_server.Check.response_time", "histogram", TIMES],
  ["ratelimit_server.Check.response_time", "counter", undefined],
  ["a.gauge", "gauge", { name: "b", scale: 0.5, bounds: undefined }],
  ["a.regex", "counter", { name: "found_first" }],
  ["my.secret.name", "gauge", "drop"],
];

for (const [name, kind, mapped] of MAPPED) {
  Deno.test(`mapping file: ${kind} ${name}`, () => {
    const { mappings, problems } = readMetricMapping("map.yaml", GOOD, OPTIONS);
    assertEquals(problems.map(problemText), []);
    const expected = typeof mapped === "object" ? { ...DEFAULTS, ...mapped } : mapped;
    assertEquals<unknown>(mapperOf(mappings)(name, kind), expected);
  });
}

/** Texts, or lines of a mapping that is right but for this one, and their one problem. */
type Problems = readonly (readonly [text: string, problem: string])[];

const BAD: Problems = [
  ["- a", "1:1: expected a mapping with a list 'mappings', got a list"],
  ["mappings: [a]", "1:12: mappings[0]: expected a mapping with match and name, got 'a'"],
  [
    "mappings: [{ name: b }]",
    "1:12: mappings[0].match: expected a name such as 'ratelimit.service.*', got nothing",
  ],
  [
    "mappings: [{ match: a }]",
    "1:12: mappings[0].name: expected the name of the metric, or 'action: drop'; got nothing",
  ],
  [
    "mappings: [{ match: a*.b, name: c }]",
    "1:21: mappings[0].match: expected '*' alone between dots, got 'a*'; correct it, or use 'match_type: regex'",
  ],
  [
    "mappings: [{ match: 'a(', match_type: regex, name: c }]",
    "1:21: mappings[0].match: expected a regular expression, got 'a(': missing closing ) at character 2",
  ],
  [
    "mappings: [{ match: a, name: b-c }]",
    "1:30: mappings[0].name: expected letters, digits, _ and groups such as $1, got 'b-c'",
  ],
  [
    "mappings: [{ match: a.*, name: b_$2 }]",
    "1:32: mappings[0].name: expected a group from 1 to 1; got '$2'",
  ],
  [
    one("match_type: regex\n    labels: { b: $who, c: $other }").replace("match: a", "match: (?P<who>a)"),
    "4:27: mappings[0].labels.c: expected a group from 1 to 1, who; got '$other'",
  ],
  ["labels: { b: $1 }", "3:18: mappings[0].labels.b: expected no group, because match has none; got '$1'"],
  [
    "labels: { le: b }",
    "3:15: mappings[0].labels: expected a label of letters, digits and _, but not le; got 'le'",
  ],
  ["scale: -1", "3:12: mappings[0].scale: expected a number above 0, got '-1'"],
  [
    "match_metric_type: set",
    "3:24: mappings[0].match_metric_type: expected one of counter, gauge, observer, timer, got 'set'",
  ],
];

/** Texts that other readers of the format accept, and Weir starts with. */
const WARNED: Problems = [
  ["", "1:1: there are no mappings; begin with 'mappings:' and a list below it"],
  ["mapping: []", "1:1: unknown key 'mapping'; did you mean 'mappings'?"],
  ["nam: b", "3:5: mappings[0]: unknown key 'nam'; did you mean 'name'?"],
  ["ttl: 5s", "3:5: mappings[0]: 'ttl' has no effect: statistics do not expire"],
  [
    "honor_labels: true",
    "3:5: mappings[0]: 'honor_labels' has no effect: statistics have no labels before the mapping",
  ],
  [
    "defaults: { glob_disable_ordering: true }\n" + one("help: a"),
    "1:13: defaults: 'glob_disable_ordering' has no effect: the first glob that matches applies",
  ],
  [
    "quantiles: [{ quantile: 0.99 }]",
    "3:5: mappings[0]: 'quantiles' has no effect: durations are histograms",
  ],
  [
    "summary_options: { max_age: 30s }",
    "3:5: mappings[0]: 'summary_options' has no effect: durations are histograms",
  ],
  [
    "histogram_options: { native_histogram_bucket_factor: 1.1 }",
    "3:26: mappings[0].histogram_options: 'native_histogram_bucket_factor' has no effect: histograms have fixed bounds",
  ],
  [
    "observer_type: summary",
    "3:20: mappings[0].observer_type: durations are histograms, as with 'histogram'",
  ],
  [
    "histogram_options: { buckets: [0.01, 0.02] }",
    "3:42: mappings[0].buckets: is left out: the fixed bounds are 0.001, 0.01, 0.1, 1, got '0.02'",
  ],
  [
    one("match_type: regex").replace("match: a", "match: a(?!b)"),
    "2:12: mappings[0].match: Go refuses this regular expression, so it is read as one of " +
    "JavaScript: invalid or unsupported Perl syntax at character 2",
  ],
];

for (const [severity, cases] of [["error", BAD], ["warning", WARNED]] as const) {
  for (const [text, problem] of cases) {
    Deno.test(`mapping file: ${severity} for ${JSON.stringify(text)}`, () => {
      const isFile = text === "" || /^(?:- a|mapping|defaults)/.test(text);
      const { problems } = readMetricMapping("map.yaml", isFile ? text : one(text), OPTIONS);
      assertEquals(problems.map((each) => [each.severity, problemText(each)]), [[
        severity,
        `map.yaml:${problem}`,
      ]]);
    });
  }
}

/** Values that are the same as no value. */
const NO_VALUES: readonly string[] = [
  "ttl: 0",
  "ttl: 0s",
  "honor_labels: false",
  "quantiles: []",
  "summary_options: { quantiles: [], max_age: 0s, age_buckets: 0, buf_cap: 0 }",
  "summary_options: {}",
  "buckets: []",
  "histogram_options: { buckets: [], native_histogram_bucket_factor: 0 }",
  'match_type: ""',
  'match_metric_type: ""',
  'action: ""',
  'timer_type: ""',
  "scale: ~",
  "scale: 1_0.0",
  "help: 1.5",
];

for (const line of NO_VALUES) {
  Deno.test(`mapping file: accepts ${line}`, () => {
    const { mappings, problems } = readMetricMapping("map.yaml", one(line), OPTIONS);
    assertEquals([problems, mappings.length, mappings[0]?.bounds], [[], 1, undefined]);
  });
}

Deno.test("mapping file: accepts defaults of every key", () => {
  const defaults =
    "defaults: { match_type: glob, observer_type: histogram, glob_disable_ordering: no, ttl: 0, " +
    "summary_options: ~, quantiles: ~, histogram_options: {}, buckets: ~ }\n";
  const { mappings, problems } = readMetricMapping("map.yaml", `${defaults}${one("help: a")}---\n`, OPTIONS);
  assertEquals([problems, mappings.length], [[], 1]);
});

Deno.test("mapping file: patterns and groups of Go", () => {
  const text = `mappings:
  - match: '(?i)\\A(?P<domain>[[:alpha:]]+)\\.(\\pL+)\\z'
    match_type: regex
    name: $2_\${domain}
    labels: { domain: $domain, key: "$<domain>_\${2}" }
`;
  const { mappings, problems } = readMetricMapping("map.yaml", text, OPTIONS);
  const mapped = mapperOf(mappings)("Shop.ä", "counter");
  const seen = mapped === undefined || mapped === "drop" ? mapped : [mapped.name, mapped.labels];
  assertEquals([problems, seen], [[], ["__Shop", { domain: "Shop", key: "Shop_ä" }]]);
});

Deno.test("mapping file: all mistakes are reported together, and a file that is not there by the setting's name", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_mapping_" });
  try {
    const path = join(folder, "map.yaml");
    const missing = await loadMetricMapping(path, OPTIONS).catch(messageOf);
    await Deno.writeTextFile(path, "mappings:\n- { match: a, nam: b }\n");
    const bad = await loadMetricMapping(path, OPTIONS).catch(messageOf);
    await Deno.writeTextFile(path, "mappings:\n- { match: a, name: b }\n");
    const good = await loadMetricMapping(path, OPTIONS);
    const count = typeof good === "string" ? good : good.mappings.length;
    assertEquals([missing, bad, count], [
      `Cannot read PULL_METRICS_MAPPER_YAML "${path}": it does not exist`,
      `${path}:2:15: mappings[0]: unknown key 'nam'; did you mean 'name'?\n` +
      `${path}:2:3: mappings[0].name: expected the name of the metric, or 'action: drop'; got nothing`,
      1,
    ]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

/** A file of one mapping that is right but for this line. */
function one(line: string): string {
  return `mappings:\n  - match: a\n    ${line}\n    name: b\n`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
