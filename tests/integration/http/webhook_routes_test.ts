import { administratorWith } from "../../harness/administrators.ts";
import { assertEquals } from "@std/assert";
import { createRouter } from "../../../src/http/router.ts";
import {
  administrationRoute,
  eventRoute,
  triggerRoute,
  type WebhookRouteOptions,
} from "../../../src/http/webhook_routes.ts";
import {
  type CallContent,
  CONTINUE,
  type EventCall,
  type SignedTriggerCall,
  type TriggerCall,
  type WebhookAnswer,
  type WebhookCalls,
} from "../../../src/webhooks/api/calls.ts";
import { ServedHttp, wholeJson } from "../../harness/http_fixture.ts";

const TOKEN = "the-administration-token-of-this-test";
const TRIGGER = "/api/v1/workflows/triggers/order-intake";
/** SHA-256 of `key`. */
const KEY_HASH = "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683";
const MAX_BYTES = 100;
const OK: WebhookAnswer = { status: 202, headers: { "content-type": "application/json" }, body: '{"a":1}' };
const REFUSED: WebhookAnswer = {
  status: 404,
  headers: { "content-type": "application/problem+json" },
  body: '{"code":"not_found"}',
  code: "not_found",
};

/** Lets in who shows `key`, and keeps what it is asked. */
class CallsDouble implements WebhookCalls {
  readonly asked: unknown[] = [];

  acceptTrigger({ requestId: _, keyHash, ...call }: TriggerCall) {
    this.asked.push(["trigger", keyHash === KEY_HASH, call]);
    return Promise.resolve(keyHash === KEY_HASH ? answerOf(call) : REFUSED);
  }
  acceptSignedTrigger({ requestId: _, name, body }: SignedTriggerCall) {
    this.asked.push(["signed", name, new TextDecoder().decode(body)]);
    return Promise.resolve(OK);
  }
  acceptEvent({ requestId: _, keyHash, ...call }: EventCall) {
    this.asked.push(["event", keyHash === undefined ? "admin" : keyHash === KEY_HASH, call]);
    const isKnown = keyHash === undefined || keyHash === KEY_HASH;
    return Promise.resolve(isKnown ? answerOf(call) : { ...REFUSED, status: 401, code: "unauthorized" });
  }
  administer({ requestId: _, ...call }: { requestId: string }) {
    this.asked.push(["administer", call]);
    return Promise.resolve({ status: 204, headers: {}, body: "" });
  }
}

function answerOf({ body, refusal = CONTINUE }: CallContent): WebhookAnswer {
  return body === undefined ? refusal : OK;
}

function serve(calls: CallsDouble, options: Partial<WebhookRouteOptions> = {}): ServedHttp {
  return new ServedHttp(({ log, clock }) => {
    const given = {
      calls,
      maxBodyBytes: MAX_BYTES,
      administrators: administratorWith(TOKEN),
      clock,
      logger: log,
      ...options,
    };
    const routes = [
      triggerRoute(given),
      eventRoute(given, { readable: true, postable: true }),
      administrationRoute(given),
    ];
    return createRouter(routes, { logger: log, clock, newRequestId: () => "made" });
  });
}

Deno.test("webhook routes: a body is refused by its announced length, before it is read", async () => {
  await using served = serve(new CallsDouble());
  using connection = await served.dial();
  await connection.write(
    `POST ${TRIGGER} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer key\r\ncontent-type: application/json\r\n` +
      "content-length: 1000000\r\n\r\n",
  );
  const answer = await connection.read(wholeJson);
  assertEquals([answer.split("\r\n")[0], answer.includes('"code":"too_large"')], [
    "HTTP/1.1 413 Content Too Large",
    true,
  ]);
});

Deno.test("webhook routes: a signed call is read in parts and passed on whole, whatever its length is", async () => {
  const calls = new CallsDouble();
  await using served = serve(calls);
  const head = `POST ${TRIGGER} HTTP/1.1\r\nhost: a\r\n`;
  const bodies = [
    ["content-length: 6\r\n\r\n", ["abc", "def"]],
    ["content-length: 6\r\nexpect: 100-continue\r\n\r\n", ["abc", "def"]],
    ["transfer-encoding: chunked\r\n\r\n", ["3\r\nabc\r\n", "3\r\ndef\r\n0\r\n\r\n"]],
  ] as const;
  for (const [rest, parts] of bodies) {
    using connection = await served.dial();
    await connection.write(`${head}${rest}`);
    for (const part of parts) await connection.write(part);
    const answer = await connection.read(wholeJson);
    assertEquals(answer.includes("202 Accepted"), true, rest);
  }
  assertEquals(calls.asked, Array(3).fill(["signed", "order-intake", "abcdef"]));
});
