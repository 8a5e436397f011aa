import { assertEquals } from "@std/assert";
import { systemClock } from "../../../src/base/clock.ts";
import type { Logger } from "../../../src/base/log.ts";
import { createFileProvider } from "../../../src/config/file_provider.ts";
import { RulesStory } from "../../harness/rules_story.ts";
import { until } from "../../harness/until.ts";

Deno.test("rules loader: a file that is spoilt on disk keeps the old rules and says which line", async () => {
  const root = await Deno.makeTempDir();
  const story = new RulesStory();
  const logger: Logger = { debug() {}, info() {}, warning() {}, error() {} };
  const provider = createFileProvider({
    root,
    subdirectory: "",
    appDirectory: "",
    ignoreDotFiles: false,
    watchRoot: false,
    clock: systemClock,
    logger,
  });
  await Deno.writeTextFile(`${root}/a.yaml`, "domain: a\ndescriptors: []\n");
  const loader = story.start(provider);
  try {
    await loader.firstRules;
    story.take();
    await Deno.writeTextFile(
      `${root}/a.yaml`,
      "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unit: day}\n",
    );
    await until("the rejection", () => story.lines.includes("failed"));
    assertEquals(story.take().slice(0, 3).map((line) => line.replaceAll(root, "DIR")), [
      "error: DIR/a.yaml:4:15: descriptors[0].rate_limit.requests_per_unit: expected " +
      "a whole number from 0 to 4294967295 (0 blocks every request), or 'unlimited: true'; got nothing",
      "failed",
      "error: Rules rejected; keeping the previous rules errors=1",
    ]);
    await Deno.writeTextFile(`${root}/a.yaml`, "domain: b\ndescriptors: []\n");
    await until("the corrected rules", () => story.lines.includes("rules: b "));
  } finally {
    await loader.close();
    await Deno.remove(root, { recursive: true });
  }
});
