import { assertEquals } from "#assert";
import { nextAttempt, slotsUsed } from "../../../../src/webhooks/model/schedule.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const FIRST = Date.parse("2026-03-28T12:00:00Z");

interface Case {
  readonly name: string;
  readonly slot: number;
  /** After the first failure. */
  readonly at: number;
  readonly mayRetryImmediately?: boolean;
  readonly retryAfterMs?: number;
  readonly random?: number;
  /** Slot and time after the first failure; nothing when the schedule is used up. */
  readonly expected: readonly [slot: number, at: number] | undefined;
}

const CASES: readonly Case[] = [
  { name: "at once", slot: 0, at: 0, mayRetryImmediately: true, expected: [0, 0] },
  { name: "not at once: skipped", slot: 0, at: 0, expected: [1, 30 * SECOND] },
  { name: "not at once counts for the first retry only", slot: 1, at: 5, expected: [1, 30 * SECOND] },
  { name: "two slots passed, one attempt now", slot: 1, at: MINUTE, expected: [2, MINUTE] },
  { name: "just not passed", slot: 2, at: MINUTE - 1, expected: [2, MINUTE] },
  {
    name: "its jitter does not put off a slot that passed",
    slot: 2,
    at: MINUTE,
    random: 0.9,
    expected: [2, MINUTE],
  },
  {
    name: "the jitter of a long gap is below 5 minutes",
    slot: 6,
    at: 3 * HOUR,
    random: 1 - 2 ** -53,
    expected: [6, 8 * HOUR + 5 * MINUTE - 1],
  },
  { name: "many passed", slot: 1, at: 7 * HOUR, expected: [5, 7 * HOUR] },
  { name: "all passed but the last", slot: 3, at: 24 * HOUR - 1, expected: [6, 24 * HOUR - 1] },
  { name: "the last one passed too", slot: 3, at: 24 * HOUR, expected: [7, 24 * HOUR] },
  { name: "passed long ago", slot: 1, at: 90 * 24 * HOUR, expected: [7, 90 * 24 * HOUR] },
  { name: "used up", slot: 8, at: 24 * HOUR, expected: undefined },
  { name: "used up before its time", slot: 8, at: HOUR, expected: undefined },
  {
    name: "Retry-After does not move the immediate retry",
    ...{ slot: 0, at: 0, mayRetryImmediately: true, retryAfterMs: HOUR, expected: [0, 0] },
  },
  { name: "Retry-After, skipped at once", slot: 0, at: 0, retryAfterMs: HOUR, expected: [1, HOUR] },
  {
    name: "Retry-After puts off",
    slot: 2,
    at: 40 * SECOND,
    retryAfterMs: 2 * MINUTE,
    expected: [2, 160 * SECOND],
  },
  {
    name: "Retry-After brings nothing forward",
    slot: 3,
    at: MINUTE,
    retryAfterMs: SECOND,
    expected: [3, 5 * MINUTE],
  },
  { name: "Retry-After 0", slot: 3, at: MINUTE, retryAfterMs: 0, expected: [3, 5 * MINUTE] },
  {
    name: "Retry-After does not shorten the jitter",
    ...{
      slot: 3,
      at: MINUTE,
      retryAfterMs: 4 * MINUTE,
      random: 0.5,
      expected: [3, 5 * MINUTE + 12 * SECOND],
    },
  },
  {
    name: "Retry-After of days",
    slot: 2,
    at: 40 * SECOND,
    retryAfterMs: 72 * HOUR,
    expected: [2, 24 * HOUR],
  },
  {
    name: "Retry-After at the last",
    slot: 7,
    at: 8 * HOUR,
    retryAfterMs: 72 * HOUR,
    expected: [7, 24 * HOUR],
  },
  { name: "Retry-After past the last", slot: 7, at: 25 * HOUR, retryAfterMs: HOUR, expected: [7, 25 * HOUR] },
  {
    name: "Retry-After moves what collapsed",
    ...{ slot: 1, at: 6 * MINUTE, retryAfterMs: MINUTE, expected: [3, 7 * MINUTE] },
  },
  { name: "Retry-After with a fraction", slot: 1, at: 0, retryAfterMs: 60_000.5, expected: [1, 60_001] },
  { name: "the clock went back a little", slot: 1, at: -20, expected: [1, 30 * SECOND - 20] },
  { name: "the clock went back an hour", slot: 4, at: -HOUR, expected: [4, -HOUR + 30 * MINUTE] },
  { name: "the clock went back before the last", slot: 7, at: -HOUR, expected: [7, 23 * HOUR] },
];

for (const { name, slot, at, mayRetryImmediately = false, retryAfterMs, random = 0, expected } of CASES) {
  Deno.test(`next attempt: ${name}`, () => {
    const now = FIRST + at;
    const found = nextAttempt({
      slot,
      firstFailureAt: FIRST,
      now,
      mayRetryImmediately,
      retryAfterMs,
      random,
    });
    const [wanted, wantedAt] = expected ?? [];
    assertEquals(
      found,
      wanted === undefined || wantedAt === undefined ? undefined : { slot: wanted, dueAt: FIRST + wantedAt },
    );
  });
}

// The slot of an attempt, when it began after the first failure, how many slots it uses up.
const USED: readonly (readonly [slot: number, at: number, used: number])[] = [
  [0, 0, 1],
  [0, 29_999, 1],
  [0, 30_000, 2],
  [1, 33_000, 2],
  [1, 60_000, 3],
  [3, 7 * HOUR, 6],
  [1, 24 * HOUR - 1, 7],
  [1, 24 * HOUR, 8],
  [7, 24 * HOUR, 8],
  [7, 99 * HOUR, 8],
  // A clock that went back, or runs a little behind.
  [2, -HOUR, 3],
  [2, 59_999, 3],
];

Deno.test("an attempt uses up its own slot and those that passed before it", () => {
  const found = USED.map(([slot, at]) => [slot, at, slotsUsed(slot, FIRST, FIRST + at)]);
  assertEquals(found, USED.map((row) => [...row]));
});
