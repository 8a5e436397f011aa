import { administratorWith } from "./administrators.ts";
import type { Clock } from "../../src/base/clock.ts";
import type { Logger } from "../../src/base/log.ts";
import { createRouter, type HttpHandler } from "../../src/http/server/router.ts";
import {
  administrationRoute,
  eventRoute,
  triggerRoute,
  type WebhookRouteOptions,
} from "../../src/http/routes/webhook_routes.ts";
import {
  type CallContent,
  CONTINUE,
  type EventCall,
  type SignedTriggerCall,
  type TriggerCall,
  type TriggerCheck,
  type WebhookAnswer,
  type WebhookCalls,
} from "../../src/webhooks/api/calls.ts";
import { problemAnswer, UNSIGNED, wrongMethod } from "../../src/webhooks/api/problem.ts";

/** The token of the administration. */
export const TOKEN = "the-administration-token-of-this-test";
/** The path of a trigger. */
export const TRIGGER = "/api/v1/workflows/triggers/order-intake";
/** Path of events. */
export const EVENTS = "/api/v1/events";
/** SHA-256 of `key`. */
const KEY_HASH = "2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683";
/** The largest body. */
export const MAX_BYTES = 100;
/** The answer to a caller who is let in. */
export const OK: WebhookAnswer = {
  status: 202,
  headers: { "content-type": "application/json" },
  body: '{"a":1}',
};
const REFUSED: WebhookAnswer = {
  status: 404,
  headers: { "content-type": "application/problem+json" },
  body: '{"code":"not_found"}',
  code: "not_found",
};

/** Lets in who shows `key`, and keeps what it is asked. */
export class CallsDouble implements WebhookCalls {
  readonly asked: unknown[] = [];
  /** The headers of the last call of a trigger. */
  headers: TriggerCall["headers"];

  acceptTrigger({ requestId: _, keyHash, headers, ...call }: TriggerCall) {
    this.headers = headers;
    this.asked.push(["trigger", keyHash === KEY_HASH, call]);
    return Promise.resolve(keyHash === KEY_HASH ? answerOf(call) : REFUSED);
  }
  /** Lets in whose body is `signed` or `abcdef`. */
  acceptSignedTrigger({ requestId, name, headers, body }: SignedTriggerCall) {
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
    this.asked.push(["signed", { name, signature: new Map(headers).get("x-signature"), body: text }]);
    return Promise.resolve(["signed", "abcdef"].includes(text) ? OK : problemAnswer(UNSIGNED, requestId));
  }
  checkTrigger({ requestId, ...call }: TriggerCheck) {
    this.asked.push(["check", call]);
    return Promise.resolve(problemAnswer(wrongMethod(["POST"]), requestId));
  }
  acceptEvent({ requestId: _, keyHash, administrator, ...call }: EventCall) {
    this.asked.push(["event", keyHash === undefined ? administrator : keyHash === KEY_HASH, call]);
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

/** The routes in front of a double. */
export function webhookHandler(
  calls: CallsDouble,
  options: Partial<WebhookRouteOptions> = {},
): (served: { log: Logger; clock: Clock }) => HttpHandler {
  return ({ log, clock }) => {
    const administrators = administratorWith(TOKEN);
    const given = { calls, maxBodyBytes: MAX_BYTES, administrators, clock, logger: log, ...options };
    const routes = [
      triggerRoute(given),
      eventRoute(given, { readable: true, postable: true }),
      administrationRoute(given),
    ];
    return createRouter(routes, { logger: log, clock, newRequestId: () => "made" });
  };
}

/** Shows the key that is let in. */
export const AUTH = { authorization: "Bearer key" };
/** The media type. */
export const JSON_TYPE = { "content-type": "application/json" };
