import { assertEquals } from "#assert";
import { readRuleFile } from "../../../src/config/rule_file.ts";

const UNLIMITED = "rate_limit: {unlimited: true}";

Deno.test("yaml: what becomes of a rule when the cache fails, in quotes or without", () => {
  const written = ["error", "allow", "'deny'", '"local"', "~", ""];
  const rules = written.map((word, index) => `- {key: k${index}, on_cache_failure: ${word}, ${UNLIMITED}}\n`)
    .join("");
  const { source, problems } = readRuleFile("r.yaml", `domain: d\ndescriptors:\n${rules}`);
  assertEquals(problems, []);
  assertEquals(
    source?.descriptors.map((one) => one.onCacheFailure),
    ["error", "allow", "deny", "local", undefined, undefined],
  );
});

Deno.test("yaml: where nothing is counted, it is taken like a shadow mode without effect", () => {
  const rules = [UNLIMITED, `${UNLIMITED}, shadow_mode: true`];
  const text = rules.map((rest, index) => `- {key: k${index}, on_cache_failure: deny, ${rest}}\n`).join("");
  assertEquals(readRuleFile("r.yaml", `domain: d\ndescriptors:\n${text}`).problems, []);
});

/** Fields of a rule, and those of them that are reported. */
const LIMITLESS: readonly (readonly [fields: string, reported: readonly string[]])[] = [
  ["shadow_mode: true, descriptors: [{key: b}]", ["shadow_mode"]],
  ["quota_mode: true, descriptors: [{key: b}]", ["quota_mode"]],
  ["detailed_metric: true, descriptors: [{key: b}]", ["detailed_metric"]],
  ["on_cache_failure: deny, metadata: {team: a}, descriptors: []", ["on_cache_failure", "metadata"]],
  ["shadow_mode: true", ["shadow_mode"]],
  ["shadow_mode: true, rate_limit: ~", ["shadow_mode"]],
  ["shadow_mode: false, detailed_metric: no, on_cache_failure: ~, metadata: ~", []],
  ["value: v*, share_threshold: true, value_to_metric: true", []],
  [`shadow_mode: true, metadata: {team: a}, ${UNLIMITED}`, []],
];

for (const [fields, reported] of LIMITLESS) {
  Deno.test(`yaml: {${fields}}: what has no effect without a limit is a warning`, () => {
    const rule = `{key: k, ${fields}}`;
    const { source, problems } = readRuleFile("r.yaml", `domain: d\ndescriptors:\n- ${rule}\n`);
    const expected = reported.map((name) => ({
      severity: "warning",
      at: `r.yaml:3:${rule.indexOf(`${name}:`) + 3}`,
      path: `descriptors[0].${name}`,
      text: "has no effect without a rate_limit at this level, and nested descriptors do not inherit it; " +
        "move it next to a rate_limit, or remove it",
    }));
    assertEquals([source?.descriptors.length, problems], [1, expected]);
  });
}

Deno.test("yaml: a flag next to an invalid rate_limit is not reported", () => {
  const rule = "{key: k, shadow_mode: true, rate_limit: 5}";
  const { problems } = readRuleFile("r.yaml", `domain: d\ndescriptors:\n- ${rule}\n`);
  assertEquals(problems.map(({ path }) => path), ["descriptors[0].rate_limit"]);
});
