import { assertEquals, assertThrows } from "@std/assert";
import { randomBytes } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { newEndpointSecret } from "../../../../src/webhooks/model/keys.ts";
import { standardWebhooksHeaders } from "../../../../src/webhooks/model/signature.ts";

const BODY = '{"event":"workflow.execution.completed","data":{"status":"succeeded","ü":"😀"}}';
const ID = "3b241101-e2bb-4255-8caf-4136c566a962";

Deno.test("Standard Webhooks headers are verified by the library of those who wrote the standard", async () => {
  // The library has no clock but that of the machine.
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  for (let round = 0; round < 20; round++) {
    const secret = newEndpointSecret(randomBytes);
    const headers = await standardWebhooksHeaders({
      ...{ id: ID, timestampSeconds, body: new TextEncoder().encode(BODY), secret },
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
