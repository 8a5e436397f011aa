import { assertEquals } from "#assert";
import { RateGuard } from "../../../../src/grpc/native/rate_guard.ts";

/** Number of allowed attempts among so many at one moment. */
function allowed(guard: RateGuard, attempts: number, now: number): number {
  return Array.from({ length: attempts }, () => guard.allows(now)).filter((yes) => yes).length;
}

Deno.test("RateGuard: a burst, and then as many as time brings, never more than the burst", () => {
  const guard = new RateGuard({ burst: 5, perSecond: 10 }, 1_000);
  const steps: readonly (readonly [now: number, attempts: number, allowed: number])[] = [
    [1_000, 7, 5],
    [1_099, 1, 0],
    [1_500, 9, 2],
    [60_000, 9, 5],
    [59_000, 1, 0],
  ];
  assertEquals(
    steps.map(([now, attempts]) => [now, attempts, allowed(guard, attempts, now)]),
    steps.map((step) => [...step]),
  );
});

Deno.test("RateGuard: what is earned comes on top, up to the burst", () => {
  const guard = new RateGuard({ burst: 3, perSecond: 1 }, 0);
  guard.earn(10);
  const first = allowed(guard, 5, 0);
  guard.earn(2);
  guard.earn(2);
  assertEquals([first, allowed(guard, 5, 0)], [3, 2]);
});
