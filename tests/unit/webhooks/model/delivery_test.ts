import { assert, assertEquals } from "#assert";
import {
  afterAttempt,
  type AttemptEnd,
  type DeliveryChange,
  isOpen,
} from "../../../../src/webhooks/model/delivery.ts";
import type { AttemptErrorKind, Delivery, DeliveryState } from "../../../../src/webhooks/model/records.ts";
import { seededRandom } from "../../../harness/seeded_random.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const NOW = Date.parse("2026-03-28T12:00:00Z");

type Place = Pick<Delivery, "state" | "slot" | "firstFailureAt" | "waitedMs">;

const NEW: Place = { state: "attempting", slot: 0 };
const LATER: Place = { state: "retrying", slot: 2, firstFailureAt: NOW - MINUTE };
const LAST: Place = { state: "retrying", slot: 7, firstFailureAt: NOW - 24 * HOUR };
const FAILED: Place = { state: "failed", slot: 8, firstFailureAt: NOW - 30 * HOUR };
const DONE: Place = { state: "acknowledged", slot: 0 };

const OK: AttemptEnd = { result: "acknowledged", finishedAt: NOW, status: 204 };
const CUT: AttemptEnd = { result: "interrupted", finishedAt: NOW, errorKind: "interrupted" };

const status = (code: number, retryAfterMs?: number): AttemptEnd => {
  return { result: "failed", finishedAt: NOW, status: code, errorKind: "status", retryAfterMs };
};
const error = (errorKind: AttemptErrorKind): AttemptEnd => ({ result: "failed", finishedAt: NOW, errorKind });

const acknowledged = ({ slot, firstFailureAt }: Place): DeliveryChange => ({
  state: "acknowledged",
  slot,
  ...firstFailureAt === undefined ? {} : { firstFailureAt },
  finishedAt: NOW,
});
const retrying = (slot: number, firstFailureAt: number, dueAt: number): DeliveryChange => {
  return { state: "retrying", slot, firstFailureAt, dueAt };
};
const exhausted = (firstFailureAt: number): DeliveryChange => ({
  state: "failed",
  slot: 8,
  firstFailureAt,
  finishedAt: NOW,
  reason: "exhausted",
});

/** A delivery, an attempt of it, and its change; nothing changes when that is undefined. */
type Case = readonly [
  name: string,
  from: Place,
  outcome: AttemptEnd,
  change: DeliveryChange | undefined,
  options?: { readonly manual?: boolean; readonly startedAt?: number },
];

const since = (slot: number, firstFailureAt: number): Place => ({ state: "retrying", slot, firstFailureAt });
const waited = (slot: number, firstFailureAt: number, waitedMs: number): Place => {
  return { state: "retrying", slot, firstFailureAt, waitedMs };
};
const AT_ONCE = retrying(0, NOW, NOW);
const IN_30_SECONDS = retrying(1, NOW, NOW + 30 * SECOND);
const FIRST_FAILURES: readonly (readonly [AttemptEnd, DeliveryChange])[] = [
  ...[500, 502, 503, 504, 599].map((code) => [status(code), AT_ONCE] as const),
  ...(["timeout", "dns", "connect", "tls", "reset", "protocol"] as const).map((kind) =>
    [error(kind), AT_ONCE] as const
  ),
  ...[101, 300, 301, 304, 400, 401, 404, 408, 410, 429, 499].map((code) =>
    [status(code), IN_30_SECONDS] as const
  ),
  ...(["blocked_address", "unsendable"] as const).map((kind) => [error(kind), IN_30_SECONDS] as const),
  [{ ...status(302), errorKind: "redirect" }, IN_30_SECONDS],
  // A status that came counts for more than how its body ended.
  [{ ...status(404), errorKind: "timeout" }, IN_30_SECONDS],
  [{ ...status(500), errorKind: "reset" }, AT_ONCE],
  // Retry-After counts on 429 and 503, and not for the immediate retry.
  [status(503, HOUR), AT_ONCE],
  [status(429, HOUR), retrying(1, NOW, NOW + HOUR)],
  [status(429, 48 * HOUR), retrying(1, NOW, NOW + 24 * HOUR)],
  [status(429, SECOND), IN_30_SECONDS],
  [status(404, HOUR), IN_30_SECONDS],
  [status(500, HOUR), AT_ONCE],
];

const TIMEOUT = error("timeout");
const THREE_DAYS_AGO = NOW - 72 * HOUR;
const CASES: readonly Case[] = [
  ["the first attempt is answered with 2xx", NEW, OK, acknowledged(NEW)],
  ...FIRST_FAILURES.map(([outcome, change]): Case => {
    const { status = "", errorKind, retryAfterMs = "" } = outcome;
    return [`the first attempt ends with ${status} ${errorKind} ${retryAfterMs}`, NEW, outcome, change];
  }),
  ["a retry is answered with 2xx", LATER, OK, acknowledged(LATER)],
  ["a retry fails", LATER, status(500), retrying(3, NOW - MINUTE, NOW + 4 * MINUTE)],
  ["a retry fails with 404 after 5xx", LATER, status(404), retrying(3, NOW - MINUTE, NOW + 4 * MINUTE)],
  ["a retry is asked to wait with 503", LATER, status(503, HOUR), retrying(3, NOW - MINUTE, NOW + HOUR)],
  [
    "Retry-After on another status is nothing",
    LATER,
    status(500, HOUR),
    retrying(3, NOW - MINUTE, NOW + 4 * MINUTE),
  ],
  [
    "a retry hours late uses up what passed",
    since(1, NOW - 3 * HOUR),
    status(500),
    retrying(6, NOW - 3 * HOUR, NOW + 5 * HOUR),
    { startedAt: NOW - 5 },
  ],
  [
    "a retry days late, the last slot included, fails",
    since(1, THREE_DAYS_AGO),
    status(500),
    exhausted(THREE_DAYS_AGO),
    { startedAt: NOW - 5 },
  ],
  [
    "a retry days late is answered with 2xx",
    since(1, THREE_DAYS_AGO),
    OK,
    acknowledged(since(1, THREE_DAYS_AGO)),
  ],
  [
    "slots that passed while it was out are one attempt now",
    since(0, NOW - 65 * SECOND),
    TIMEOUT,
    retrying(2, NOW - 65 * SECOND, NOW),
    { startedAt: NOW - 64 * SECOND },
  ],
  [
    "without its start they are used up",
    since(0, NOW - 65 * SECOND),
    TIMEOUT,
    retrying(3, NOW - 65 * SECOND, NOW + 235 * SECOND),
  ],
  [
    "the last slot passed while it was out",
    since(6, NOW - 24 * HOUR - SECOND),
    TIMEOUT,
    retrying(7, NOW - 24 * HOUR - SECOND, NOW),
    { startedAt: NOW - 15 * SECOND },
  ],
  ["the last slot fails", LAST, status(503, HOUR), exhausted(NOW - 24 * HOUR)],
  [
    "a retry that waited for the rate uses up one slot, and the gaps stay",
    waited(1, NOW - 3 * HOUR, 3 * HOUR - MINUTE / 2),
    status(500),
    retrying(2, NOW - 3 * HOUR, NOW + MINUTE / 2),
    { startedAt: NOW - 5 },
  ],
  [
    "a retry that waited is late for other reasons as well",
    waited(1, NOW - 3 * HOUR, 2 * HOUR),
    status(500),
    retrying(5, NOW - 3 * HOUR, NOW + HOUR),
    { startedAt: NOW - 5 },
  ],
  [
    "what waited for the rate ends a day after the first failure, too",
    waited(6, NOW - 10 * HOUR, 2 * HOUR),
    status(500),
    retrying(7, NOW - 10 * HOUR, NOW + 14 * HOUR),
    { startedAt: NOW - 5 },
  ],
  [
    "retries that the rate has delayed by a day are over",
    waited(3, NOW - 25 * HOUR, 24 * HOUR),
    status(500),
    { ...exhausted(NOW - 25 * HOUR), reason: "rate_limited" },
    { startedAt: NOW - 5 },
  ],
  [
    "the last slot fails after a wait for the rate",
    waited(7, NOW - 25 * HOUR, HOUR),
    status(500),
    exhausted(NOW - 25 * HOUR),
    { startedAt: NOW - 5 },
  ],
  ["the last slot is answered with 2xx", LAST, OK, acknowledged(LAST)],
  [
    "the clock went back an hour: the schedule begins anew",
    since(3, NOW + HOUR),
    status(500),
    retrying(4, NOW, NOW + 30 * MINUTE),
  ],
  ...[NEW, LATER, LAST, FAILED, DONE].flatMap((from): Case[] => {
    const place = `${from.state} ${from.slot}`;
    const change = from === DONE ? undefined : acknowledged(from);
    const manual = { manual: true };
    return [
      [`interrupted, ${place}`, from, CUT, undefined],
      [`interrupted by hand, ${place}`, from, CUT, undefined, manual],
      [`by hand fails, ${place}`, from, status(500), undefined, manual],
      [`by hand is answered with 2xx, ${place}`, from, OK, change, manual],
    ];
  }),
  // An attempt that was out while its delivery failed otherwise.
  ["2xx after it failed", FAILED, OK, acknowledged(FAILED)],
  ["500 after it failed", FAILED, status(500), undefined],
  ["500 after it was acknowledged", DONE, status(500), undefined],
  ["2xx after it was acknowledged", DONE, OK, undefined],
];

for (const [name, from, outcome, change, { manual = false, startedAt } = {}] of CASES) {
  Deno.test(`after an attempt: ${name}`, () => {
    const found = afterAttempt(from, outcome, { now: NOW, random: 0, manual, startedAt });
    assertEquals(found, { ...change === undefined ? {} : { change }, failed: change?.state === "failed" });
  });
}

Deno.test("which deliveries are open", () => {
  const states: readonly DeliveryState[] = ["attempting", "retrying", "acknowledged", "failed"];
  assertEquals(states.map(isOpen), [true, true, false, false]);
});

interface Life {
  /** When each attempt began, after the first failure. */
  readonly attempts: readonly number[];
  readonly end: DeliveryState;
  /** After the first failure. */
  readonly endedAt: number;
}

/** The course of a delivery to this receiver, in fake time; `startOf` returns when a due attempt really begins. */
function live(
  receiver: (attempt: number) => { outcome: AttemptEnd; tookMs: number },
  random: () => number,
  startOf: (dueAt: number, attempt: number) => number = (dueAt) => dueAt,
): Life {
  let place: Place = NEW;
  let dueAt = NOW;
  const starts: number[] = [];
  let firstEnd: number | undefined;
  for (;;) {
    const startedAt = startOf(dueAt, starts.length);
    const { outcome, tookMs } = receiver(starts.length);
    starts.push(startedAt);
    const now = startedAt + tookMs;
    firstEnd ??= now;
    const options = { now, random: random(), manual: false, startedAt };
    const { change, failed } = afterAttempt(place, outcome, options);
    if (change === undefined) throw new Error("Cannot go on: the attempt changed nothing");
    place = change;
    assertEquals([failed, isOpen(change.state)], [change.state === "failed", change.dueAt !== undefined]);
    if (change.dueAt === undefined) {
      const from = firstEnd;
      return { attempts: starts.map((at) => at - from), end: change.state, endedAt: now - from };
    }
    dueAt = change.dueAt;
  }
}

const AFTER_5XX = [0, 30 * SECOND, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 8 * HOUR, 24 * HOUR];
const JITTER = [0, 3 * SECOND, 3 * SECOND, 24 * SECOND, 150 * SECOND, 5 * MINUTE, 5 * MINUTE, 0];

for (const random of [0, 0.5, 0.999]) {
  const at = AFTER_5XX.map((offsetMs, slot) => offsetMs + Math.floor(random * (JITTER[slot] ?? 0)));

  Deno.test(`the whole schedule of a receiver that answers 500, random ${random}`, () => {
    const life = live(() => ({ outcome: status(500), tookMs: 20 }), () => random);
    assertEquals(life, { attempts: [-20, ...at], end: "failed", endedAt: 24 * HOUR + 20 });
    assertEquals(life.attempts.length, 9);
  });

  Deno.test(`the whole schedule of a receiver that answers 404, random ${random}`, () => {
    const life = live(() => ({ outcome: status(404), tookMs: 20 }), () => random);
    assertEquals(life, { attempts: [-20, ...at.slice(1)], end: "failed", endedAt: 24 * HOUR + 20 });
  });

  Deno.test(`the whole schedule of a receiver that never answers, random ${random}`, () => {
    const tookMs = 15 * SECOND;
    const life = live(() => ({ outcome: error("timeout"), tookMs }), () => random);
    assertEquals(life, { attempts: [-tookMs, ...at], end: "failed", endedAt: 24 * HOUR + tookMs });
  });
}

Deno.test("attempts that take longer than the gaps follow each other immediately and lose no later slot", () => {
  const life = live(() => ({ outcome: error("timeout"), tookMs: 50 * SECOND }), () => 0);
  const attempts = [-50 * SECOND, 0, 50 * SECOND, 100 * SECOND, ...AFTER_5XX.slice(3)];
  assertEquals(life, { attempts, end: "failed", endedAt: 24 * HOUR + 50 * SECOND });
});

Deno.test("a receiver that wakes up in the end", () => {
  const life = live((attempt) => ({ outcome: attempt < 8 ? status(500) : OK, tookMs: 0 }), () => 0);
  assertEquals(life, { attempts: [0, ...AFTER_5XX], end: "acknowledged", endedAt: 24 * HOUR });
});

const DOWN: readonly (readonly [name: string, from: number, to: number, attempts: readonly number[]])[] = [
  ["for a minute", 10 * SECOND, 70 * SECOND, [0, 0, 70 * SECOND, ...AFTER_5XX.slice(3)]],
  ["from 10 minutes to 9 hours", 10 * MINUTE, 9 * HOUR, [0, ...AFTER_5XX.slice(0, 4), 9 * HOUR, 24 * HOUR]],
  ["over the last slot", 10 * HOUR, 100 * HOUR, [0, ...AFTER_5XX.slice(0, 7), 100 * HOUR]],
  ["for all of it", SECOND, 25 * HOUR, [0, 0, 25 * HOUR]],
];

for (const [name, from, to, attempts] of DOWN) {
  Deno.test(`what passed is one attempt when the process was down ${name}`, () => {
    const startOf = (dueAt: number) => dueAt - NOW >= from && dueAt - NOW < to ? NOW + to : dueAt;
    const life = live(() => ({ outcome: status(500), tookMs: 0 }), () => 0, startOf);
    assertEquals(life, { attempts, end: "failed", endedAt: attempts.at(-1) ?? NaN });
  });
}

Deno.test("no life has more than nine attempts, whatever the receiver, the process and the clock do", () => {
  const random = seededRandom(20_260_328);
  for (let round = 0; round < 2_000; round++) {
    const outcomes = [
      status(500),
      status(404),
      status(429, random() * 48 * HOUR),
      error("timeout"),
      error("dns"),
    ];
    const receiver = () => ({
      outcome: outcomes[Math.floor(random() * outcomes.length)] ?? CUT,
      tookMs: Math.floor(random() ** 4 * 120 * SECOND),
    });
    const isSteady = random() < 0.5;
    const startOf = (dueAt: number) => {
      const late = random() < 0.3 ? Math.floor(random() ** 3 * 40 * HOUR) : 0;
      // Steps of the clock, too.
      return isSteady || random() < 0.7 ? dueAt + late : dueAt + Math.floor((random() - 0.5) * 10 * HOUR);
    };
    const life = live(receiver, random, startOf);
    assert(life.attempts.length <= 9, `round ${round} has ${life.attempts.length} attempts`);
    assertEquals(life.end, "failed");
    if (isSteady) assert(life.endedAt >= 24 * HOUR, `round ${round} ends after ${life.endedAt} ms`);
    if (isSteady) assertEquals(life.attempts, life.attempts.toSorted((a, b) => a - b));
  }
});
