import { assertEquals } from "@std/assert";
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

const MAPPED: readonly [name: string, kind: MetricKind, mapped: unknown][] = [
  ["ratelimit.service.rate_limit.d.k_1.total_hits", "counter", {
    name: "hits_d_total",
    labels: { domain: "d", key: "k_k_1", fixed: "yes" },
    help: "All hits.",
    scale: 1,
    bounds: [0.01, 1],
  }],
  ["ratelimit.service.rate_limit.d.k.l.total_hits", "counter", undefined],
  ["ratelimit_server.Check.response_time", "histogram", {
    name: "time_ms",
    labels: { method: "Check" },
    help: "Named by the mapping file.",
    scale: 1_000,
    bounds: [1, 100],
  }],
  ["ratelimit_server.Check.response_time", "counter", undefined],
  ["a.gauge", "gauge", {
    name: "b",
    labels: {},
    help: "Named by the mapping file.",
    scale: 0.5,
    bounds: undefined,
  }],
  ["a.regex", "counter", {
    name: "found_first",
    labels: {},
    help: "Named by the mapping file.",
    scale: 1,
    bounds: [0.01, 1],
  }],
  ["my.secret.name", "gauge", "drop"],
];

for (const [name, kind, mapped] of MAPPED) {
  Deno.test(`mapping file: ${kind} ${name}`, () => {
    const { mappings, problems } = readMetricMapping("map.yaml", GOOD, OPTIONS);
    assertEquals(problems.map(problemText), []);
    assertEquals(mapperOf(mappings)(name, kind), mapped);
  });
}

const BAD: readonly [what: string, text: string, problem: string][] = [
  ["empty", "", "map.yaml:1:1: there are no mappings; begin with 'mappings:' and a list below it"],
  ["no mapping", "- a", "map.yaml:1:1: expected a mapping with a list 'mappings', got a list"],
  ["unknown key", "mapping: []", "map.yaml:1:1: unknown key 'mapping'; did you mean 'mappings'?"],
  [
    "unknown key of a mapping",
    one("nam: b"),
    "map.yaml:3:5: mappings[0]: unknown key 'nam'; did you mean 'name'?",
  ],
  ["key that is not done", one("ttl: 5s"), "map.yaml:3:5: mappings[0]: 'ttl' is not supported; remove it"],
  [
    "item",
    "mappings: [a]",
    "map.yaml:1:12: mappings[0]: expected a mapping with match and name, got 'a'",
  ],
  [
    "no match",
    "mappings: [{ name: b }]",
    "map.yaml:1:12: mappings[0].match: expected a name such as 'ratelimit.service.*', got nothing",
  ],
  [
    "no name",
    "mappings: [{ match: a }]",
    "map.yaml:1:12: mappings[0].name: expected the name of the metric, or 'action: drop'; got nothing",
  ],
  [
    "star beside text",
    "mappings: [{ match: a*.b, name: c }]",
    "map.yaml:1:21: mappings[0].match: expected '*' alone between dots, got 'a*'; correct it, or use 'match_type: regex'",
  ],
  [
    "bad regular expression",
    "mappings: [{ match: 'a(', match_type: regex, name: c }]",
    "map.yaml:1:21: mappings[0].match: expected a regular expression, got 'a(': Invalid regular expression: /a(/: Unterminated group",
  ],
  [
    "bad name",
    "mappings: [{ match: a, name: b-c }]",
    "map.yaml:1:30: mappings[0].name: expected letters, digits, _ and groups such as $1, got 'b-c'",
  ],
  [
    "group in the name",
    "mappings: [{ match: a.*, name: b_$2 }]",
    "map.yaml:1:32: mappings[0].name: expected a group from 1 to 1; got '$2'",
  ],
  [
    "group in a label",
    one("labels: { b: $1 }"),
    "map.yaml:3:18: mappings[0].labels.b: expected no group, because match has none; got '$1'",
  ],
  [
    "bad label",
    one("labels: { le: b }"),
    "map.yaml:3:15: mappings[0].labels: expected a label of letters, digits and _, but not le; got 'le'",
  ],
  [
    "summary",
    one("observer_type: summary"),
    "map.yaml:3:20: mappings[0].observer_type: expected one of histogram, got 'summary'",
  ],
  [
    "bound between ours",
    one("histogram_options: { buckets: [0.01, 0.02] }"),
    "map.yaml:3:42: mappings[0].buckets: expected some of 0.001, 0.01, 0.1, 1, got '0.02'",
  ],
  ["scale", one("scale: -1"), "map.yaml:3:12: mappings[0].scale: expected a number above 0, got '-1'"],
  [
    "kind",
    one("match_metric_type: set"),
    "map.yaml:3:24: mappings[0].match_metric_type: expected one of counter, gauge, observer, timer, got 'set'",
  ],
];

for (const [what, text, problem] of BAD) {
  Deno.test(`mapping file: refuses ${what}`, () => {
    const { problems } = readMetricMapping("map.yaml", text, OPTIONS);
    assertEquals(problems.map(problemText), [problem]);
  });
}

Deno.test("mapping file: all mistakes are told at once, and a file that is not there by the setting's name", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_mapping_" });
  try {
    const path = join(folder, "map.yaml");
    const missing = await loadMetricMapping(path, OPTIONS).catch(messageOf);
    await Deno.writeTextFile(path, "mappings:\n- { match: a, nam: b }\n");
    const bad = await loadMetricMapping(path, OPTIONS).catch(messageOf);
    await Deno.writeTextFile(path, "mappings:\n- { match: a, name: b }\n");
    const good = await loadMetricMapping(path, OPTIONS);
    assertEquals([missing, bad, good.length], [
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
