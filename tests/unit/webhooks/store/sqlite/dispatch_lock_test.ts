import { assert, assertEquals } from "#assert";
import { DispatchLock } from "../../../../../src/webhooks/store/sqlite/dispatch_lock.ts";

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

function withFolder(run: (path: string) => void): void {
  const folder = Deno.makeTempDirSync({ prefix: "weir-lock-" });
  run(`${folder}/weir.db`);
  Deno.removeSync(folder, { recursive: true });
}
