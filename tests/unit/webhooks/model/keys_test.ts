import { assertEquals, assertMatch, assertNotEquals } from "#assert";
import { createHash, randomBytes } from "node:crypto";
import { idempotencyKeyProblem } from "../../../../src/webhooks/api/calls.ts";
import { isLive, KEY_LIVES_MS } from "../../../../src/webhooks/model/key_life.ts";
import { newEndpointSecret, newEventKey, newTriggerKey } from "../../../../src/webhooks/model/keys.ts";

// Bytes that give characters of both alphabets of base64.
const fixed = (length: number) => new Uint8Array(length).fill(0xfb);
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

Deno.test("keys of given bytes", () => {
  const text = `${"-_v7".repeat(10)}-_s`;
  for (const [prefix, made] of [["svct_", newTriggerKey(fixed)], ["svce_", newEventKey(fixed)]] as const) {
    const key = prefix + text;
    assertEquals(made, { key, hash: sha256(key), lastFour: "7-_s" });
  }
  assertEquals(newEndpointSecret(fixed), `whsec_${"+/v7".repeat(10)}+/s=`);
});

Deno.test("keys hold 32 bytes, in the alphabet that fits a header and a URL", () => {
  const asked: number[] = [];
  const bytes = (length: number) => {
    asked.push(length);
    return randomBytes(length);
  };
  for (let round = 0; round < 50; round++) {
    assertMatch(newTriggerKey(bytes).key, /^svct_[\w-]{43}$/);
    assertMatch(newEventKey(bytes).key, /^svce_[\w-]{43}$/);
    assertMatch(newEndpointSecret(bytes), /^whsec_[A-Za-z0-9+/]{43}=$/);
  }
  assertEquals(asked, asked.map(() => 32));
  assertNotEquals(newTriggerKey(randomBytes).key, newTriggerKey(randomBytes).key);
});

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
