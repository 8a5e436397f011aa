/** Several processes on the files of one store. */
import { assert, assertEquals } from "#assert";
import { dirname } from "node:path";
import { DispatchLock } from "../../../src/webhooks/store/sqlite/dispatch_lock.ts";
import { checkStore } from "../../../src/webhooks/store/maintenance/check.ts";
import { audit, execution, NOW, saveVersion } from "../../contract/webhook_store_bed.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { until } from "../../harness/until.ts";
import { StoreFolder } from "../../harness/sqlite_fixture.ts";
import { acceptExecution } from "../../../src/webhooks/store/operations/accept.ts";
import { addAudit } from "../../../src/webhooks/store/operations/audit_log.ts";
import { listExecutions } from "../../../src/webhooks/store/operations/executions.ts";

Deno.test("the lock of a process that is killed is free", async () => {
  using folder = new StoreFolder();
  const path = folder.file("weir.db");
  await using child = start("lock", path);
  await until("the child has the lock", () => child.stdoutLines.includes("taken"));
  assertEquals(DispatchLock.take(path), undefined);
  await child.kill();
  using lock = await until("the lock is free", () => DispatchLock.take(path));
  assertEquals(DispatchLock.take(path), undefined);
  assert(lock instanceof DispatchLock);
});

Deno.test("several processes may make one store at the same time", async () => {
  using folder = new StoreFolder();
  const children = [1, 2, 3, 4].map(() => start("open", folder.path));
  const exits = await Promise.all(children.map(({ exited }) => exited));
  assertEquals(exits.map(({ code }) => code), [0, 0, 0, 0], children[0]?.stderrLines.join("\n"));
  const { problems, counts } = await checkStore(folder.path);
  assertEquals([problems, counts["audit"]], [[], 4]);
});

Deno.test("a store that another process keeps locked is busy, and usable again afterwards", async () => {
  using folder = new StoreFolder();
  await using store = await folder.open({ busyTimeoutMs: 50 });
  await saveVersion(store);
  await using child = start("write", folder.path);
  await until("the child has the lock", () => child.stdoutLines.includes("locked"));
  const answers = await Promise.all(
    [1, 2, 3].map(() =>
      store.write(acceptExecution, execution(), { now: NOW }).then(() => "done", ({ code }) => code)
    ),
  );
  assertEquals(answers, ["busy", "busy", "busy"]);
  assertEquals((await store.read(listExecutions, { limit: 9 })).items, [], "reading goes on");
  await child.kill();
  assertEquals((await store.write(acceptExecution, execution(), { now: NOW })).kind, "new");
  assertEquals((await store.read(listExecutions, { limit: 9 })).items.length, 1);
});

Deno.test("a store waits for another that writes for a moment", async () => {
  using folder = new StoreFolder();
  await using store = await folder.open({ busyTimeoutMs: 60_000 });
  await using child = start("write", folder.path, "100");
  await until("the child has the lock", () => child.stdoutLines.includes("locked"));
  await store.write(addAudit, audit());
  await until("the child has let go", () => child.stdoutLines.includes("released"));
});

Deno.test("processes that make the key file at the same time get the same key", async () => {
  using folder = new StoreFolder();
  const keyFile = folder.file("keys/weir.db.key");
  await Deno.mkdir(dirname(keyFile));
  const gate = `${keyFile}.gate`;
  await using first = start("seal", keyFile, gate);
  await using second = start("seal", keyFile, gate);
  const children = [first, second];
  await until("both are ready", () => children.every(({ stdoutLines }) => stdoutLines.length > 0));
  await Deno.writeTextFile(gate, "");
  assertEquals((await Promise.all(children.map(({ exited }) => exited))).map(({ code }) => code), [0, 0]);
  const [one, other] = children.map(({ stdoutLines }) => JSON.parse(stdoutLines[1] ?? ""));
  assertEquals([one[0], one[1] + other[1]], [other[0], 1]);
  const names = [...Deno.readDirSync(dirname(keyFile))].map(({ name }) => name);
  assertEquals(names.toSorted(), ["weir.db.key", "weir.db.key.gate"]);
});

function start(...args: readonly string[]): ChildProcess {
  const program = new URL("store_child.ts", import.meta.url).pathname;
  return new ChildProcess(Deno.execPath(), { args: ["run", "-A", "--no-check", program, ...args] });
}
