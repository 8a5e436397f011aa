import { assertEquals } from "#assert";
import { checkSources } from "../../../../src/ratelimit/rules/rule_check.ts";
import type { DescriptorSource } from "../../../../src/ratelimit/rule_source.ts";

Deno.test("rules whose full names do not fit into memory together are an error with its place", () => {
  const domain = "d".repeat(1_000_000);
  const descriptors = Array.from({ length: 100 }, (_, index) => ruleOf(`k${index}`, `descriptors[${index}]`));
  const problems = checkSources([{ at: "shop", domain, descriptors }], {});
  assertEquals(problems, [{
    severity: "error",
    at: "shop",
    path: "descriptors[67]",
    text: "the full names of the rules up to here have more than 67108864 characters; " +
      "use a shorter domain, shorter keys or fewer rules",
  }]);
  assertEquals(
    checkSources([{ at: "shop", domain, descriptors: descriptors.slice(0, 67) }], {}),
    [],
  );
});

function ruleOf(key: string, path: string): DescriptorSource {
  return {
    at: "shop",
    path,
    key,
    value: "",
    rateLimit: undefined,
    metadata: undefined,
    descriptors: [],
    shadowMode: false,
    quotaMode: false,
    detailedMetric: false,
    valueToMetric: false,
    shareThreshold: false,
    onCacheFailure: undefined,
  };
}
