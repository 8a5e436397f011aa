import { assertEquals } from "#assert";
import { MinuteHistory } from "../../../src/ui/minute_history.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

/** 40 s after the start of a minute. */
const START = 1_700_000_020_000;

function bed(now = START) {
  const clock = new FakeClock(now);
  const counts = { decisions: 100, overLimit: 7 };
  const history = new MinuteHistory({ clock, read: () => ({ ...counts }) });
  return { clock, counts, history };
}

Deno.test("the history of counters begins with the process, and what is counted belongs to its minute", () => {
  const { clock, counts, history } = bed();
  const stop = history.start();
  assertEquals(history.make(), { decisions: [0], overLimit: [0] });
  counts.decisions += 5;
  assertEquals(history.make(), { decisions: [5], overLimit: [0] });
  counts.decisions += 1;
  counts.overLimit += 2;
  clock.advance(20_000);
  counts.decisions += 4;
  assertEquals(history.make(), { decisions: [6, 4], overLimit: [2, 0] });
  clock.advance(120_000);
  assertEquals(history.make(), { decisions: [6, 4, 0, 0], overLimit: [2, 0, 0, 0] });
  stop();
});

Deno.test("the history of counters keeps 60 minutes, also where none was read for long", () => {
  const { clock, counts, history } = bed();
  const stop = history.start();
  for (let minute = 0; minute < 100; minute++) {
    counts.decisions += minute;
    clock.advance(60_000);
  }
  const { decisions = [] } = history.make();
  assertEquals([decisions.length, decisions[0], decisions[58], decisions[59]], [60, 41, 99, 0]);
  stop();
  counts.decisions += 3;
  clock.advance(86_400_000);
  assertEquals(history.make()["decisions"], Array.from({ length: 60 }, () => 0));
});

Deno.test("a step of the wall clock moves no minute of the history", () => {
  const { clock, counts, history } = bed();
  const stop = history.start();
  counts.decisions += 5;
  clock.advance(20_000);
  clock.aheadMs = -3_600_000;
  counts.decisions += 2;
  assertEquals(history.make()["decisions"], [5, 2]);
  clock.advance(60_000);
  assertEquals(history.make()["decisions"], [5, 2, 0]);
  stop();
});
