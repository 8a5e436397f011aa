import type { Clock } from "../../base/clock.ts";
import { isJsonType } from "../../base/body_text.ts";
import type { WebhookAnswer } from "../../webhooks/api/calls.ts";
import type { Administrator } from "../../webhooks/api/administrator.ts";
import { problemAnswer, UNAUTHORIZED, type WebhookProblem, WRONG_TYPE } from "../../webhooks/api/problem.ts";
import type { Administrators } from "./administrators.ts";
import { bearerTokenOf } from "./bearer_token.ts";
import { readBody, readBodyBytes, type ReadBodyOptions } from "../server/body.ts";
import { singleHeader } from "../server/client_request.ts";
import { apiProblem, type Refusal } from "../server/problem.ts";
import { BODY_TIMEOUT_MS } from "./rate_limit_route.ts";
import type { Call, Route } from "../server/router.ts";
import type { HoldBytes } from "./unverified_bodies.ts";

/** The guards and bounds of calls of the administration. */
export interface ApiOptions {
  /** Without any, every path is 404. */
  readonly administrators: Administrators;
  readonly maxBodyBytes: number;
  readonly clock: Clock;
  /** Decodes UTF-8; when absent, a body that is not UTF-8 is refused. */
  readonly decode?: ((bytes: Uint8Array) => string) | undefined;
}

/** The problem of an unknown path. */
export const NOT_FOUND: WebhookProblem = {
  code: "not_found",
  detail: "Cannot find this path",
};
/** A route of `/api/v1`, whose refusals are problems with a stable `code`. */
export function apiRoute(
  path: string,
  answer: (call: Call) => WebhookAnswer | Promise<WebhookAnswer>,
): Route {
  return { path, methods: [], handle: async (call) => call.send(await answer(call)) };
}

/** The answer that refuses a call. */
export function refused({ requestId }: Call, problem: WebhookProblem): WebhookAnswer {
  return problemAnswer(problem, requestId);
}

/** A call of the administration with a right token; the body is empty for none. */
interface AuthenticatedCall {
  readonly administrator: Administrator;
  readonly body: string;
}

/** The caller and the body of a call of the administration; a problem where the token, the body or its type is wrong. */
export async function authenticatedCall(
  { request }: Call,
  options: ApiOptions,
): Promise<AuthenticatedCall | WebhookProblem> {
  const administrator = administratorOf(request, options);
  if ("code" in administrator) return administrator;
  // Only reading tells whether there is a body.
  const body = await readApiBody(request, options);
  if (typeof body !== "string") return apiProblem(body);
  return body === "" || isJson(request) ? { administrator, body } : WRONG_TYPE;
}

/** Who makes a call of the administration; a problem where the token is wrong. */
export function administratorOf(
  request: Request,
  { administrators }: Pick<ApiOptions, "administrators">,
): Administrator | WebhookProblem {
  if (!administrators.isEnabled) return NOT_FOUND;
  const token = bearerTokenOf(request);
  return (token === undefined ? undefined : administrators.authenticate(token)) ?? UNAUTHORIZED;
}

/** Reads a body within the bounds of the API. */
export function readApiBody(request: Request, options: ApiOptions): Promise<string | Refusal> {
  return readBody(request, boundsOf(options));
}

/** Reads the bytes of a body within the bounds of the API, as far as they may be held. */
export function readApiBytes(
  request: Request,
  options: ApiOptions,
  hold: HoldBytes,
): Promise<Uint8Array | Refusal> {
  return readBodyBytes(request, { ...boundsOf(options), hold });
}

function boundsOf({ maxBodyBytes, clock, decode }: ApiOptions): ReadBodyOptions {
  return { maxBytes: maxBodyBytes, timeoutMs: BODY_TIMEOUT_MS, clock, decode };
}

/** True when the content type of a request is JSON. */
export function isJson(request: Request): boolean {
  return isJsonType(singleHeader(request, "content-type").value);
}
