import { assert, assertEquals } from "@std/assert";
import { checkStore } from "../../../src/webhooks/store_check.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { until } from "../../harness/until.ts";
import { StoreFolder } from "../../harness/sqlite_fixture.ts";

const ROUNDS = 5;
const SEED = 20_261_122;

Deno.test(`kill -9 in the middle of commits loses nothing that was answered (seed ${SEED})`, async () => {
  using folder = new StoreFolder();
  const random = seededRandom(SEED);
  const child = new URL("sqlite_crash_child.ts", import.meta.url).pathname;
  const answered: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const lines = 50 + Math.floor(random() * 500);
    await using running = new ChildProcess(Deno.execPath(), {
      args: ["run", "-A", "--no-check", child, folder.path],
    });
    await until("it has answered often", () => running.stdoutLines.length > lines, { intervalMs: 1 });
    await running.kill();
    answered.push(...running.stdoutLines);

    const { problems, counts } = await checkStore(folder.path);
    assertEquals(problems, []);
    assert((counts["delivery"] ?? 0) >= (counts["event"] ?? 0), "an event stands there with its deliveries");
  }
  const store = await folder.open();
  const missing: string[] = [];
  for (const line of answered) {
    const [what, id = ""] = line.split(" ");
    const found = what === "event" ? await store.findEvent(id) : await store.findExecution(id);
    if (found === undefined) missing.push(line);
  }
  await store.close();
  assertEquals([missing, answered.length > ROUNDS * 50], [[], true]);
});
