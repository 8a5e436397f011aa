import { assertEquals, assertRejects } from "@std/assert";
import { checkStore } from "../../../src/webhooks/store_check.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { PostgresServer } from "../../harness/postgres_server.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { needs } from "../../harness/tools.ts";
import { weirCommand } from "../../harness/weir_command.ts";
import { StoreFolder } from "../../harness/sqlite_fixture.ts";
import { allRows, fillRandomly } from "../../harness/store_move_fixture.ts";

/** After these lines the move is killed, one after the other: it has begun anew by the time of the next. */
const KILLS = [
  "endpoint: 300 rows copied",
  "event: 300 rows copied",
  "tally: 300 rows copied",
  "delivery: 300 rows are",
];

Deno.test({
  ...needs(
    ["postgres"],
    "a move that is killed again and again is whole in the end, and half of it is never opened",
  ),
  async fn() {
    await using server = await PostgresServer.start();
    using folder = new StoreFolder();
    fillRandomly(folder.path, { rows: 300, random: seededRandom(20) });
    const before = allRows(folder.path);
    const url = server.url(await server.createDatabase());
    const back = folder.file("back.db");
    for (const [from, to] of [[folder.path, url], [url, back]] as const) {
      for (const line of KILLS) {
        await killedAfter(line, from, to);
        await assertRejects(() => checkStore(to));
      }
      await using moving = moveCommand(from, to);
      const { code } = await moving.exited;
      assertEquals([code, moving.stdoutLines.length], [0, 1], moving.stderrLines.join("\n"));
    }
    assertEquals(allRows(back), before);
    assertEquals(allRows(folder.path), before);
  },
});

async function killedAfter(line: string, from: string, to: string): Promise<void> {
  // By itself, since somebody else might come too late.
  const child = new URL("store_move_kill_child.ts", import.meta.url).pathname;
  const args = ["run", "--no-check", "--quiet", "-A", child, from, to, line];
  await using moving = new ChildProcess(Deno.execPath(), { args });
  const { signal } = await moving.exited;
  assertEquals([signal, moving.stdoutLines], ["SIGKILL", []], moving.stderrLines.join("\n"));
  assertEquals(moving.stderrLines.at(-1)?.startsWith(line), true, moving.stderrLines.join("\n"));
}

function moveCommand(from: string, to: string): ChildProcess {
  const { command, args } = weirCommand(["store", "move", "--from", from, "--to", to]);
  return new ChildProcess(command, { args });
}
