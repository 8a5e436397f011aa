import { assertEquals } from "@std/assert";
import { KvStartup } from "../../../../src/cache/kv/startup.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";

const ATTEMPTS = [1, 2, 3, 6, 7, 60];

Deno.test("kv startup: later waits double up to the bound, half of it by chance", () => {
  const waits = (random: number) => {
    const startup = new KvStartup({ clock: new FakeClock(), random: () => random });
    return ATTEMPTS.map((attempt) => startup.delayMs(attempt, ""));
  };
  assertEquals(waits(0), [25, 50, 100, 800, 1_000, 1_000]);
  assertEquals(waits(1), [50, 100, 200, 1_600, 2_000, 2_000]);
});

Deno.test("kv startup: other waits hold until the first connection", () => {
  const times = { initialMs: 1_000, maxMs: 30_000, maxElapsedMs: 0 };
  const startup = new KvStartup({ times, clock: new FakeClock(), random: () => 1 });
  const waits = () => ATTEMPTS.map((attempt) => startup.delayMs(attempt, ""));
  assertEquals(waits(), [1_000, 2_000, 4_000, 30_000, 30_000, 30_000]);
  startup.connected();
  assertEquals(waits(), [50, 100, 200, 1_600, 2_000, 2_000]);
});

Deno.test("kv startup: no wait is too short to leave room for anything else", () => {
  const times = { initialMs: 0, maxMs: 0, maxElapsedMs: 0 };
  const startup = new KvStartup({ times, clock: new FakeClock(), random: () => 0 });
  assertEquals(ATTEMPTS.map((attempt) => startup.delayMs(attempt, "")), [10, 10, 10, 10, 10, 10]);
});

Deno.test("kv startup: attempts are given up once, at the time that was set, with the last error", () => {
  const clock = new FakeClock();
  const told: string[] = [];
  const times = { initialMs: 1_000, maxMs: 4_000, maxElapsedMs: 5_000 };
  const startup = new KvStartup({ times, clock, random: () => 1, onGivenUp: (reason) => told.push(reason) });
  const waits = [startup.delayMs(1, "")];
  clock.advance(1_000);
  waits.push(startup.delayMs(2, ""));
  clock.advance(2_000);
  waits.push(startup.delayMs(3, ""));
  assertEquals([waits, told], [[1_000, 2_000, 2_000], []]);
  clock.advance(2_000);
  assertEquals([startup.delayMs(4, "refused"), startup.delayMs(4, "closed"), told], [null, null, [
    "refused",
  ]]);
});

Deno.test("kv startup: who was connected in time is never given up", () => {
  const clock = new FakeClock();
  const times = { initialMs: 1_000, maxMs: 4_000, maxElapsedMs: 5_000 };
  const told: string[] = [];
  const startup = new KvStartup({ times, clock, random: () => 1, onGivenUp: (reason) => told.push(reason) });
  startup.connected();
  clock.advance(10_000);
  assertEquals([startup.delayMs(1, ""), told], [50, []]);
});
