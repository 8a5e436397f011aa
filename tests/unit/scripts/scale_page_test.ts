import { assertEquals, assertStringIncludes, assertThrows } from "#assert";
import { scaleResults } from "../../../scripts/bench/scale.ts";
import { latestResults } from "../../../scripts/docs/performance_page.ts";
import { DECISION_FORMULAS, EVENT_FORMULAS } from "../../../scripts/docs/scale_formulas.ts";
import { scalePage } from "../../../scripts/docs/scale_page.ts";

Deno.test("the page has each formula with its results, and no row without a number", async () => {
  const page = scalePage(await latestResults(), await scaleResults());
  for (const { what, text } of [...DECISION_FORMULAS, ...EVENT_FORMULAS]) {
    assertStringIncludes(page, `| ${what} | ${text} | `);
  }
  assertEquals(page.match(/NaN|undefined|Infinity/g), null);
});

Deno.test("predictions of counts are within a fifth of the measurement", async () => {
  const page = scalePage(await latestResults(), await scaleResults());
  const rows = page.slice(page.indexOf("## Checked")).split("\n").filter((line) => line.endsWith(" % |"));
  const counted = rows.filter((row) => !row.includes("| CPU of "));
  const differences = counted.map((row) => Math.abs(Number(row.split(" | ").at(-1)?.replace(" % |", ""))));
  assertEquals([rows.length, counted.length, differences.filter((value) => !(value <= 20))], [10, 8, []]);
});

Deno.test("results of a part of the bench make no page", async () => {
  const { quotas: _, ...part } = await latestResults();
  const scale = await scaleResults();
  assertStringIncludes(assertThrows(() => scalePage(part, scale)).message, "not the result of a whole run");
});
