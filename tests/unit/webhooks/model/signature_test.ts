import { assertEquals, assertRejects, assertThrows } from "#assert";
import { randomBytes } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { newEndpointSecret } from "../../../../src/webhooks/model/keys.ts";
import {
  constantTimeEqual,
  signature,
  standardWebhooksHeaders,
} from "../../../../src/webhooks/model/signature.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

// From RFC 4231, cases 1 to 3 and 6, as far as their keys are texts.
const KNOWN: readonly (readonly [secret: string, body: string, hex: string])[] = [
  [
    "Jefe",
    "what do ya want for nothing?",
    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
  ],
  [
    "\x0b".repeat(20),
    "Hi There",
    "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
  ],
];

for (const [secret, body, hex] of KNOWN) {
  Deno.test(`the signature of ${JSON.stringify(body)} is the published one`, async () => {
    assertEquals(await signature(secret, bytes(body)), `sha256=${hex}`);
  });
}

Deno.test("a body that threads share is signed as well", async () => {
  const shared = new Uint8Array(new SharedArrayBuffer(2));
  shared.set(bytes("{}"));
  assertEquals(await signature("a", shared), await signature("a", bytes("{}")));
});

Deno.test("Standard Webhooks headers are those of the published example", async () => {
  const headers = await standardWebhooksHeaders({
    id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
    timestampSeconds: 1_614_265_330,
    body: bytes('{"test": 2432232314}'),
    secrets: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
  });
  assertEquals(headers, {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
  });
});

for (const secret of ["", "whsec_", "whsec_*", "c2VjcmV0", "WHSEC_c2VjcmV0"]) {
  Deno.test(`Standard Webhooks headers cannot be made with ${JSON.stringify(secret)}`, async () => {
    const error = await assertRejects(() =>
      standardWebhooksHeaders({ id: "a", timestampSeconds: 1, body: bytes("{}"), secrets: [secret] })
    );
    assertEquals(
      [error.name, error.message],
      ["TypeError", 'Cannot sign with a secret: expected "whsec_" followed by base64'],
    );
  });
}

const PAIRS: readonly (readonly [a: string, b: string, equal: boolean])[] = [
  ["", "", true],
  ["a", "a", true],
  ["sha256=00ff", "sha256=00ff", true],
  ["a", "b", false],
  ["a", "A", false],
  ["", "a", false],
  ["a", "aa", false],
  ["aa", "a", false],
  ["a", "a\0", false],
  ["\0", "", false],
  ["ab", "ba", false],
  ["xa", "ya", false],
  ["ax", "ay", false],
  ["\u0100", "\0", false],
  ["\u{10000}", "\u{10001}", false],
  ["ü", "ü", true],
];

Deno.test("texts compared in constant time", () => {
  assertEquals(PAIRS.map(([a, b]) => [a, b, constantTimeEqual(a, b)]), PAIRS.map((row) => [...row]));
});

const BODY = '{"event":"workflow.execution.completed","data":{"status":"succeeded","ü":"😀"}}';
const ID = "3b241101-e2bb-4255-8caf-4136c566a962";

Deno.test("Standard Webhooks headers are verified by the library of those who wrote the standard", async () => {
  // The library has no clock but that of the machine.
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  for (let round = 0; round < 20; round++) {
    const secret = newEndpointSecret(randomBytes);
    const headers = await standardWebhooksHeaders({
      id: ID,
      timestampSeconds,
      body: bytes(BODY),
      secrets: [newEndpointSecret(randomBytes), secret],
    });
    assertEquals(new Webhook(secret).verify(BODY, headers), JSON.parse(BODY));
    assertEquals(
      assertThrows(() => new Webhook(secret).verify(`${BODY} `, headers)).message,
      "No matching signature found",
    );
    assertEquals(
      assertThrows(() => new Webhook(newEndpointSecret(randomBytes)).verify(BODY, headers)).message,
      "No matching signature found",
    );
  }
});
