import {
  type CallContent,
  CONTINUE,
  type WebhookAnswer,
  type WebhookCalls,
} from "../../webhooks/api/calls.ts";
import { bodyKindOf, isCredentialHeader } from "../../webhooks/api/call_input.ts";
import {
  idempotencyKeyRefusal,
  repeatedKeyProblem,
  roleProblem,
  UNAUTHORIZED,
  type WebhookProblem,
  WRONG_TYPE,
  wrongMethod,
} from "../../webhooks/api/problem.ts";
import {
  administratorOf,
  type ApiOptions,
  apiRoute,
  authenticatedCall,
  isJson,
  NOT_FOUND,
  readApiBody,
  readApiBytes,
  refused,
} from "./api_call.ts";
import { bearerTokenOf } from "./bearer_token.ts";
import { headerList, repeatedHeaders, singleHeader } from "../server/client_request.ts";
import { apiProblem } from "../server/problem.ts";
import type { Call, Route } from "../server/router.ts";
import { tokenHash } from "./token_digest.ts";
import { UnverifiedBodies } from "./unverified_bodies.ts";

/** Options of the routes. */
export interface WebhookRouteOptions extends ApiOptions {
  readonly calls: WebhookCalls;
  /** Called with each answer to a call of a trigger. */
  readonly onTrigger?: (answer: WebhookAnswer) => void;
}

const BASE = "/api/v1";
const SMALL_BODY_BYTES = 65_536;
/** Memory for the bodies of signed calls that are not verified yet; at least a few of the largest fit. */
const UNVERIFIED_BYTES = 67_108_864;
const MIN_UNVERIFIED_BODIES = 4;
const TRIGGERS = `${BASE}/workflows/triggers/`;

/** `POST /api/v1/workflows/triggers/<name>`. */
export function triggerRoute(options: WebhookRouteOptions): Route {
  const { maxBodyBytes } = options;
  const bodies = new UnverifiedBodies(Math.max(UNVERIFIED_BYTES, MIN_UNVERIFIED_BODIES * maxBodyBytes));
  return apiRoute(`${TRIGGERS}*`, async (call) => {
    const answer = await callTrigger(call, options, bodies);
    options.onTrigger?.(answer);
    return answer;
  });
}

/** 404 at the path of the triggers, where they have their own address. */
export function absentTriggerRoute(): Route {
  return apiRoute(`${TRIGGERS}*`, (call) => refused(call, NOT_FOUND));
}

/** The methods of `/api/v1/events`. */
interface EventMethods {
  /** By the administration. */
  readonly readable: boolean;
  /** By other systems, which report events. */
  readonly postable: boolean;
}

/** `/api/v1/events`. */
export function eventRoute(options: WebhookRouteOptions, { readable, postable }: EventMethods): Route {
  const allow = [...(readable ? ["GET"] : []), ...(postable ? ["POST"] : [])];
  return apiRoute(`${BASE}/events`, (call) => {
    const { method } = call.request;
    if (method === "POST" && postable) return postEvent(call, options);
    if (method === "GET" && readable) return administer(call, options);
    const isAbsent = allow.length === 0 || method === "POST";
    return refused(call, isAbsent ? NOT_FOUND : wrongMethod(allow));
  });
}

/** All of the administration except for posting events. */
export function administrationRoute(options: WebhookRouteOptions): Route {
  return apiRoute(`${BASE}/*`, (call) => administer(call, options));
}

async function callTrigger(
  call: Call,
  options: WebhookRouteOptions,
  bodies: UnverifiedBodies,
): Promise<WebhookAnswer> {
  const { request, requestId, url } = call;
  const { method } = request;
  const caller = { requestId, name: url.pathname.slice(TRIGGERS.length) };
  if (method === "GET" || method === "HEAD") {
    return await options.calls.checkTrigger({ ...caller, method, query: url.search.slice(1) });
  }
  if (method !== "POST") return refused(call, wrongMethod(["POST"]));
  const token = bearerTokenOf(request);
  if (token !== undefined) {
    const keyHash = tokenHash(token);
    const { value: contentType } = singleHeader(request, "content-type");
    const isOther = !isJson(request) && bodyKindOf(contentType) !== undefined;
    const type = isOther ? { contentType } : {};
    const headers = headerList(request).filter(([name]) => !isCredentialHeader(name, undefined));
    return await accept(call, { ...options, isOther }, (content) => {
      return options.calls.acceptTrigger({ ...caller, keyHash, headers, ...type, ...content });
    });
  }
  // Whether the trigger exists, and is called with signatures, must not show before the signature is known.
  return await bodies.holding(async (hold) => {
    const body = await readApiBytes(request, options, hold);
    if (!(body instanceof Uint8Array)) return refused(call, apiProblem(body));
    return await options.calls.acceptSignedTrigger({
      ...caller,
      target: `${url.pathname}${url.search}`,
      headers: headerList(request),
      repeated: repeatedHeaders(request),
      body,
      maxBodyBytes: options.maxBodyBytes,
    });
  });
}

async function postEvent(call: Call, options: WebhookRouteOptions): Promise<WebhookAnswer> {
  const { request, requestId } = call;
  const { calls } = options;
  const known = administratorOf(request, options);
  const isAdministrator = !("code" in known);
  const problem = isAdministrator ? roleProblem(known, "admin") : undefined;
  if (problem !== undefined) return refused(call, problem);
  const token = bearerTokenOf(request);
  // Without administrators this path exists only for owners of an event key.
  const unknown = isAdministrator ? UNAUTHORIZED : known;
  if (token === undefined) return refused(call, unknown);
  const caller = isAdministrator
    ? { requestId, administrator: known.name }
    : { requestId, keyHash: tokenHash(token) };
  const answer = await accept(call, options, (content) => calls.acceptEvent({ ...caller, ...content }));
  return answer.status === 401 ? refused(call, unknown) : answer;
}

async function administer(call: Call, options: WebhookRouteOptions): Promise<WebhookAnswer> {
  const known = await authenticatedCall(call, options);
  if ("code" in known) return refused(call, known);
  const { administrator, body } = known;
  const { request, requestId, url } = call;
  const { value: idempotencyKey, isRepeated } = singleHeader(request, "idempotency-key");
  if (isRepeated) return refused(call, repeatedKeyProblem("Idempotency-Key"));
  return await options.calls.administer({
    requestId,
    administrator,
    method: request.method,
    path: url.pathname.slice(BASE.length),
    query: url.search.slice(1),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(body === "" ? {} : { body }),
  });
}

/** One round trip to the service, but for a body that is or may become large: only a known caller may send it. */
async function accept(
  call: Call,
  options: WebhookRouteOptions & { readonly isOther?: boolean },
  ask: (content: CallContent) => Promise<WebhookAnswer>,
): Promise<WebhookAnswer> {
  const { headers } = call.request;
  const length = headers.get("content-length");
  // The trigger decides on the type first.
  const isSmall = options.isOther !== true && length !== null && Number(length) <= SMALL_BODY_BYTES &&
    !headers.has("content-encoding");
  if (!isSmall) {
    const answer = await ask({});
    if (answer.status !== CONTINUE.status) return answer;
  }
  const content = await contentOf(call.request, options);
  return await ask("code" in content ? { refusal: refused(call, content) } : content);
}

/** The body and the key of a call; checks media type, size, syntax of the key and text, in this order. */
async function contentOf(
  request: Request,
  options: WebhookRouteOptions & { readonly isOther?: boolean },
): Promise<WebhookProblem | CallContent> {
  if (!isJson(request) && options.isOther !== true) return WRONG_TYPE;
  const body = await readApiBody(request, options);
  const isCut = typeof body !== "string" && body.kind !== "malformed";
  if (isCut) return apiProblem(body);
  const { value: idempotencyKey, isRepeated } = singleHeader(request, "idempotency-key");
  if (isRepeated) return repeatedKeyProblem("Idempotency-Key");
  const refusal = idempotencyKeyRefusal(idempotencyKey);
  if (refusal !== undefined) return refusal.problem;
  if (typeof body !== "string") return apiProblem(body);
  return idempotencyKey === undefined ? { body } : { idempotencyKey, body };
}
