import { assertEquals } from "#assert";
import { nextAttempt, SLOTS_MS, slotsUsed } from "../../../../src/webhooks/model/schedule.ts";
import { DELIVERY_FIELDS } from "../../../../src/webhooks/resources/delivery.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const FIRST = Date.parse("2026-03-28T12:00:00Z");

/** A slot, a time after the first failure, and the slot and the time of the next attempt; undefined for none. */
type Case = readonly [
  name: string,
  slot: number,
  at: number,
  expected: readonly [slot: number, at: number] | undefined,
  options?: Pick<Partial<NextAttempt>, "mayRetryImmediately" | "retryAfterMs" | "random">,
];
type NextAttempt = Parameters<typeof nextAttempt>[0];

const CASES: readonly Case[] = [
  ["immediately", 0, 0, [0, 0], { mayRetryImmediately: true }],
  ["not immediately: skipped", 0, 0, [1, 30 * SECOND]],
  ["not immediately counts for the first retry only", 1, 5, [1, 30 * SECOND]],
  ["two slots passed, one attempt now", 1, MINUTE, [2, MINUTE]],
  ["just not passed", 2, MINUTE - 1, [2, MINUTE]],
  ["its jitter does not put off a slot that passed", 2, MINUTE, [2, MINUTE], { random: 0.9 }],
  ["the jitter of a long gap is below 5 minutes", 6, 3 * HOUR, [6, 8 * HOUR + 5 * MINUTE - 1], {
    random: 1 - 2 ** -53,
  }],
  ["many passed", 1, 7 * HOUR, [5, 7 * HOUR]],
  ["all passed but the last", 3, 24 * HOUR - 1, [6, 24 * HOUR - 1]],
  ["the last one passed too", 3, 24 * HOUR, [7, 24 * HOUR]],
  ["passed long ago", 1, 90 * 24 * HOUR, [7, 90 * 24 * HOUR]],
  ["used up", 8, 24 * HOUR, undefined],
  ["used up before its time", 8, HOUR, undefined],
  ["Retry-After does not move the immediate retry", 0, 0, [0, 0], {
    mayRetryImmediately: true,
    retryAfterMs: HOUR,
  }],
  ["Retry-After, skipped immediately", 0, 0, [1, HOUR], { retryAfterMs: HOUR }],
  ["Retry-After puts off", 2, 40 * SECOND, [2, 160 * SECOND], { retryAfterMs: 2 * MINUTE }],
  ["Retry-After brings nothing forward", 3, MINUTE, [3, 5 * MINUTE], { retryAfterMs: SECOND }],
  ["Retry-After 0", 3, MINUTE, [3, 5 * MINUTE], { retryAfterMs: 0 }],
  ["Retry-After does not shorten the jitter", 3, MINUTE, [3, 5 * MINUTE + 12 * SECOND], {
    retryAfterMs: 4 * MINUTE,
    random: 0.5,
  }],
  ["Retry-After of days", 2, 40 * SECOND, [2, 24 * HOUR], { retryAfterMs: 72 * HOUR }],
  ["Retry-After at the last", 7, 8 * HOUR, [7, 24 * HOUR], { retryAfterMs: 72 * HOUR }],
  ["Retry-After past the last", 7, 25 * HOUR, [7, 25 * HOUR], { retryAfterMs: HOUR }],
  ["Retry-After moves what collapsed", 1, 6 * MINUTE, [3, 7 * MINUTE], { retryAfterMs: MINUTE }],
  ["Retry-After with a fraction", 1, 0, [1, 60_001], { retryAfterMs: 60_000.5 }],
  ["the clock went back a little", 1, -20, [1, 30 * SECOND - 20]],
  ["the clock went back an hour", 4, -HOUR, [4, -HOUR + 30 * MINUTE]],
  ["the clock went back before the last", 7, -HOUR, [7, 23 * HOUR]],
];

for (const [name, slot, at, expected, options] of CASES) {
  Deno.test(`next attempt: ${name}`, () => {
    const usual = { mayRetryImmediately: false, random: 0, firstFailureAt: FIRST };
    const found = nextAttempt({ ...usual, ...options, slot, now: FIRST + at });
    const dueAt = found && found.dueAt - FIRST;
    assertEquals(found && [found.slot, dueAt], expected && [...expected]);
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

Deno.test("the description of a delivery has the number of retries", () => {
  assertEquals(DELIVERY_FIELDS.slot.max, SLOTS_MS.length);
});
