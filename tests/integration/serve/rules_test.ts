import { assertEquals } from "#assert";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { EarlyRuleWorker } from "../../../src/config/rule_worker.ts";
import { makeParts } from "../../../src/serve/parts.ts";
import { openRules } from "../../../src/serve/rules.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";
import { settledTurns } from "../../harness/until.ts";

runWorkersInThread();

Deno.test("rules: those that are loaded before something decides by them are in force once they are applied", async () => {
  const root = await Deno.makeTempDir({ prefix: "weir_" });
  await Deno.mkdir(join(root, "config"));
  await Deno.writeTextFile(join(root, "config", "shop.yaml"), "domain: shop\n");
  const { settings } = readSettings({
    BACKEND_TYPE: "memory",
    RUNTIME_ROOT: root,
    RUNTIME_WATCH_ROOT: "false",
  });
  const parts = makeParts(settings, { clock: systemClock, logger: new RecordedLogger() });
  const rules = await openRules(parts, new EarlyRuleWorker());
  await rules.firstRules;
  const story: string[] = [];
  const applying = Promise.withResolvers<void>();
  const inForce = rules.decideBy(({ domainCount }) => {
    story.push(`applying ${domainCount}`);
    return applying.promise;
  }).then(() => void story.push("in force"));
  await settledTurns();
  assertEquals(story, ["applying 1"]);
  applying.resolve();
  await inForce;
  assertEquals(story, ["applying 1", "in force"]);
  await rules.close();
  await Deno.remove(root, { recursive: true });
});
