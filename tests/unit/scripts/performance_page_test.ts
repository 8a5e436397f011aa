import { assertEquals, assertStringIncludes, assertThrows } from "#assert";
import { latestResults, performancePage, speedPart } from "../../../scripts/docs/performance_page.ts";

Deno.test("the page names the missed targets, and has no row without a number", async () => {
  const results = await latestResults();
  const page = performancePage(results);
  const missed = page.split("\n").filter((line) => / \| no(?:, by \d+ %)? \|$/.test(line)).map((row) =>
    row.split(" | ")[0]
  );
  const flat = page.replaceAll("\n", " ");
  for (const row of missed) assertStringIncludes(flat, row?.slice(2) ?? "");
  assertStringIncludes(flat, missed.length === 0 ? "meets all" : `misses ${missed.length} of `);
  assertEquals(page.match(/NaN|undefined|Infinity/g), null);
});

Deno.test("the README has the first three rows of the page", async () => {
  const results = await latestResults();
  const rows = (text: string) => text.split("\n").filter((line) => line.startsWith("| ")).slice(0, 5);
  assertEquals(rows(speedPart(results)), rows(performancePage(results)));
  assertEquals(speedPart(results).split("\n").filter((line) => line.startsWith("| ")).length, 5);
});

Deno.test("results of a part of the bench make no page", async () => {
  const { million: _, ...part } = await latestResults();
  assertStringIncludes(assertThrows(() => performancePage(part)).message, "million is missing");
});
