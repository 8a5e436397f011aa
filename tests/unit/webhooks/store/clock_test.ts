import { assertEquals, assertRejects } from "#assert";
import type { Clock } from "../../../../src/base/clock.ts";
import { StoreClock } from "../../../../src/webhooks/store/clock.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { RecordedLogger } from "../../../harness/recorded_logger.ts";

const HOUR = 3_600_000;

/** A machine whose wall clock can be set, and a database with its own clock. */
class Bed {
  readonly time = new FakeClock(1_000);
  readonly logger = new RecordedLogger();
  /** The clocks minus the time that has passed. */
  wallAhead = 1_700_000_000_000;
  databaseAhead = 1_700_000_000_000;
  /** The time of a question and an answer on their way; without one the database is unavailable. */
  trips: (readonly [question: number, answer: number] | undefined)[] = [];
  asked = 0;
  readonly machine: Clock = {
    now: () => this.time.now() + this.wallAhead,
    elapsed: () => this.time.elapsed(),
    after: (delayMs, run) => this.time.after(delayMs, run),
  };
  readonly clock = new StoreClock({ clock: this.machine, logger: this.logger });

  async start(): Promise<StoreClock> {
    await this.clock.start(() => this.databaseTime());
    return this.clock;
  }

  async databaseTime(): Promise<number> {
    this.asked++;
    // Not while a timer runs, since time passes here.
    await Promise.resolve();
    const [question, answer] = this.trips.length === 0 ? [0, 0] : this.trips.shift() ?? [];
    if (question === undefined || answer === undefined) throw new Error("away");
    this.time.advance(question);
    const now = this.databaseNow;
    this.time.advance(answer);
    return now;
  }

  get databaseNow(): number {
    return this.time.now() + this.databaseAhead;
  }

  /** The error of the clock. */
  get error(): number {
    return this.clock.now() - this.databaseNow;
  }

  /** Lets what was asked for come to its end. */
  async settled(): Promise<void> {
    for (let turn = 0; turn < 100; turn++) await Promise.resolve();
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 5_000) {
      this.time.advance(5_000);
      await this.settled();
    }
  }
}

Deno.test("store clock: until it was measured it is the clock of the machine", () => {
  const bed = new Bed();
  bed.databaseAhead += HOUR;
  assertEquals([bed.clock.now(), bed.clock.wallAheadMs, bed.clock.problem], [
    bed.machine.now(),
    0,
    undefined,
  ]);
  bed.clock.remeasure();
  assertEquals(bed.asked, 0);
});

Deno.test("store clock: a database that cannot be asked at the start is an error", async () => {
  const bed = new Bed();
  bed.trips = [undefined];
  assertEquals((await assertRejects(() => bed.start())).message, "away");
  assertEquals(bed.time.waiting, 0);
});

Deno.test("store clock: it is the database's time, whatever the wall clock says before and later", async () => {
  for (const step of [HOUR, -HOUR, 30 * 24 * HOUR]) {
    const bed = new Bed();
    bed.wallAhead += step;
    const clock = await bed.start();
    assertEquals([bed.error, clock.wallAheadMs], [0, step]);
    bed.wallAhead -= 2 * step;
    assertEquals([bed.error, clock.wallAheadMs], [0, -step]);
    await bed.pass(60_000);
    assertEquals(bed.error, 0);
    await clock.close();
    assertEquals(bed.time.waiting, 0);
  }
});

Deno.test("store clock: of a few questions the shortest trip counts, half of it at most is the error", async () => {
  const bed = new Bed();
  bed.trips = [[400, 0], [10, 2], [0, 900]];
  const clock = await bed.start();
  assertEquals([bed.asked, bed.error], [3, 4]);
  // Every answer that agrees with what is believed leaves it alone.
  bed.trips = [[0, 900], [800, 0], [100, 0]];
  await bed.pass(5_000);
  assertEquals([bed.asked, bed.error], [6, 4]);
  // One that does not moves it as far as it has to.
  bed.trips = [[300, 0], [2, 0], [300, 0]];
  await bed.pass(5_000);
  assertEquals(bed.error, 2);
  await clock.close();
});

Deno.test("store clock: it follows a database whose clock is set, or that another has replaced", async () => {
  const bed = new Bed();
  const clock = await bed.start();
  bed.databaseAhead += HOUR;
  assertEquals(bed.error, -HOUR);
  await bed.pass(5_000);
  assertEquals(bed.error, 0);
  bed.databaseAhead -= 2 * HOUR;
  clock.remeasure();
  clock.remeasure();
  await bed.settled();
  assertEquals([bed.error, bed.asked], [0, 9], "one measurement at a time");
  await clock.close();
});

Deno.test("store clock: while the database is unavailable it goes on by itself", async () => {
  const bed = new Bed();
  const clock = await bed.start();
  bed.trips = Array.from({ length: 20 }, () => undefined);
  await bed.pass(60_000);
  assertEquals([bed.error, bed.asked, bed.logger.lines], [0, 15, []]);
  bed.trips = [];
  bed.databaseAhead += 5_000;
  await bed.pass(5_000);
  assertEquals(bed.error, 0);
  await clock.close();
});

Deno.test("store clock: a machine that slept asks immediately", async () => {
  const bed = new Bed();
  const clock = await bed.start();
  // `elapsed` stood still meanwhile, both wall clocks did not.
  bed.wallAhead += HOUR;
  bed.databaseAhead += HOUR;
  assertEquals(bed.error, -HOUR);
  await bed.settled();
  assertEquals([bed.error, bed.asked], [0, 6]);
  await clock.close();
});

Deno.test("store clock: a wall clock that steps while the database is unavailable asks once a second", async () => {
  const bed = new Bed();
  const clock = await bed.start();
  bed.trips = Array.from({ length: 20 }, () => undefined);
  bed.wallAhead += HOUR;
  for (let call = 0; call < 30; call++) {
    assertEquals(bed.error, 0);
    await bed.settled();
    bed.time.advance(100);
  }
  assertEquals(bed.asked, 6);
  await clock.close();
});

Deno.test("store clock: a wall clock that is more than a minute off is reported, once a minute", async () => {
  const bed = new Bed();
  bed.wallAhead += 60_000;
  const clock = await bed.start();
  assertEquals([clock.problem, bed.logger.lines.length], [undefined, 0]);
  bed.wallAhead += 30_000;
  assertEquals(clock.problem, "the clock of this machine is 90 s ahead of that of the database");
  await bed.pass(5_000);
  bed.wallAhead -= 190_000;
  assertEquals(clock.problem, "the clock of this machine is 100 s behind that of the database");
  await bed.pass(125_000);
  assertEquals(bed.logger.lines.map(({ level, fields }) => [level, fields["problem"]]), [
    ["warning", "the clock of this machine is 90 s ahead of that of the database"],
    ["warning", "the clock of this machine is 100 s behind that of the database"],
    ["warning", "the clock of this machine is 100 s behind that of the database"],
  ]);
  await clock.close();
});

Deno.test("store clock: it tells whole milliseconds, time that passes and timers are the machine's", async () => {
  const bed = new Bed();
  bed.databaseAhead += 0.75;
  const clock = await bed.start();
  assertEquals(clock.now(), Math.floor(bed.databaseNow));
  assertEquals(clock.elapsed(), bed.time.elapsed());
  let isOver = false;
  clock.after(10, () => void (isOver = true));
  bed.time.advance(10);
  assertEquals(isOver, true);
  await clock.close();
});
