import { assert, assertEquals } from "#assert";
import { readDomain, readLevels } from "../../../src/stats/pull_levels.ts";
import { rulesOf } from "../../harness/service_fixture.ts";

const LIMIT = "rate_limit: { unit: day, requests_per_unit: 5 }";

const { domains } = rulesOf({
  "edge.yaml": `domain: edge
descriptors:
  - { key: plain, ${LIMIT} }
  - { key: user_id, detailed_metric: true, ${LIMIT} }
  - { key: version, value: "1.2.3", ${LIMIT} }
  - { key: version, value_to_metric: true, descriptors: [{ key: x, ${LIMIT} }] }
  - key: host
    value_to_metric: true
    ${LIMIT}
    descriptors:
      - key: path
        value: /api/v1.0/*
        descriptors: [{ key: method, value_to_metric: true, ${LIMIT} }]
  - { key: file, value: "*.png", ${LIMIT} }
  - { key: build, value: { regex: '^(v|x:)1\\.[0-9]+$' }, ${LIMIT} }
  - { key: build, value: { in: [a.b, c] }, descriptors: [{ key: method, ${LIMIT} }] }
  - { key: dotted.key, descriptors: [{ key: b, ${LIMIT} }] }
`,
  "edge_eu.yaml": `domain: edge.eu\ndescriptors: [{ key: a, descriptors: [{ key: b, ${LIMIT} }] }]\n`,
});

const KEYS: readonly [key: string, domain: string, ...levels: string[]][] = [
  ["edge.plain", "edge", "plain"],
  ["edge.user_id_10.1", "edge", "user_id_10.1"],
  ["edge.user_id_a.b.c_d", "edge", "user_id_a.b.c_d"],
  ["edge.version_1.2.3", "edge", "version_1.2.3"],
  ["edge.version_1.2.x_7", "edge", "version_1.2", "x_7"],
  ["edge.host_www.example.com", "edge", "host_www.example.com"],
  [
    "edge.host_www.example.com.path_/api/v1.0/*.method_GET",
    "edge",
    "host_www.example.com",
    "path_/api/v1.0/*",
    "method_GET",
  ],
  ["edge.host.path_/api/v1.0/a.method", "edge", "host", "path_/api/v1.0/a", "method"],
  ["edge.file_*.png", "edge", "file_*.png"],
  ["edge.build_regex(^(v_x_)1\\.[0-9]+$)", "edge", "build_regex(^(v_x_)1\\.[0-9]+$)"],
  ["edge.build_in(a.b,c).method", "edge", "build_in(a.b,c)", "method"],
  ["edge.dotted.key.b", "edge", "dotted.key", "b"],
  ["edge.eu.a.b_1.2", "edge.eu", "a", "b_1.2"],
  // What fits no rule is split at its dots.
  ["edge.other_1.2", "edge", "other_1", "2"],
  ["edge.eu.other.b", "edge.eu", "other", "b"],
  ["gone.a.b.c", "gone", "a", "b", "c"],
  ["other", "other"],
];

for (const [key, domain, ...levels] of KEYS) {
  Deno.test(`metric key: ${key} has its levels`, () => {
    assertEquals(readLevels(key, domains), { domain, levels });
  });
}

const DOMAINS: readonly [key: string, domain: string, rest: string][] = [
  ["edge.user_id_10.1", "edge", "user_id_10.1"],
  ["edge.eu.a.b", "edge.eu", "a.b"],
  ["edge", "edge", ""],
  ["gone.a.b", "gone", "a.b"],
  ["other", "", "other"],
];

for (const [key, domain, rest] of DOMAINS) {
  Deno.test(`metric key: ${key} has its domain`, () =>
    assertEquals(readDomain(key, domains), { domain, rest }));
}

Deno.test("metric key: one made to fit rules halfway again and again costs no more than others", () => {
  const deep = rulesOf({
    "d.yaml": `domain: d
descriptors:
  - key: a
    descriptors:
      - key: a
        descriptors:
          - key: a
            descriptors: [{ key: a, descriptors: [{ key: z, ${LIMIT} }] }]
`,
  });
  const evil = `d${".a_".repeat(300)}`;
  const { levels } = readLevels(evil, deep.domains);
  assertEquals(levels.length, 300);
});

Deno.test("metric key: a long value with dots is not compared with expressions again and again", () => {
  let compared = 0;
  const rules = {
    exact: undefined,
    patterns: undefined,
    expressions: {
      find(value: string) {
        compared += value.length;
        return { limit: {}, children: undefined };
      },
    },
    keyOnly: undefined,
    named: undefined,
  };
  const tables = new Map([["d", new Map([["k", rules]])]]);
  for (const value of ["a.".repeat(500), "a.", "..", "a".repeat(1_000)]) {
    compared = 0;
    readLevels(`d.k_${value}`, tables);
    assert(compared <= 3_500, `${compared}`);
  }
  assertEquals(readLevels(`d.k_${"a".repeat(1_000)}`, tables).levels.length, 1);
  assertEquals(readLevels("d.k_1.2.3.4.5", tables).levels, ["k_1.2.3.4.5"]);
});
