import { assertEquals } from "#assert";
import { WakeLoop } from "../../../src/threads/wake_loop.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A loop whose rounds are counted; each of them answers `hasMore`. */
function bed() {
  const clock = new FakeClock();
  const state = { clock, rounds: 0, polls: 0, hasMore: () => false as boolean };
  const round = async () => {
    state.rounds++;
    await turn();
    return state.hasMore();
  };
  const loop = new WakeLoop({ clock, pollMs: 1_000, round, onPoll: () => state.polls++ });
  return { state, loop };
}

Deno.test("wake loop: a round follows a wake-up, a poll, and a round that leaves more to do", async () => {
  const { state, loop } = bed();
  loop.wake();
  assertEquals([state.rounds, loop.isRunning], [0, false]);
  state.hasMore = () => state.rounds < 3;
  loop.start();
  for (let count = 0; count < 8; count++) await turn();
  assertEquals([state.rounds, loop.isRunning], [3, true]);
  loop.wake();
  loop.wake();
  for (let count = 0; count < 4; count++) await turn();
  assertEquals([state.rounds, state.polls], [4, 0]);
  state.clock.advance(1_000);
  for (let count = 0; count < 4; count++) await turn();
  assertEquals([state.rounds, state.polls], [5, 1]);
  await loop.stop();
  assertEquals([state.rounds, state.clock.waiting, loop.isRunning], [5, 0, false]);
});

Deno.test("wake loop: a wake-up during a round is not lost, and stop waits for the round", async () => {
  const { state, loop } = bed();
  loop.start();
  loop.wake();
  await turn();
  await turn();
  assertEquals(state.rounds, 2);
  const stopped = loop.stop();
  loop.wake();
  await stopped;
  await turn();
  assertEquals(state.rounds, 2);
});

Deno.test("wake loop: of several timers the earliest stays", async () => {
  const { state, loop } = bed();
  loop.start();
  await turn();
  await turn();
  for (const ms of [300, 200, 400]) loop.wakeIn(ms);
  state.clock.advance(199);
  await turn();
  assertEquals(state.rounds, 1);
  state.clock.advance(1);
  await turn();
  await turn();
  assertEquals(state.rounds, 2);
  await loop.stop();
  loop.wakeIn(1);
  assertEquals(state.clock.waiting, 0);
});
