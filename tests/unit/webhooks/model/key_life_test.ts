import { assertEquals } from "@std/assert";
import { idempotencyKeyProblem } from "../../../../src/webhooks/api/calls.ts";
import { isLive, KEY_LIVES_MS } from "../../../../src/webhooks/model/key_life.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
const ACCEPTED_AT = Date.parse("2026-03-28T12:00:00Z");

const LIVES: readonly (readonly [afterMs: number, live: boolean])[] = [
  [0, true],
  [DAY_MS - 1_000, true],
  [DAY_MS - 1, true],
  [DAY_MS, false],
  [DAY_MS + 1, false],
  [365 * DAY_MS, false],
  // A clock that went back.
  [-1, true],
  [-DAY_MS, true],
  [-2 * DAY_MS, true],
];

Deno.test("a key lives for 24 hours from its acceptance", () => {
  const found = LIVES.map(([afterMs]) => [afterMs, isLive(ACCEPTED_AT, ACCEPTED_AT + afterMs)]);
  assertEquals(found, LIVES.map((row) => [...row]));
  assertEquals(KEY_LIVES_MS, DAY_MS);
});

const EMPTY = "the Idempotency-Key is empty; expected 1 to 255 characters";
const LONG = "the Idempotency-Key has 256 characters; expected 1 to 255 characters";
const CONTROL = "the Idempotency-Key has a control character; expected 1 to 255 characters without any";

const KEYS: readonly (readonly [key: string, problem: string | undefined])[] = [
  ["", EMPTY],
  ["a", undefined],
  ["a".repeat(255), undefined],
  ["a".repeat(256), LONG],
  ["order 17, second try", undefined],
  ["8e03978e-40d5-43dd-bc93-6894a57f9324", undefined],
  ["~", undefined],
  // UTF-8 as `Headers` shows it.
  ["\u00e2\u0080\u0093", undefined],
  ["__proto__", undefined],
  ["a\tb", CONTROL],
  ["a\0", CONTROL],
  ["\x1f", CONTROL],
  ["\x7f", CONTROL],
  ["a\r\nb", CONTROL],
];

Deno.test("keys that may be used", () => {
  assertEquals(KEYS.map(([key]) => [key, idempotencyKeyProblem(key)]), KEYS.map((row) => [...row]));
});
