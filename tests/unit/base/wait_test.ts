import { assertEquals, assertRejects } from "@std/assert";
import { setImmediate } from "node:timers/promises";
import { withTimeout } from "../../../src/base/wait.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

const overdue = () => new RangeError("no answer within 100 ms");

Deno.test("withTimeout: an answer in time is passed on, and its timer ends", async () => {
  const clock = new FakeClock();
  const work = Promise.withResolvers<number>();
  const answer = withTimeout(work.promise, 100, clock, overdue);
  clock.advance(99);
  work.resolve(7);
  assertEquals([await answer, clock.waiting], [7, 0]);
});

Deno.test("withTimeout: a failure in time is passed on, and its timer ends", async () => {
  const clock = new FakeClock();
  const failure = new Error("it broke");
  const answer = withTimeout(Promise.reject(failure), 100, clock, overdue);
  const error = await assertRejects(() => answer);
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

/** What becomes of work after its time is over. */
const LATE: Readonly<Record<string, (work: PromiseWithResolvers<number>) => void>> = {
  "an answer": (work) => work.resolve(7),
  "a failure": (work) => work.reject(new Error("it broke late")),
};

for (const [title, settle] of Object.entries(LATE)) {
  Deno.test(`withTimeout: ${title} after the time is over changes nothing and is left to nobody`, async () => {
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
      // Rejections that nobody handled are told after the turn.
      await setImmediate();
      await setImmediate();
      assertEquals(unhandled, []);
    } finally {
      globalThis.removeEventListener("unhandledrejection", watch);
    }
  });
}
