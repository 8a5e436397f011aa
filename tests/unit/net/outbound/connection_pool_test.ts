import { assertEquals } from "#assert";
import { ConnectionPool, type PooledConnection } from "../../../../src/net/outbound/connection_pool.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";

class Connection implements PooledConnection {
  isFree = true;
  constructor(readonly createdAt: number) {}
  destroy(): void {
    this.isFree = false;
  }
}

function pooled() {
  const clock = new FakeClock(0);
  const pool = new ConnectionPool<Connection>(clock);
  const kept = (key: string, serverIdleMs?: number, createdAt = clock.elapsed()) => {
    const connection = new Connection(createdAt);
    pool.keep(key, connection, serverIdleMs);
    return connection;
  };
  return { clock, pool, kept };
}

Deno.test("the connection that waited the shortest time is used, and each once", () => {
  const { pool, kept, clock } = pooled();
  const [first, second] = [kept("a"), kept("a")];
  kept("b");
  assertEquals(pool.size, 3);
  assertEquals(pool.take("a") === second, true);
  assertEquals(pool.take("a") === first, true);
  assertEquals([pool.take("a"), pool.take("c"), pool.size], [undefined, undefined, 1]);
  pool.close();
  assertEquals([pool.size, clock.waiting], [0, 0]);
});

Deno.test("none waits longer than four seconds, or than its server says, and one timer ends them", () => {
  const { pool, kept, clock } = pooled();
  const long = kept("a");
  const short = kept("a", 3_000);
  const none = kept("a", 1_000);
  assertEquals([long.isFree, short.isFree, none.isFree, clock.waiting], [true, true, false, 1]);
  clock.advance(2_000);
  // Its timer stands for the first that was kept: until then it is not used.
  assertEquals([pool.take("a") === long, short.isFree, pool.size], [true, false, 0]);
  clock.advance(1_000);
  const later = [kept("a"), kept("b")];
  clock.advance(1_000);
  assertEquals([pool.size, clock.waiting], [2, 1]);
  clock.advance(2_999);
  assertEquals(later.map(({ isFree }) => isFree), [true, true]);
  clock.advance(1);
  assertEquals([later.map(({ isFree }) => isFree), pool.size, clock.waiting], [[false, false], 0, 0]);
});

Deno.test("an old connection, one too many of a host and one too many of all are not kept", () => {
  const { pool, kept, clock } = pooled();
  clock.advance(60_001);
  assertEquals([kept("a", undefined, 0).isFree, kept("a", undefined, 1).isFree], [false, true]);
  const of = (key: string) => Array.from({ length: 251 }, () => kept(key).isFree).filter(Boolean).length;
  assertEquals([of("a"), of("b"), of("c")], [249, 250, 0]);
  assertEquals(pool.size, 500);
  pool.close();
});

Deno.test("one that was closed while it waited is not used, nor counted", () => {
  const { pool, kept, clock } = pooled();
  const [first, second, third] = [kept("a"), kept("a"), kept("a")];
  second.destroy();
  pool.forget("a", second);
  assertEquals(pool.size, 2);
  pool.forget("a", second);
  pool.forget("b", first);
  assertEquals(pool.size, 2);
  third.destroy();
  assertEquals([pool.take("a") === first, pool.size], [true, 0]);
  clock.advance(4_000);
  assertEquals(clock.waiting, 0);
});
