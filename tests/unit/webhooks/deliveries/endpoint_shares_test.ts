import { assertEquals } from "#assert";
import type { AttemptReport } from "../../../../src/webhooks/deliveries/metrics.ts";
import { EndpointShares, type Running } from "../../../../src/webhooks/deliveries/endpoint_shares.ts";
import type { DueEndpoint } from "../../../../src/webhooks/store/operations/delivery_claims.ts";

const TIMEOUT = { errorKind: "timeout", tookMs: 15_000 } as const;
const ANSWER = { result: "acknowledged", status: 200, tookMs: 20 } as const;
const LATE_ANSWER = { result: "acknowledged", status: 200, tookMs: 10_000 } as const;
const REFUSED = { errorKind: "connect", tookMs: 3 } as const;
const ERROR = { errorKind: "status", status: 500, tookMs: 20 } as const;

function report(endpointId: string, how: Partial<AttemptReport>): AttemptReport {
  const facts = { deliveryId: "", event: "", number: 1, manual: false, startedAt: 0, tookMs: 0 };
  return { ...facts, endpointId, result: "failed", ...how };
}

function endpoints(name: string, count: number, concurrency = 4): readonly DueEndpoint[] {
  return Array.from({ length: count }, (_, n) => ({ id: `${name}${n}`, concurrency }));
}

/** Attempts that run, by endpoint, all begun then. */
function running(ids: readonly string[], startedAt = 0): Running {
  const flights = ids.map((id) => ({ claimed: { endpoint: { id } }, startedAt }));
  return {
    flights: flights as unknown as Running["flights"],
    of: (id) => ids.filter((one) => one === id).length,
  };
}

/** The begun attempts, as `name: count`, summed over endpoints of one kind. */
function begun(shares: EndpointShares, waiting: readonly DueEndpoint[], now = running([]), elapsed = 0) {
  const sums: Record<string, number> = {};
  for (const { endpointId, max } of shares.claimRequests(waiting, now, 1_000, elapsed)) {
    const kind = endpointId.replace(/\d+$/, "");
    sums[kind] = (sums[kind] ?? 0) + max;
  }
  return sums;
}

Deno.test("a share is halved by each failure, down to one attempt, and doubled by each success", () => {
  const shares = new EndpointShares(100);
  const one = { id: "one", concurrency: 20 };
  const after = (how: Partial<AttemptReport>) => {
    shares.learn(report("one", how), 0);
    return shares.share(one);
  };
  assertEquals(shares.share(one), 20);
  assertEquals([TIMEOUT, REFUSED, ERROR, TIMEOUT, TIMEOUT].map(after), [10, 5, 2, 1, 1]);
  assertEquals([ANSWER, LATE_ANSWER, ANSWER, ANSWER, ANSWER, ANSWER].map(after), [1, 2, 5, 10, 20, 20]);
  assertEquals(after({ errorKind: "reset", tookMs: 9_000 }), 10);
});

Deno.test("after 20 failures in a row the attempts of an endpoint have pauses that grow until one succeeds", () => {
  const shares = new EndpointShares(100);
  /** The pause after an attempt that ended at this time. */
  const pause = (how: Partial<AttemptReport>, elapsed: number) => {
    shares.learn(report("one", how), elapsed);
    const isOver = (ms: number) => !shares.isPaused("one", elapsed + ms);
    return [0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000].find(isOver);
  };
  for (let n = 1; n < 20; n++) assertEquals([n, pause(n % 2 === 0 ? REFUSED : ERROR, n)], [n, 0]);
  assertEquals(pause(ANSWER, 20), 0);
  for (let n = 1; n < 20; n++) assertEquals([n, pause(ERROR, 10_000 + n)], [n, 0]);
  const pauses = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
  assertEquals(pauses.map((_, n) => pause(TIMEOUT, 100_000 * (n + 1))), pauses);
  shares.endPause("one");
  assertEquals(shares.isPaused("one", 700_001), false);
  assertEquals(
    pause(REFUSED, 800_000),
    30_000,
    "the pauses go on after an attempt that an administrator requested",
  );
  assertEquals(pause(ANSWER, 900_000), 0);
  shares.endPause("unknown");
  assertEquals(shares.isPaused("unknown", 0), false);
});

Deno.test("many endpoints that fail share a rate of attempts; one that succeeds has no pause", () => {
  const shares = new EndpointShares(500);
  const many = endpoints("dead", 400);
  for (let failure = 1; failure <= 3; failure++) {
    for (const { id } of many) shares.learn(report(id, REFUSED), 1_000);
  }
  const free = (elapsed: number) => many.filter(({ id }) => !shares.isPaused(id, elapsed)).length;
  assertEquals([1_000, 2_000, 3_000, 6_000, 20_000].map(free), [20, 40, 60, 120, 400]);
  shares.learn(report("other", REFUSED), 1_000);
  shares.learn(report("other", REFUSED), 1_000);
  assertEquals(shares.isPaused("other", 1_000), false, "after its second failure");
  shares.learn(report("dead399", ANSWER), 1_000);
  assertEquals(shares.isPaused("dead399", 1_000), false);
  // Later the rate is free again.
  for (let failure = 1; failure <= 4; failure++) shares.learn(report("late", ERROR), 60_000);
  assertEquals(shares.isPaused("late", 60_000), false);
});

Deno.test("attempts without a pause, as the last ones of deliveries, use no more of the shared rate than others", () => {
  const shares = new EndpointShares(500);
  // For an hour, 100 deliveries per second of a dead endpoint have their last attempt.
  for (let n = 0; n < 360_000; n++) shares.learn(report("dead", REFUSED), 10 * n);
  const end = 3_600_000;
  for (let failure = 1; failure <= 4; failure++) shares.learn(report("other", ERROR), end);
  assertEquals([shares.isPaused("other", end + 250), shares.isPaused("dead", end)], [false, true]);
});

Deno.test("endpoints that fail immediately leave places to those that answer", () => {
  const shares = new EndpointShares(64);
  const refusing = endpoints("refusing", 100);
  for (const { id } of refusing) shares.learn(report(id, REFUSED), 0);
  assertEquals(begun(shares, refusing), { refusing: 60 });
});

Deno.test("places are kept from those that do not answer, and fewer from those that answer late", () => {
  const shares = new EndpointShares(64);
  for (let n = 0; n < 100; n++) {
    shares.learn(report(`dead${n}`, TIMEOUT), 0);
    shares.learn(report(`late${n}`, LATE_ANSWER), 0);
    shares.learn(report(`live${n}`, ANSWER), 0);
  }
  const [dead, late, live] = ["dead", "late", "live"].map((name) => endpoints(name, 100)) as [
    ...[readonly DueEndpoint[], readonly DueEndpoint[], readonly DueEndpoint[]],
  ];
  assertEquals(begun(shares, dead), { dead: 48 });
  assertEquals(begun(shares, late), { late: 60 });
  assertEquals(begun(shares, live), { live: 64 });
  assertEquals(begun(shares, [...dead, ...late, ...live]), { dead: 48, late: 12, live: 4 });
  // Who answers in time takes all that is free; who hangs has its turn when a place is left.
  const held = running(live.slice(0, 63).map(({ id }) => id));
  assertEquals(begun(shares, [...dead, ...live], held), { dead: 1 });
  const hung = running(dead.slice(0, 58).map(({ id }) => id));
  assertEquals(begun(shares, live.slice(0, 2), hung), { live: 2 });
  assertEquals(begun(shares, live.slice(0, 6), hung), { live: 6 });
});

Deno.test("many endpoints that begin to hang leave the last places to those that have none", () => {
  const shares = new EndpointShares(64);
  const live = endpoints("live", 64);
  for (const { id } of live) shares.learn(report(id, ANSWER), 0);
  const ids = live.map(({ id }) => id);
  const held = running([...ids.slice(0, 55), ...ids.slice(0, 4)]);
  assertEquals(begun(shares, live.slice(0, 55), held), { live: 1 });
  assertEquals(begun(shares, live.slice(55), held), { live: 5 });
});

Deno.test("a new endpoint has its first attempt although new ones that hang hold what they may", () => {
  const shares = new EndpointShares(500);
  const hung = endpoints("hung", 1_000);
  const taken = hung.slice(0, 375).map(({ id }) => id);
  const fresh = { id: "fresh0", concurrency: 4 };
  assertEquals(begun(shares, [...hung, fresh], running(taken)), { fresh: 1 });
  // One in a quarter of a second, the one that came last.
  const probing = running([...taken, "hung999"]);
  assertEquals(begun(shares, [...hung, fresh], probing, 249), {});
  assertEquals(begun(shares, [...hung, fresh], probing, 250), { fresh: 1 });
  // Those that hang leave a reserve in any case.
  const most = running(hung.slice(0, 438).map(({ id }) => id));
  assertEquals(begun(shares, [...hung, fresh], most, 10_000), {});
});

Deno.test("however few places there are, endpoints that hang leave one, and a single place is for all", () => {
  for (const max of [1, 2, 3, 7, 8, 15]) {
    const shares = new EndpointShares(max);
    const [dead, fresh, live] = [endpoints("dead", 20), endpoints("fresh", 20), endpoints("live", 1)];
    for (const { id } of dead) shares.learn(report(id, TIMEOUT), 0);
    for (const { id } of live) shares.learn(report(id, ANSWER), 0);
    const held: string[] = [];
    // Wave after wave, until no more of them begin.
    for (let elapsed = 0; elapsed < 10_000; elapsed += 500) {
      for (const waiting of [dead, fresh]) {
        for (const { endpointId } of shares.claimRequests(waiting, running(held), 1_000, elapsed)) {
          held.push(endpointId);
        }
      }
    }
    assertEquals([max, held.length < max], [max, max > 1]);
    assertEquals(begun(shares, live, running(held), 10_000), max > 1 ? { live: 1 } : {});
  }
});
