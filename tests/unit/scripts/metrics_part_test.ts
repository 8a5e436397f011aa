import { assertEquals } from "@std/assert";
import { metricsPart } from "../../../scripts/docs/metrics_part.ts";
import { METRIC_SECTIONS } from "../../../src/serve/metric_groups.ts";

const GROUPS = METRIC_SECTIONS.flatMap(({ groups }) => groups);
Deno.test("metrics reference: one row of five cells for each declared metric", () => {
  const rows = metricsPart().split("\n").filter((line) => line.startsWith("| `"));
  const declared = GROUPS.flatMap(({ prefix, metrics }) => Object.keys(metrics).map((name) => prefix + name));
  const names = rows.map((row) => row.split("`")[1]?.replace(/\.<(?:\w+)>$/, ""));
  assertEquals(names, declared);
  assertEquals(new Set(declared).size, declared.length);
  assertEquals(rows.filter((row) => row.split(" | ").length !== 5), []);
});

Deno.test("metrics reference: each meaning is one or two sentences", () => {
  const all = GROUPS.flatMap(({ metrics }) => Object.values(metrics));
  assertEquals(all.filter(({ meaning }) => !/^[A-Z0-9].*\.$/.test(meaning)), []);
});
