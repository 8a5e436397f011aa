import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { createHash, randomBytes } from "node:crypto";
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
