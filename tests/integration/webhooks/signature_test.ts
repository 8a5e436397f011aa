import { assertEquals } from "#assert";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { newEndpointSecret } from "../../../src/webhooks/model/keys.ts";
import { signature } from "../../../src/webhooks/model/signature.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { needs, requireTool } from "../../harness/tools.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

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
      const paths = BODIES.map((_, index) => join(folder, String(index)));
      for (const [index, [, body]] of BODIES.entries()) await Deno.writeFile(paths[index] ?? "", body);
      for (const secret of SECRETS) {
        const args = ["dgst", "-sha256", "-hmac", secret, ...paths];
        await using openssl = new ChildProcess(requireTool("openssl"), { args });
        assertEquals((await openssl.exited).code, 0);
        // A line for each file.
        const known = openssl.stdoutLines.map((line) => `sha256=${line.split("= ").at(-1)}`);
        const ours = await Promise.all(BODIES.map(([, body]) => signature(secret, body)));
        assertEquals(
          ours.map((text, index) => [BODIES[index]?.[0], text]),
          BODIES.map(([name], index) => [name, known[index]]),
        );
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
