/**
 * Runs the `sh` blocks of the pages: all blocks of a page in order, in one bash, without a way out of the machine. Some
 * pages run at the same time. `deno test -A FILE -- docs/cache.md` runs those of the named pages alone.
 */
import { assertEquals } from "#assert";
import { documentPages, type Page } from "../../harness/documents.ts";
import {
  needsNamespaces,
  needsPostgres,
  parseProblems,
  runBlocks,
  type ShellOutcome,
} from "../../harness/example_shell.ts";
import { TOOL_NAMES } from "../../harness/tool_register.ts";
import { toolAvailable } from "../../harness/tools.ts";

const PAGES_AT_A_TIME = 4;
const PAGES = documentPages().filter(({ path }) => Deno.args.length === 0 || Deno.args.includes(path));

Deno.test("the parser of bash accepts every sh block", async () => {
  const findings = PAGES.flatMap(({ path, blocks }) =>
    blocks.filter(({ language }) => language === "sh").map(async (block) => {
      const problems = await parseProblems(block);
      return problems === "" ? [] : [`${path}:${block.line}: ${problems}`];
    })
  );
  assertEquals((await Promise.all(findings)).flat(), []);
});

Deno.test({
  ...needsNamespaces("the sh blocks of the pages end without an error"),
  async fn(test) {
    // The longest pages first.
    const waiting = PAGES.filter((page) => runnable(page).length > 0 && missingFor(page).length === 0)
      .toSorted((a, b) => runnable(b).length - runnable(a).length);
    const worker = async () => {
      for (let page = waiting.shift(); page !== undefined; page = waiting.shift()) await testPage(test, page);
    };
    await Promise.all(Array.from({ length: PAGES_AT_A_TIME }, worker));
  },
});

for (const page of PAGES) {
  const missing = missingFor(page).join(", ");
  if (missing === "") continue;
  Deno.test.ignore(`the sh blocks of ${page.path} end without an error [needs ${missing}]`, () => {});
}

async function testPage(test: Deno.TestContext, page: Page): Promise<void> {
  const blocks = runnable(page);
  await test.step({
    name: page.path,
    fn: async () => {
      const failures = failuresOf(page, await runBlocks(blocks));
      if (failures.length > 0) throw new Error(failures.join("\n"));
    },
    // Steps that run at the same time cannot tell whose resources are left.
    sanitizeOps: false,
    sanitizeResources: false,
    sanitizeExit: false,
  });
}

/** The blocks of a page that run here. */
function runnable({ blocks }: Page): Page["blocks"] {
  return blocks.filter((block) =>
    block.language === "sh" && (block.marks.length === 0 || needsPostgres(block))
  );
}

/** Needs of the blocks of a page that this machine does not meet: programs, or the right to be another user. */
function missingFor(page: Page): string[] {
  const blocks = runnable(page);
  const text = blocks.map((block) => block.text).join("");
  const tools = TOOL_NAMES.filter((tool) => new RegExp(`\\b${tool}\\b`).test(text) && !toolAvailable(tool));
  return blocks.some(needsPostgres) && Deno.uid() !== 0 ? [...tools, "root"] : tools;
}

function failuresOf({ path }: Page, outcomes: readonly ShellOutcome[]): string[] {
  return outcomes.filter(({ code }) => code !== 0).map(({ line, code, output }) => {
    return `${path}:${line}: ${code === undefined ? "no end" : `exit code ${code}`}\n${output}`;
  });
}
