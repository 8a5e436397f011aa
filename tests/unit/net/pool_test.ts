import { assertEquals } from "#assert";
import { Pool, type PooledConnection, type PoolOptions } from "../../../src/net/pool.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

class Connection implements PooledConnection {
  readonly id: number;
  closed: string | undefined;
  lose = (_reason: string) => {};

  constructor(id: number) {
    this.id = id;
  }

  close(reason: string): void {
    this.closed = reason;
  }
}

/** A pool whose attempts to connect end as the test says. */
class Bed {
  readonly clock = new FakeClock();
  readonly attempts: PromiseWithResolvers<void>[] = [];
  readonly connections: Connection[] = [];
  readonly events: string[] = [];
  readonly pool: Pool<Connection>;

  constructor(options: Partial<PoolOptions<Connection>> = {}) {
    this.pool = new Pool<Connection>({
      minSize: 2,
      maxSize: 2,
      isShared: false,
      settledMs: 1_000,
      retryDelayMs: (failures) => 100 * failures,
      clock: this.clock,
      open: async (lost) => {
        const connection = new Connection(this.attempts.length);
        connection.lose = lost;
        const attempt = Promise.withResolvers<void>();
        this.attempts.push(attempt);
        await attempt.promise;
        this.connections.push(connection);
        return connection;
      },
      events: {
        free: () => {},
        lost: (reason) => this.events.push(`lost: ${reason}`),
        connected: (isConnected, reason) => this.events.push(isConnected ? "up" : `down: ${reason}`),
      },
      ...options,
    });
  }

  /** Lets every attempt that runs succeed, and those that follow. */
  async connect(): Promise<void> {
    for (let open = -1; open < this.connections.length;) {
      open = this.connections.length;
      for (const attempt of this.attempts) attempt.resolve();
      await settled();
    }
  }

  async refuse(reason = "refused"): Promise<void> {
    this.attempts.at(-1)?.reject(new Error(reason));
    await settled();
  }

  take(): number | undefined {
    return this.pool.take()?.id;
  }
}

async function settled(): Promise<void> {
  for (let step = 0; step < 10; step++) await Promise.resolve();
}

Deno.test("pool: the first connection is made alone, then the others", async () => {
  const bed = new Bed({ minSize: 3, maxSize: 3 });
  assertEquals([bed.attempts.length, bed.pool.connected, bed.pool.isHopeful], [1, false, true]);
  await bed.connect();
  assertEquals([bed.attempts.length, bed.pool.size, bed.events, bed.pool.tally.opened], [3, 3, ["up"], 3]);
});

Deno.test("pool: attempts follow one another with growing waits until one succeeds", async () => {
  const bed = new Bed();
  await bed.refuse();
  assertEquals([bed.pool.isHopeful, bed.pool.reason], [false, "no connection: refused"]);
  bed.clock.advance(99);
  assertEquals(bed.attempts.length, 1);
  bed.clock.advance(1);
  assertEquals(bed.attempts.length, 2);
  await bed.refuse();
  bed.clock.advance(199);
  assertEquals(bed.attempts.length, 2);
  bed.clock.advance(1);
  await bed.connect();
  assertEquals([bed.pool.size, bed.events], [2, ["lost: refused", "down: refused", "lost: refused", "up"]]);
});

Deno.test("pool: no further attempt follows where the policy ends them", async () => {
  const bed = new Bed({ retryDelayMs: () => null });
  await bed.refuse();
  bed.clock.advance(1_000_000);
  bed.pool.grow(5);
  assertEquals([bed.attempts.length, bed.clock.waiting], [1, 0]);
});

Deno.test("pool: a connection that was open for a while is replaced immediately, another one after a wait", async () => {
  const bed = new Bed({ minSize: 1 });
  await bed.connect();
  bed.clock.advance(1_000);
  bed.connections[0]?.lose("reset");
  assertEquals([bed.attempts.length, bed.pool.connected, bed.events], [2, false, ["up", "lost: reset"]]);
  await bed.connect();
  bed.connections[1]?.lose("again");
  assertEquals([bed.attempts.length, bed.events.at(-1)], [2, "down: again"]);
  bed.clock.advance(100);
  assertEquals(bed.attempts.length, 3);
  await bed.connect();
  assertEquals(bed.events.at(-1), "up");
});

Deno.test("pool: a connection has one user at a time, and is free when it is given back", async () => {
  let free = 0;
  const bed = new Bed({ events: { free: () => void free++, lost: () => {} } });
  await bed.connect();
  assertEquals([bed.take(), bed.take(), bed.take(), free], [1, 0, undefined, 2]);
  const [first] = bed.connections;
  if (first !== undefined) bed.pool.give(first);
  assertEquals([free, bed.take(), bed.take()], [3, 0, undefined]);
});

Deno.test("pool: shared connections take turns, and one more is made while all have users", async () => {
  const bed = new Bed({ isShared: true, minSize: 1, maxSize: 2 });
  await bed.connect();
  assertEquals([bed.take(), bed.attempts.length], [0, 1]);
  assertEquals([bed.take(), bed.attempts.length], [0, 2]);
  await bed.connect();
  assertEquals([bed.take(), bed.take(), bed.attempts.length], [1, 1, 2]);
});

Deno.test("pool: a retired connection is replaced, and closed when its users have ended", async () => {
  const bed = new Bed();
  await bed.connect();
  bed.clock.advance(1_000);
  const used = bed.pool.take();
  if (used !== undefined) bed.pool.retireAll(used, "READONLY");
  assertEquals(bed.connections.map(({ closed }) => closed), ["READONLY", undefined]);
  assertEquals([bed.pool.connected, bed.pool.size], [false, 1]);
  if (used !== undefined) {
    bed.pool.retireAll(used, "READONLY again");
    bed.pool.give(used);
  }
  assertEquals(used?.closed, "READONLY");
  await bed.connect();
  assertEquals([bed.pool.size, bed.pool.tally], [2, { opened: 4, closed: 2 }]);
});

Deno.test("pool: a connection beyond the size is closed when it is free", async () => {
  const bed = new Bed({ minSize: 1, maxSize: 1 });
  await bed.connect();
  assertEquals(bed.take(), 0);
  bed.pool.open();
  assertEquals(bed.pool.fullSize, 2);
  await bed.connect();
  const extra = bed.pool.take();
  assertEquals(extra?.id, 1);
  if (extra !== undefined) bed.pool.give(extra);
  assertEquals([extra?.closed, bed.pool.size], ["it is not needed", 1]);
});

Deno.test("pool: as many connections are made as users wait, one at first", async () => {
  const waiting = 3;
  const bed = new Bed({ minSize: 0, maxSize: 2, waiting: () => waiting });
  assertEquals(bed.attempts.length, 0);
  bed.pool.grow();
  bed.pool.grow();
  assertEquals(bed.attempts.length, 1);
  await bed.connect();
  assertEquals(bed.attempts.length, 2);
});

Deno.test("pool: who is served by a new connection makes no other", async () => {
  let waiting = 1;
  const serve = () => {
    if (waiting > 0 && bed.take() !== undefined) waiting--;
  };
  const bed: Bed = new Bed({
    minSize: 0,
    maxSize: 2,
    waiting: () => waiting,
    events: { free: serve, lost: () => {} },
  });
  bed.pool.grow();
  await bed.connect();
  assertEquals([waiting, bed.attempts.length], [0, 1]);
});

Deno.test("pool: closing ends connections, attempts and waits", async () => {
  const bed = new Bed();
  await bed.connect();
  bed.connections[0]?.lose("reset");
  bed.pool.close();
  bed.clock.advance(10_000);
  assertEquals([bed.connections[1]?.closed, bed.attempts.length, bed.clock.waiting], ["it is closed", 2, 0]);
  const used = new Bed();
  await used.connect();
  const connection = used.pool.take();
  used.pool.close({ keepUsed: true });
  assertEquals(used.connections.map(({ closed }) => closed), ["it is closed", undefined]);
  if (connection !== undefined) used.pool.give(connection);
  assertEquals(used.pool.size, 0);
  const late = new Bed();
  late.pool.close();
  await late.connect();
  assertEquals(late.connections[0]?.closed, "it is closed");
});

Deno.test("pool: a wait before a retry can be ended, and the next one is short", async () => {
  let retry = () => {};
  const bed = new Bed({ retryOn: (given) => void (retry = given) });
  for (let failures = 1; failures <= 3; failures++) {
    await bed.refuse();
    bed.clock.advance(100 * failures);
  }
  await bed.refuse();
  assertEquals(bed.clock.waits.at(-1), 400);
  retry();
  assertEquals([bed.attempts.length, bed.clock.waiting], [5, 0]);
  retry();
  assertEquals(bed.attempts.length, 5);
  await bed.refuse();
  assertEquals(bed.clock.waits.at(-1), 100);
  bed.pool.close();
});

Deno.test("pool: what ends a wait begins no attempt where none may follow", async () => {
  let retry = () => {};
  const bed = new Bed({ retryDelayMs: () => null, retryOn: (given) => void (retry = given) });
  await bed.refuse();
  retry();
  assertEquals(bed.attempts.length, 1);
  bed.pool.close();
});
