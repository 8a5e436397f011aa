import { assertEquals } from "@std/assert";
import { KvBatch } from "../../../../src/cache/kv/batch.ts";
import type { KvConnection } from "../../../../src/cache/kv/connection.ts";
import { type InFlight, KvInFlight } from "../../../../src/cache/kv/in_flight.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";

/** A connection is only compared here. */
const CONNECTION = {} as KvConnection;

function begin(clock: FakeClock, connection = CONNECTION): InFlight {
  return { batch: new KvBatch({ asking: false }), startedAt: clock.now(), connection };
}

function open(clock: FakeClock): { held: KvInFlight; expired: InFlight[] } {
  const expired: InFlight[] = [];
  const held = new KvInFlight({ timeoutMs: 100, clock, onExpired: (one) => void expired.push(one) });
  return { held, expired };
}

Deno.test("kv in flight: each batch has its own time, by one timer", () => {
  const clock = new FakeClock();
  const { held, expired } = open(clock);
  const first = begin(clock);
  held.add(first);
  clock.advance(60);
  const second = begin(clock);
  held.add(second);
  assertEquals(clock.waiting, 1);
  clock.advance(40);
  assertEquals([expired.includes(first), held.size, clock.waiting], [true, 1, 1]);
  clock.advance(60);
  assertEquals([expired.includes(second), held.size, clock.waiting], [true, 0, 0]);
});

Deno.test("kv in flight: a batch that is answered leaves no timer", () => {
  const clock = new FakeClock();
  const { held, expired } = open(clock);
  const one = begin(clock);
  held.add(one);
  assertEquals([held.delete(one), held.delete(one), clock.waiting, expired.length], [true, false, 0, 0]);
});

Deno.test("kv in flight: those on a connection are taken together", () => {
  const clock = new FakeClock();
  const { held } = open(clock);
  const other = {} as KvConnection;
  const [mine, theirs] = [begin(clock), begin(clock, other)];
  held.add(mine);
  held.add(theirs);
  assertEquals(held.takeAll(other).includes(theirs), true);
  assertEquals([held.size, held.takeAll().includes(mine), clock.waiting], [1, true, 0]);
});

Deno.test("kv in flight: a clock that is set back makes nobody wait longer", () => {
  const clock = new FakeClock();
  const expired: InFlight[] = [];
  const held = new KvInFlight({ timeoutMs: 100, clock, onExpired: (one) => void expired.push(one) });
  held.add({ batch: new KvBatch({ asking: false }), startedAt: clock.now(), connection: CONNECTION });
  clock.aheadMs = -3_600_000;
  clock.advance(100);
  assertEquals([clock.waits, expired.length, held.left(clock.now() + 3_600_000)], [[100], 1, 100]);
});
