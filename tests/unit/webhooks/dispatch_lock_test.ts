import { assert, assertEquals } from "@std/assert";
import { DispatchLock } from "../../../src/webhooks/dispatch_lock.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { until } from "../../harness/until.ts";

Deno.test("the lock of a store is one's own until it is given up", () => {
  withFolder((path) => {
    const lock = DispatchLock.take(path);
    assert(lock !== undefined);
    assertEquals(DispatchLock.take(path), undefined);
    using other = DispatchLock.take(`${path}2`);
    assert(other !== undefined);
    lock.release();
    lock.release();
    using again = DispatchLock.take(path);
    assert(again !== undefined);
    assertEquals((Deno.statSync(`${path}.lock`).mode ?? 0) & 0o777, 0o600);
  });
});

Deno.test("a lock file that is removed is locked again, unless another process was faster", () => {
  withFolder((path) => {
    using lock = DispatchLock.take(path);
    Deno.removeSync(`${path}.lock`);
    assertEquals([lock?.keep(), DispatchLock.take(path)], [true, undefined]);
    Deno.removeSync(`${path}.lock`);
    using other = DispatchLock.take(path);
    assertEquals([other?.keep(), lock?.keep()], [true, false]);
  });
});

Deno.test("a lock is lost where its file was replaced by one that cannot be opened, and kept in a removed folder", () => {
  withFolder((path) => {
    Deno.mkdirSync(`${path}.folder`);
    using lock = DispatchLock.take(`${path}.folder/weir.db`);
    const file = `${path}.folder/weir.db.lock`;
    Deno.removeSync(file);
    Deno.mkdirSync(file);
    assertEquals(lock?.keep(), false);
    Deno.removeSync(`${path}.folder`, { recursive: true });
    assertEquals(lock?.keep(), true);
  });
});

Deno.test("the lock of a process that is killed is free", async () => {
  await withFolder(async (path) => {
    await using child = new ChildProcess(Deno.execPath(), {
      args: ["run", "-A", "--no-check", new URL("dispatch_lock_child.ts", import.meta.url).pathname, path],
    });
    await until("the child has the lock", () => child.stdoutLines.includes("taken"));
    assertEquals(DispatchLock.take(path), undefined);
    await child.kill();
    using lock = await until("the lock is free", () => DispatchLock.take(path));
    assertEquals(DispatchLock.take(path), undefined);
    assert(lock instanceof DispatchLock);
  });
});

function withFolder<T>(run: (path: string) => T): T {
  const folder = Deno.makeTempDirSync({ prefix: "weir-lock-" });
  const remove = () => Deno.removeSync(folder, { recursive: true });
  const answer = run(`${folder}/weir.db`);
  if (answer instanceof Promise) return answer.finally(remove) as T;
  remove();
  return answer;
}
