import { assertEquals } from "#assert";
import { verify } from "../../../src/webhooks/receiver.ts";
import { signature } from "../../../src/webhooks/model/signature.ts";
import { RECEIVER_CASES } from "../../harness/receiver_cases.ts";

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
