import { assertEquals } from "#assert";
import { createHmac } from "node:crypto";
import { inputOfBody, isCredentialHeader } from "../../../../src/webhooks/api/call_input.ts";
import { findExecution } from "../../../../src/webhooks/store/operations/executions.ts";
import { seen, sha256, WebhookBed } from "../../../harness/webhook_service_fixture.ts";
import { codeOf } from "./refusal_fixture.ts";

const ALL = ["json", "form", "text", "array"];
const FORM = "application/x-www-form-urlencoded";

Deno.test("bodies: the input of each kind", () => {
  const table: [...Parameters<typeof inputOfBody>, string][] = [
    ['{"a": 1.10}', "json", ALL, '{"a": 1.10}'],
    [" [1.10, {}]", "json", ALL, '{"body": [1.10, {}]}'],
    ["[1]", "json", ["json"], "[1]"],
    ['[1],"a":2', "json", ALL, '[1],"a":2'],
    ["a=1&b=x+y&a=%C3%A9&a", "form", ALL, '{"a":["1","é",""],"b":"x y"}'],
    ["__proto__=1&constructor=2&0=3", "form", ALL, '{"__proto__":"1","constructor":"2","0":"3"}'],
    ["%=%zz&=1", "form", ALL, '{"%":"%zz","":"1"}'],
    ["", "form", ALL, "{}"],
    ['say "hi"\n\0', "text", ALL, String.raw`{"body":"say \"hi\"\n\u0000"}`],
    ["", "text", ALL, '{"body":""}'],
  ];
  for (const [body, kind, accept, input] of table) assertEquals(inputOfBody(body, kind, accept), input, body);
});

Deno.test("headers: credentials are known by name, and signatures by the trigger", () => {
  const refused =
    "Authorization Proxy-Authorization cookie Set-Cookie X-Hub-Signature-256 stripe-signature " +
    "X-Gitlab-Token X-Shopify-Hmac-Sha256 x-api-key X-Auth webhook-signature";
  for (const name of refused.split(" ")) assertEquals(isCredentialHeader(name, undefined), true, name);
  for (const name of "X-GitHub-Event X-Tokenizer User-Agent Idempotency-Key X-Design".split(" ")) {
    assertEquals(isCredentialHeader(name, undefined), false, name);
  }
  const verify = { scheme: "hmac-sha256", header: "x-mine" } as const;
  assertEquals(["X-Mine", "x-other"].map((name) => isCredentialHeader(name, verify)), [true, false]);
});

Deno.test("bodies: a call with the key has a type that its trigger accepts", async () => {
  await using bed = await WebhookBed.open({ parts: { maxBodyBytes: 40 } });
  const { id, key } = await bed.trigger({ accept: ALL, answer: 200, passHeaders: ["X-Topic"] });
  const call = async (contentType: string, body: string) => {
    const keyHash = sha256(key);
    const headers = [["x-topic", "orders"], ["x-else", "no"]] as const;
    const caller = { requestId: bed.requestId(), name: "order-intake", keyHash };
    const answer = seen(await bed.service.acceptTrigger({ ...caller, headers, contentType, body }));
    const found = await bed.store.read(findExecution, answer.body.executionId ?? "");
    return found === undefined
      ? codeOf(answer)
      : [answer.status, found.execution.input, found.execution.headers];
  };
  const passed = '{"x-topic":"orders"}';
  assertEquals(await call("text/plain; charset=utf-8", "hi"), [200, '{"body":"hi"}', passed]);
  assertEquals(await call(FORM, "a=1&a=2"), [200, '{"a":["1","2"]}', passed]);
  assertEquals(await call("application/json", "[1]"), [200, '{"body":[1]}', passed]);
  assertEquals(await call("application/json", "1"), [422, "not_an_object"]);
  assertEquals(await call("text/plain", '"'.repeat(20)), [413, "too_large"]);
  assertEquals(await call("image/png", "x"), [415, "unsupported_media_type"]);
  await bed.call("PATCH", `/triggers/${id}`, { accept: ["form"], answer: null, passHeaders: null });
  assertEquals(await call(FORM, "a=1"), [202, '{"a":"1"}', undefined]);
  assertEquals(await call("application/json", "{}"), [415, "unsupported_media_type"]);
  await bed.call("PATCH", `/triggers/${id}`, { accept: null });
  assertEquals(await call(FORM, "a=1"), [415, "unsupported_media_type"]);
  assertEquals(await call("application/json", "{}"), [202, "{}", undefined]);
});

Deno.test("bodies: the raw bytes of a form are signed, and its headers are passed, also when it runs again", async () => {
  await using bed = await WebhookBed.open();
  const secret = "a secret of this test";
  const { id } = await bed.trigger({
    accept: ["form"],
    answer: 201,
    passHeaders: ["X-Topic"],
    when: { "input.a": ["1"] },
    verify: { scheme: "hmac-sha256", header: "X-Mine", secret },
  });
  const body = "a=1&b=%20";
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const headers = { "content-type": FORM, "x-mine": signature, "x-topic": "a", "idempotency-key": "k" };
  const first = await bed.startSigned(headers, body);
  assertEquals(codeOf(first), [201, "executionId"]);
  const replay = await bed.startSigned(headers, body);
  assertEquals([replay.status, replay.body, replay.headers["idempotency-replayed"]], [
    201,
    first.body,
    "true",
  ]);
  const shown = (await bed.call("GET", `/executions/${first.body.executionId}`)).body;
  assertEquals([shown["input"], shown["headers"]], [{ a: "1", b: " " }, { "x-topic": "a" }]);
  assertEquals((await bed.startSigned({ ...headers, "x-mine": "0".repeat(64) }, body)).status, 401);
  assertEquals(codeOf(await bed.startSigned({ ...headers, "content-type": "application/json" }, body)), [
    ...[415, "unsupported_media_type"],
  ]);
  const edit = async (fields: object) => {
    const { status, body } = await bed.call("PATCH", `/triggers/${id}`, fields);
    return [status, body.field];
  };
  assertEquals(await edit({ passHeaders: ["x-topic", "x-mine"] }), [422, "passHeaders[1]"]);
  assertEquals(await edit({ passHeaders: ["Authorization"] }), [422, "passHeaders[0]"]);
  assertEquals(await edit({ passHeaders: [] }), [422, "passHeaders"]);
  assertEquals(await edit({ passHeaders: ["a b"] }), [422, "passHeaders[0]"]);
  assertEquals(await edit({ accept: ["xml"] }), [422, "accept[0]"]);
  assertEquals(await edit({ answer: 204 }), [422, "answer"]);
  assertEquals(await edit({ verify: { scheme: "hmac-sha256", header: "X-Topic" } }), [422, "passHeaders[0]"]);
});
