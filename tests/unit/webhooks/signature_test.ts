import { assertEquals, assertRejects } from "@std/assert";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { newEndpointSecret } from "../../../src/webhooks/keys.ts";
import { constantTimeEqual, signature, standardWebhooksHeaders } from "../../../src/webhooks/signature.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { needs, requireTool } from "../../harness/tools.ts";

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

const BODIES: readonly (readonly [name: string, body: Uint8Array])[] = [
  ["an event", bytes('{"event":"workflow.execution.completed","data":{"total":12345678901234567890}}')],
  ["nothing", new Uint8Array()],
  ["text of many alphabets", bytes('{"event":"a","data":{"ü":"漢字 😀\\u0000"}}')],
  ["bytes that are no text", Uint8Array.from({ length: 256 }, (_, value) => value)],
  ["a line break at the end", bytes("{}\r\n")],
  ["a mebibyte", new Uint8Array(2 ** 20).fill(0x20)],
  ["a part of a buffer", bytes("xx{}xx").subarray(2, 4)],
];
const SECRETS = [
  newEndpointSecret(randomBytes),
  "whsec_c2VjcmV0",
  "short",
  "ключ mit ümlaut",
  "k".repeat(200),
];

Deno.test({
  ...needs(["openssl"], "signatures agree with openssl"),
  async fn() {
    const folder = await Deno.makeTempDir({ prefix: "weir_" });
    try {
      const path = join(folder, "body");
      for (const [name, body] of BODIES) {
        await Deno.writeFile(path, body);
        for (const secret of SECRETS) {
          const args = ["dgst", "-sha256", "-hmac", secret, path];
          await using openssl = new ChildProcess(requireTool("openssl"), { args });
          assertEquals((await openssl.exited).code, 0);
          const hex = openssl.stdoutLines.join("").split("= ").at(-1);
          assertEquals([name, await signature(secret, body)], [name, `sha256=${hex}`]);
        }
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

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
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
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
      standardWebhooksHeaders({ id: "a", timestampSeconds: 1, body: bytes("{}"), secret })
    );
    assertEquals(
      [error.name, error.message],
      ["TypeError", 'Cannot sign with a secret: "whsec_" and base64 after it would be right'],
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
