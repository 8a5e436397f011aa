import { assertEquals } from "#assert";
import { Breaker } from "../../../src/cache/breaker.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

/** A breaker without jitter, open after five failures. */
function opened(): { breaker: Breaker; clock: FakeClock } {
  const clock = new FakeClock();
  const breaker = new Breaker({ clock, random: () => 1 });
  for (let failure = 1; failure <= 5; failure++) breaker.failed(`failure ${failure}`);
  return { breaker, clock };
}

Deno.test("breaker: failures in a row open it, and one success between them does not let it", () => {
  const breaker = new Breaker({ clock: new FakeClock(), random: () => 0 });
  for (let round = 0; round < 3; round++) {
    for (let failure = 0; failure < 4; failure++) breaker.failed("no answer");
    assertEquals([breaker.isOpen, breaker.tryPass()], [false, true]);
    breaker.succeeded();
  }
  for (let failure = 0; failure < 5; failure++) breaker.failed("no answer");
  assertEquals([breaker.isOpen, breaker.tryPass(), breaker.opened, breaker.refusal], [
    true,
    false,
    1,
    "it failed again and again, last: no answer",
  ]);
});

Deno.test("breaker: when the wait is over one attempt passes, and its success closes it", () => {
  const { breaker, clock } = opened();
  clock.advance(99);
  assertEquals(breaker.tryPass(), false);
  clock.advance(1);
  assertEquals([breaker.tryPass(), breaker.tryPass()], [true, false]);
  breaker.succeeded();
  assertEquals([breaker.isOpen, breaker.tryPass(), breaker.tryPass(), breaker.opened], [
    false,
    true,
    true,
    1,
  ]);
});

Deno.test("breaker: waits double from attempt to attempt up to five seconds, and begin anew after a success", () => {
  const { breaker, clock } = opened();
  const waits: number[] = [];
  for (let attempt = 0; attempt < 8; attempt++) {
    let waited = 0;
    for (; !breaker.tryPass(); waited += 100) clock.advance(100);
    waits.push(waited);
    breaker.failed("again");
  }
  assertEquals(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  while (!breaker.tryPass()) clock.advance(100);
  breaker.succeeded();
  for (let failure = 0; failure < 5; failure++) breaker.failed("later");
  clock.advance(100);
  assertEquals([breaker.tryPass(), breaker.opened], [true, 2]);
});

Deno.test("breaker: half of a wait is jitter", () => {
  const clock = new FakeClock();
  const breaker = new Breaker({ clock, random: () => 0 });
  for (let failure = 0; failure < 5; failure++) breaker.failed("no answer");
  clock.advance(49);
  assertEquals(breaker.tryPass(), false);
  clock.advance(1);
  assertEquals(breaker.tryPass(), true);
});

Deno.test("breaker: failures of what was sent before it opened change nothing", () => {
  const { breaker, clock } = opened();
  breaker.failed("sent before");
  clock.advance(100);
  assertEquals([breaker.tryPass(), breaker.opened], [true, 1]);
});

Deno.test("breaker: an attempt that was not made leaves the next one free", () => {
  const { breaker, clock } = opened();
  clock.advance(100);
  assertEquals(breaker.tryPass(), true);
  breaker.released();
  assertEquals(breaker.tryPass(), true);
});

Deno.test("breaker: a clock that is set back does not keep it open", () => {
  const clock = new FakeClock();
  const breaker = new Breaker({ clock, random: () => 1 });
  for (let failure = 0; failure < 5; failure++) breaker.failed("no answer");
  assertEquals(breaker.tryPass(), false);
  clock.aheadMs = -3_600_000;
  assertEquals(breaker.tryPass(), true);
});
