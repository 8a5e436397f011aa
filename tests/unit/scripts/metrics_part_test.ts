import { assertEquals } from "#assert";
import { METRIC_SECTIONS } from "../../../src/serve/metric_groups.ts";

const GROUPS = METRIC_SECTIONS.flatMap(({ groups }) => groups);

Deno.test("metrics reference: each meaning is one or two sentences", () => {
  const all = GROUPS.flatMap(({ metrics }) => Object.values(metrics));
  assertEquals(all.filter(({ meaning }) => !/^[A-Z0-9].*\.$/.test(meaning)), []);
});
