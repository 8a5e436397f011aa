import { assertEquals, assertRejects } from "#assert";
import { setImmediate } from "node:timers/promises";
import { heldUntilAborted, unlessAborted, waitUnlessAborted, withTimeout } from "../../../src/base/wait.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { CountedAbort } from "../../harness/rest_fixture.ts";

const overdue = () => new RangeError("no answer within 100 ms");

Deno.test("withTimeout: an answer or a failure in time is passed on, and its timer ends", async () => {
  const clock = new FakeClock();
  const work = Promise.withResolvers<number>();
  const answer = withTimeout(work.promise, 100, clock, overdue);
  clock.advance(99);
  work.resolve(7);
  assertEquals([await answer, clock.waiting], [7, 0]);
  const failure = new Error("it broke");
  const error = await assertRejects(() => withTimeout(Promise.reject(failure), 100, clock, overdue));
  assertEquals([error === failure, clock.waiting], [true, 0]);
});

Deno.test("withTimeout: what was made of being overdue is thrown when the time is over, and made only then", async () => {
  const clock = new FakeClock();
  let made = 0;
  const work = Promise.withResolvers<number>();
  const answer = withTimeout(work.promise, 100, clock, () => {
    made++;
    return overdue();
  });
  clock.advance(99);
  assertEquals(made, 0);
  clock.advance(1);
  const error = await assertRejects(() => answer);
  assertEquals([error.name, error.message], ["RangeError", "no answer within 100 ms"]);
  assertEquals([made, clock.waiting], [1, 0]);
});

/** Fate of work after its timeout. */
const LATE: Readonly<Record<string, (work: PromiseWithResolvers<number>) => void>> = {
  "an answer": (work) => work.resolve(7),
  "a failure": (work) => work.reject(new Error("it broke late")),
};

for (const [title, settle] of Object.entries(LATE)) {
  Deno.test(`withTimeout: ${title} after the time is over changes nothing and is handled`, async () => {
    const unhandled: unknown[] = [];
    const watch = (event: PromiseRejectionEvent) => {
      event.preventDefault();
      unhandled.push(event.reason);
    };
    globalThis.addEventListener("unhandledrejection", watch);
    try {
      const clock = new FakeClock();
      const work = Promise.withResolvers<number>();
      const answer = withTimeout(work.promise, 100, clock, overdue);
      clock.advance(100);
      settle(work);
      assertEquals((await assertRejects(() => answer)).name, "RangeError");
      // Unhandled rejections are reported after the turn.
      await setImmediate();
      await setImmediate();
      assertEquals(unhandled, []);
    } finally {
      globalThis.removeEventListener("unhandledrejection", watch);
    }
  });
}

Deno.test("waitUnlessAborted: waits until its time is over or the signal is aborted, and leaves neither timer nor listener", async () => {
  for (const isAborted of [false, true]) {
    const clock = new FakeClock();
    const counted = new CountedAbort();
    const { signal } = counted;
    const waited = waitUnlessAborted(100, clock, signal);
    clock.advance(99);
    assertEquals([clock.waiting, counted.listening], [1, 1]);
    if (isAborted) counted.abort("over");
    else clock.advance(1);
    assertEquals([await waited, clock.waiting, counted.listening], [!isAborted, 0, 0]);
  }
  assertEquals(await waitUnlessAborted(100, new FakeClock(), AbortSignal.abort()), false);
});

Deno.test("unlessAborted: ends with the promise or the signal, and leaves no listener", async () => {
  const counted = new CountedAbort();
  const { signal } = counted;
  assertEquals(await unlessAborted(Promise.resolve(7), signal), 7);
  const failure = new Error("it broke");
  assertEquals(await assertRejects(() => unlessAborted(Promise.reject(failure), signal)), failure);
  assertEquals(counted.listening, 0);
  const pending = unlessAborted(new Promise(() => {}), signal);
  assertEquals(counted.listening, 1);
  counted.abort(failure);
  assertEquals(await assertRejects(() => pending), failure);
  assertEquals(await assertRejects(() => unlessAborted(new Promise(() => {}), signal)), failure);
  assertEquals(counted.listening, 0);
});

Deno.test("heldUntilAborted: it has the reason of the first signal, whether aborted before or after", () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const held = heldUntilAborted(first.signal, second.signal);
  assertEquals(held.aborted, false);
  second.abort("stop");
  first.abort("later");
  assertEquals(held.reason, "stop");
  assertEquals(heldUntilAborted(first.signal, second.signal).reason, "later");
});
