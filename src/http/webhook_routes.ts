import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { ThrottledLog } from "../telemetry/throttled_log.ts";
import { idempotencyKeyProblem, type WebhookAnswer, type WebhookCalls } from "../webhooks/api/calls.ts";
import { problemAnswer, type WebhookProblem } from "../webhooks/api/problem.ts";
import { bearerTokenOf, isSameToken, tokenHash } from "./bearer_token.ts";
import { readBody } from "./body.ts";
import { type Refusal, REFUSALS } from "./problem.ts";
import { BODY_TIMEOUT_MS } from "./rate_limit_route.ts";
import type { Call, Route } from "./router.ts";

/** What the routes work with. */
export interface WebhookRouteOptions {
  readonly calls: WebhookCalls;
  readonly maxBodyBytes: number;
  /** Token of the administration; where it is absent the whole group is not there. */
  readonly adminToken: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Told of each answer to a call of a trigger. */
  readonly onTrigger?: (answer: WebhookAnswer) => void;
}

const BASE = "/api/v1";
const TRIGGERS = `${BASE}/workflows/triggers/`;
const JSON_TYPE = /^application\/json[\t ]*(?:;.*)?$/i;
const MAX_LOGGED_PATH = 200;

/** `POST /api/v1/workflows/triggers/<name>`. */
export function triggerRoute(options: WebhookRouteOptions): Route {
  const answer = answerer(options);
  const handle = answer(async (call) => {
    const given = await callTrigger(call, options);
    options.onTrigger?.(given);
    return given;
  });
  return { path: `${TRIGGERS}*`, methods: [], handle };
}

/** The path of the triggers where they have their own address: 404. */
export function absentTriggerRoute(options: WebhookRouteOptions): Route {
  const handle = answerer(options)((call) => Promise.resolve(refused(call, NOT_FOUND)));
  return { path: `${TRIGGERS}*`, methods: [], handle };
}

/** What may be done with events. */
export interface EventMethods {
  /** By the administration. */
  readonly readable: boolean;
  /** By other systems, which report events. */
  readonly postable: boolean;
}

/** `/api/v1/events`. */
export function eventRoute(options: WebhookRouteOptions, { readable, postable }: EventMethods): Route {
  const allow = [...(readable ? ["GET"] : []), ...(postable ? ["POST"] : [])];
  const handle = answerer(options)((call) => {
    const { method } = call.request;
    if (method === "POST" && postable) return postEvent(call, options);
    if (method === "GET" && readable) return administer(call, options);
    const isAbsent = allow.length === 0 || method === "POST";
    return Promise.resolve(isAbsent ? refused(call, NOT_FOUND) : wrongMethod(call, allow.join(", ")));
  });
  return { path: `${BASE}/events`, methods: [], handle };
}

/** The whole administration but for posting events. */
export function administrationRoute(options: WebhookRouteOptions): Route {
  return {
    path: `${BASE}/*`,
    methods: [],
    handle: answerer(options)((call) => administer(call, options)),
  };
}

type Answering = (call: Call) => Promise<WebhookAnswer>;

/** Makes handlers that log what was refused. */
function answerer({ logger, clock }: WebhookRouteOptions): (answer: Answering) => Route["handle"] {
  const log = new ThrottledLog(logger, { clock });
  return (answer) => async (call) => {
    const { status, headers, body, code } = await answer(call);
    if (code !== undefined) {
      const path = call.url.pathname.slice(0, MAX_LOGGED_PATH);
      const facts = { code, status, method: call.request.method, path, requestId: call.requestId };
      log.warning(code, "HTTP request refused", facts);
    }
    return new Response(body === "" ? null : body, { status, headers: { ...headers } });
  };
}

async function callTrigger(call: Call, options: WebhookRouteOptions): Promise<WebhookAnswer> {
  const { request, requestId, url } = call;
  if (request.method !== "POST") return wrongMethod(call, "POST");
  const token = bearerTokenOf(request);
  if (token === undefined) return refused(call, UNAUTHORIZED);
  const caller = { requestId, name: url.pathname.slice(TRIGGERS.length), keyHash: tokenHash(token) };
  const refusal = await options.calls.admitTrigger(caller);
  if (refusal !== undefined) return refusal;
  const content = await contentOf(call, options);
  return "status" in content ? content : await options.calls.acceptTrigger({ ...caller, ...content });
}

async function postEvent(call: Call, options: WebhookRouteOptions): Promise<WebhookAnswer> {
  const { request, requestId } = call;
  const { calls, adminToken } = options;
  const token = bearerTokenOf(request);
  if (token === undefined) return refused(call, adminToken === undefined ? NOT_FOUND : UNAUTHORIZED);
  const isAdmin = adminToken !== undefined && isSameToken(token, adminToken);
  const caller = isAdmin ? { requestId } : { requestId, keyHash: tokenHash(token) };
  const refusal = await calls.admitEvent(caller);
  if (refusal !== undefined) {
    // Without a token of its own the administration is not there: only who has an event key sees this path.
    return refusal.status === 401 && adminToken === undefined ? refused(call, NOT_FOUND) : refusal;
  }
  const content = await contentOf(call, options);
  return "status" in content ? content : await calls.acceptEvent({ ...caller, ...content });
}

async function administer(call: Call, options: WebhookRouteOptions): Promise<WebhookAnswer> {
  const { request, requestId, url } = call;
  const { adminToken, calls } = options;
  if (adminToken === undefined) return refused(call, NOT_FOUND);
  const token = bearerTokenOf(request);
  if (token === undefined || !isSameToken(token, adminToken)) return refused(call, UNAUTHORIZED);
  // A request without a body cannot be told from one with a body before it was read.
  const text = await bodyOf(request, options);
  if (typeof text !== "string") return refused(call, problemFor(text));
  if (text !== "" && !isJson(request)) return refused(call, WRONG_TYPE);
  const asked = {
    requestId,
    method: request.method,
    path: url.pathname.slice(BASE.length),
    query: url.search.slice(1),
  };
  return await calls.administer(text === "" ? asked : { ...asked, body: text });
}

/** The body and the key of a call, or why it is refused: by media type, size, syntax of the key, text. */
async function contentOf(
  call: Call,
  options: WebhookRouteOptions,
): Promise<WebhookAnswer | { idempotencyKey?: string; body: string }> {
  const { request } = call;
  if (!isJson(request)) return refused(call, WRONG_TYPE);
  const body = await bodyOf(request, options);
  const isCut = typeof body !== "string" && body.kind !== "malformed";
  if (isCut) return refused(call, problemFor(body));
  const idempotencyKey = request.headers.get("idempotency-key") ?? undefined;
  const problem = idempotencyKey === undefined ? undefined : idempotencyKeyProblem(idempotencyKey);
  if (problem !== undefined) return refused(call, invalidKey(problem));
  if (typeof body !== "string") return refused(call, problemFor(body));
  return idempotencyKey === undefined ? { body } : { idempotencyKey, body };
}

function bodyOf(request: Request, { maxBodyBytes, clock }: WebhookRouteOptions): Promise<string | Refusal> {
  return readBody(request, { maxBytes: maxBodyBytes, timeoutMs: BODY_TIMEOUT_MS, clock });
}

function isJson({ headers }: Request): boolean {
  return JSON_TYPE.test(headers.get("content-type") ?? "");
}

function refused({ requestId }: Call, problem: WebhookProblem): WebhookAnswer {
  return problemAnswer(problem, requestId);
}

function wrongMethod(call: Call, allow: string): WebhookAnswer {
  const detail = `Cannot answer this method: ${allow} would be right`;
  return refused(call, { status: 405, code: "method_not_allowed", detail, headers: { allow } });
}

function invalidKey(problem: string): WebhookProblem {
  return {
    status: 400,
    code: "invalid_idempotency_key",
    field: "Idempotency-Key",
    detail: `Cannot take the call: ${problem}`,
  };
}

function problemFor({ kind, reason, detail, headers }: Refusal): WebhookProblem {
  const code = kind === "malformed" ? "malformed_json" : kind;
  return { status: REFUSALS[kind], code, field: "body", detail: detail ?? reason, headers };
}

/** The same as the service answers for a key that it does not know. */
const UNAUTHORIZED: WebhookProblem = {
  status: 401,
  code: "unauthorized",
  detail: "Cannot let this call in: a bearer token that is known is wanted",
  headers: { "www-authenticate": "Bearer" },
};
const NOT_FOUND: WebhookProblem = { status: 404, code: "not_found", detail: "Cannot find this path" };
const WRONG_TYPE: WebhookProblem = {
  status: 415,
  code: "unsupported_media_type",
  field: "Content-Type",
  detail: "Cannot read the body: application/json is wanted",
};
