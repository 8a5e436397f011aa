/**
 * Runs the `console webhooks` blocks of the pages: all blocks of a page in order, against one service with the settings
 * of `deno task start`. `console webhooks listener` is what the receiver prints meanwhile. Loads the `yaml workflow` blocks.
 */
import { assertEquals } from "@std/assert";
import { readWorkflowFile } from "../../../src/webhooks/workflows/file.ts";
import { documentPages } from "../../harness/documents.ts";
import { WebhookExamples } from "../../harness/webhook_examples.ts";

for (const { path, blocks } of documentPages()) {
  const commands = blocks.filter(({ language, marks }) =>
    language === "console" && marks.includes("webhooks")
  );
  const workflows = blocks.filter(({ language, marks }) => language === "yaml" && marks.includes("workflow"));

  if (commands.length > 0) {
    Deno.test(`${path}: the webhook commands print the output`, async (test) => {
      const settings = commands.flatMap(({ marks }) => marks).filter((mark) => mark.includes("="));
      await using session = await WebhookExamples.start(
        Object.fromEntries(settings.map((mark) => mark.split("=", 2))),
      );
      for (const block of commands) {
        const isRight = await test.step({
          name: `line ${block.line}`,
          fn: () => session.replay(block),
          // The service lives on.
          sanitizeOps: false,
          sanitizeResources: false,
        });
        if (!isRight) break;
      }
    });
  }

  for (const { line, text } of workflows) {
    Deno.test(`${path}:${line}: the workflow is valid`, () => {
      const { problems } = readWorkflowFile("workflow.yaml", text, ["CRM_TOKEN"]);
      assertEquals(problems, []);
    });
  }
}
