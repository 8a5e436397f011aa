import { assert, assertEquals, assertRejects } from "#assert";
import { checkStore } from "../../src/webhooks/store/maintenance/check.ts";
import { ChildProcess } from "./child_process.ts";
import { seededRandom } from "./seeded_random.ts";
import { StoreFolder } from "./sqlite_fixture.ts";
import { allRows, fillRandomly, move } from "./store_move_fixture.ts";
import { until } from "./until.ts";
import { findEvent } from "../../src/webhooks/store/operations/events.ts";
import { findExecution } from "../../src/webhooks/store/operations/executions.ts";

/** Kills processes that accept events and executions, again and again: nothing that was answered is lost. */
export async function acceptWithKills(rounds: number, seed: number): Promise<void> {
  using folder = new StoreFolder();
  const random = seededRandom(seed);
  const child = new URL("sqlite_crash_child.ts", import.meta.url).pathname;
  const answered: string[] = [];
  for (let round = 0; round < rounds; round++) {
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
    const found = what === "event" ? await store.read(findEvent, id) : await store.read(findExecution, id);
    if (found === undefined) missing.push(line);
  }
  await store.close();
  assertEquals([missing, answered.length > rounds * 50], [[], true]);
}

/** After these lines, with the number of rows in place of ROWS, a move may be killed, one after the other: it has begun anew by the time of the next. */
export const MOVE_KILLS = [
  "endpoint: ROWS rows copied",
  "event: ROWS rows copied",
  "tally: ROWS rows copied",
  "delivery: ROWS equal rows",
];

/** Kills moves into this empty database and back after these lines; they are whole in the end, and half of one is never opened. */
export async function moveWithKills(
  url: string,
  { kills, rows }: { readonly kills: readonly string[]; readonly rows: number },
): Promise<void> {
  using folder = new StoreFolder();
  fillRandomly(folder.path, { rows, random: seededRandom(20) });
  const before = allRows(folder.path);
  const back = folder.file("back.db");
  for (const [from, to] of [[folder.path, url], [url, back]] as const) {
    for (const line of kills) {
      await killedAfter(line.replace("ROWS", String(rows)), from, to);
      await assertRejects(() => checkStore(to));
    }
    await move(from, to);
  }
  assertEquals(allRows(back), before);
  assertEquals(allRows(folder.path), before);
}

async function killedAfter(line: string, from: string, to: string): Promise<void> {
  // By itself, since somebody else might come too late.
  const child = new URL("store_move_kill_child.ts", import.meta.url).pathname;
  const args = ["run", "--no-check", "--quiet", "-A", child, from, to, line];
  await using moving = new ChildProcess(Deno.execPath(), { args });
  const { signal } = await moving.exited;
  assertEquals([signal, moving.stdoutLines], ["SIGKILL", []], moving.stderrLines.join("\n"));
  assertEquals(moving.stderrLines.at(-1)?.startsWith(line), true, moving.stderrLines.join("\n"));
}
