/** Runs the `console try` blocks of the pages that need no other program, and loads their `yaml rules`, `yaml wrong` and `yaml mapping` blocks. */
import { assertEquals } from "#assert";
import { readMetricMapping } from "../../../src/config/metric_mapping.ts";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import { compileRules } from "../../../src/ratelimit/rules/compile_rules.ts";
import { BUCKET_BOUNDS_MS } from "../../../src/stats/timer.ts";
import { type Block, documentPages, type Page } from "../../harness/documents.ts";
import { ExampleSession } from "../../harness/example_session.ts";
import { comparable } from "../../harness/example_text.ts";

const SHOP = await Deno.readTextFile(new URL("../../../config/rules/shop.yaml", import.meta.url));

for (const page of documentPages()) {
  for (const [index, block] of page.blocks.entries()) testBlock(page, index, block);
}

function testBlock(page: Page, index: number, block: Block): void {
  const { line, language, marks } = block;
  const place = `${page.path}:${line}`;
  if (language === "yaml" && marks.includes("rules")) {
    Deno.test(`${place}: the rules load without error or warning`, () => {
      assertEquals(problemsOf(block.text), []);
    });
  }
  if (language === "yaml" && marks.includes("wrong")) {
    Deno.test(`${place}: the rules are rejected`, () =>
      assertEquals(problemsOf(block.text).length > 0, true));
  }
  if (language === "yaml" && marks.includes("mapping")) {
    Deno.test(`${place}: the mapping is valid`, () => {
      const boundsSeconds = BUCKET_BOUNDS_MS.map((ms) => ms / 1_000);
      const { mappings, problems } = readMetricMapping("mapping.yaml", block.text, { boundsSeconds });
      assertEquals([mappings.length > 0, problems], [true, []]);
    });
  }
  if (language !== "console" || !marks.includes("try") || marks.includes("grpcurl")) return;
  Deno.test(`${place}: the commands print the output`, async () => {
    await using session = new ExampleSession(rulesOf(page, index, block), marks);
    assertEquals(comparable(await session.printedBy(block)), comparable(block.text));
  });
}

function problemsOf(text: string): readonly unknown[] {
  const { source, problems } = readRuleFile("rules.yaml", text);
  const compiled = compileRules(source === undefined ? [] : [source]);
  return [...problems, ...compiled.problems];
}

/** The rules of a `console try` block. */
function rulesOf({ path, blocks }: Page, index: number, { line, marks }: Block): string {
  if (!marks.includes("above")) return SHOP;
  const above = blocks.slice(0, index).findLast((block) =>
    block.language === "yaml" && block.marks.some((mark) => ["rules", "wrong"].includes(mark))
  );
  if (above === undefined) throw new Error(`Cannot run ${path}:${line}: no rules above it`);
  return above.text;
}
