import { assertEquals } from "@std/assert";
import { join } from "node:path";
import { verify } from "../../../src/webhooks/receiver.ts";
import { signature } from "../../../src/webhooks/signature.ts";
import { RECEIVER_CASES } from "../../harness/receiver_cases.ts";
import { importsOf, scanSource } from "../../harness/source_scan.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

for (const { name, options, expected } of RECEIVER_CASES) {
  Deno.test(`a receiver checks: ${name}`, async () => assertEquals(await verify(options), expected));
}

Deno.test("without a clock that of the machine counts", async () => {
  const secrets = ["whsec_c2VjcmV0"];
  const checked = async (ageSeconds: number) => {
    const headers = {
      "x-svc-timestamp": `${Math.floor(Date.now() / 1_000) - ageSeconds}`,
      "x-svc-signature": await signature("whsec_c2VjcmV0", new Uint8Array()),
    };
    return (await verify({ body: "", headers, secrets })).ok;
  };
  assertEquals([await checked(0), await checked(290), await checked(-290)], [true, true, true]);
  assertEquals([await checked(310), await checked(-310)], [false, false]);
});

Deno.test("the kit imports the signature and types, and these import nothing", async () => {
  const seen: Record<string, string[]> = {};
  for (const name of ["receiver.ts", "receiver_types.ts", "signature.ts"]) {
    const path = `src/webhooks/${name}`;
    seen[name] = importsOf(scanSource(path, await Deno.readTextFile(join(ROOT, path))));
  }
  assertEquals(seen, {
    "receiver.ts": ["./receiver_types.ts", "./signature.ts", "./receiver_types.ts"],
    "receiver_types.ts": [],
    "signature.ts": [],
  });
});
