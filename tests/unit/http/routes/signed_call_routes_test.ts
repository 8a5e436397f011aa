import { assertEquals } from "#assert";
import type { WebhookAnswer } from "../../../../src/webhooks/api/calls.ts";
import { HandledHttp } from "../../../harness/http_fixture.ts";
import { until } from "../../../harness/until.ts";
import {
  AUTH,
  CallsDouble,
  JSON_TYPE,
  OK,
  TRIGGER,
  webhookHandler,
} from "../../../harness/webhook_routes.ts";

Deno.test("webhook routes: a signed call is passed on with its raw body and its headers", async () => {
  const calls = new CallsDouble();
  const results: number[] = [];
  const served = new HandledHttp(
    webhookHandler(calls, { onTrigger: ({ status }) => void results.push(status) }),
  );
  const headers = [["x-signature", "a"], ["x-signature", "b"]] as [string, string][];
  for (const body of ["signed", "\ufeffother"]) {
    await (await served.fetch(`${TRIGGER}?a=b`, { method: "POST", headers, body })).body?.cancel();
  }
  assertEquals(calls.asked, [
    ["signed", { name: "order-intake", signature: "a, b", body: "signed" }],
    ["signed", { name: "order-intake", signature: "a, b", body: "\ufeffother" }],
  ]);
  assertEquals(results, [202, 401]);
});

Deno.test("webhook routes: bodies that are not verified yet are held up to a bound, which others do not share", async () => {
  const calls = new CallsDouble();
  const held: PromiseWithResolvers<WebhookAnswer>[] = [];
  calls.acceptSignedTrigger = () => {
    const one = Promise.withResolvers<WebhookAnswer>();
    held.push(one);
    return one.promise;
  };
  const maxBodyBytes = 16_777_216;
  const served = new HandledHttp(webhookHandler(calls, { maxBodyBytes }));
  const post = (body: Uint8Array<ArrayBuffer>, headers = {}) =>
    served.fetch(TRIGGER, { method: "POST", headers, body });
  const large = new Uint8Array(maxBodyBytes);
  const waiting = Array.from({ length: 4 }, () => post(large));
  await until("four bodies are held", () => held.length === 4);
  const refused = await post(new Uint8Array(1));
  const problem = await refused.json();
  assertEquals([refused.status, refused.headers.get("retry-after"), problem.code], [
    503,
    "1",
    "webhooks_unavailable",
  ]);
  const keyed = { ...AUTH, ...JSON_TYPE, "content-length": "2" };
  const accepted = await post(new TextEncoder().encode("{}"), keyed);
  await accepted.body?.cancel();
  assertEquals(accepted.status, 202);
  held[0]?.resolve(OK);
  await (await waiting[0])?.body?.cancel();
  const next = post(large);
  await until("the next body is held", () => held.length === 5);
  for (const one of held) one.resolve(OK);
  for (const one of [...waiting.slice(1), next]) await (await one).body?.cancel();
});
