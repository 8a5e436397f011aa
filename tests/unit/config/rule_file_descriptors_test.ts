import { assertEquals } from "@std/assert";
import { readRuleFile } from "../../../src/config/rule_file.ts";

Deno.test("yaml: what becomes of a rule when the cache fails, in quotes or without", () => {
  const written = ["error", "allow", "'deny'", '"local"', "~", ""];
  const rules = written.map((word, index) => `- {key: k${index}, on_cache_failure: ${word}}\n`).join("");
  const { source, problems } = readRuleFile("r.yaml", `domain: d\ndescriptors:\n${rules}`);
  assertEquals(problems, []);
  assertEquals(
    source?.descriptors.map((one) => one.onCacheFailure),
    ["error", "allow", "deny", "local", undefined, undefined],
  );
});

Deno.test("yaml: where nothing is counted, it is taken like a shadow mode without effect", () => {
  const rules = [
    "rate_limit: {unlimited: true}",
    "rate_limit: {unlimited: true}, shadow_mode: true",
    "value: v",
  ];
  const text = rules.map((rest, index) => `- {key: k${index}, on_cache_failure: deny, ${rest}}\n`).join("");
  assertEquals(readRuleFile("r.yaml", `domain: d\ndescriptors:\n${text}`).problems, []);
});
