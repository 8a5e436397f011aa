import { assertEquals } from "#assert";
import { RequestTimeouts } from "../../../src/cache/request_timeouts.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

interface Request {
  readonly startedAt: number;
  readonly connection: string;
}

function begin(clock: FakeClock, connection = "one"): Request {
  return { startedAt: clock.elapsed(), connection };
}

function open(clock: FakeClock): { held: RequestTimeouts<Request>; expired: Request[] } {
  const expired: Request[] = [];
  const held = new RequestTimeouts<Request>({
    timeoutMs: 100,
    clock,
    onTimeout: (requests) => void expired.push(...requests),
  });
  return { held, expired };
}

Deno.test("in flight: each request has its own time, by one timer", () => {
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

Deno.test("in flight: answered requests have one timer, which ends without effect", () => {
  const clock = new FakeClock();
  const { held, expired } = open(clock);
  const one = begin(clock);
  held.add(one);
  assertEquals([held.delete(one), held.delete(one), clock.waiting], [true, false, 1]);
  clock.advance(60);
  const next = begin(clock);
  held.add(next);
  clock.advance(40);
  assertEquals([clock.waiting, expired.length], [1, 0]);
  clock.advance(59);
  assertEquals([held.delete(next), clock.waiting], [true, 1]);
  clock.advance(1);
  assertEquals([clock.waiting, expired.length], [0, 0]);
});

Deno.test("in flight: those on a connection are taken together", () => {
  const clock = new FakeClock();
  const { held } = open(clock);
  const [mine, theirs] = [begin(clock), begin(clock, "other")];
  held.add(mine);
  held.add(theirs);
  assertEquals(held.takeAll("other").includes(theirs), true);
  assertEquals([held.size, held.takeAll().includes(mine), clock.waiting], [1, true, 0]);
});

Deno.test("in flight: a clock that is set back makes no caller wait longer", () => {
  const clock = new FakeClock();
  const { held, expired } = open(clock);
  held.add(begin(clock));
  clock.aheadMs = -3_600_000;
  clock.advance(100);
  assertEquals([clock.waits, expired.length], [[100], 1]);
});
