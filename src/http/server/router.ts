import type { Clock } from "../../base/clock.ts";
import type { LogFields, Logger } from "../../base/log.ts";
import { ThrottledLog } from "../../base/throttled_log.ts";
import type { WebhookAnswer } from "../../webhooks/api/calls.ts";
import { FailedTokens } from "./failed_tokens.ts";
import { problemResponse, type Refusal, REFUSALS } from "./problem.ts";

/** A call as its handler gets it. */
export interface Call {
  readonly request: Request;
  readonly url: URL;
  readonly requestId: string;
  /** Aborted when the listener is closed and its grace is over. */
  readonly closing: AbortSignal;
  /** The address of the client. */
  readonly peer: string;
  /** Logs a refusal and makes its response. */
  refuse(refusal: Refusal): Response;
  /** The response for a finished answer, which is logged if it is a refusal. */
  send(answer: WebhookAnswer): Response;
}

/** Handles one call. An error becomes a 500. */
export type CallHandler = (call: Call) => Response | Promise<Response>;

/**
 * Handles one request of the client at `peer`; never throws. `closing` is aborted when the grace of the listener is
 * over.
 */
export type HttpHandler = (request: Request, closing: AbortSignal, peer: string) => Promise<Response>;

/** A path and its handler. */
export interface Route {
  /** An exact path, or a prefix that ends with `*`. */
  readonly path: string;
  /** Empty where the handler checks the method itself. */
  readonly methods: readonly string[];
  readonly handle: CallHandler;
}

/** Parts of a router in addition to its routes. */
export interface RouterOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Further fields of log lines about a request. */
  readonly logFields?: (request: Request) => LogFields;
  /** Creates the id of a request that has none; a random UUID when absent. */
  readonly newRequestId?: () => string;
}

/** The header that carries the id of a request, both ways. */
export const REQUEST_ID_HEADER = "x-request-id";
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;
const MAX_LOGGED_PATH = 200;
const UNKNOWN_PATH: Refusal = { kind: "not_found", reason: "nothing is served at this path" };

/** The id that the caller sent, if it is 1 to 128 visible ASCII characters; else one that `create` creates. */
export function requestIdOf(headers: Headers, create = randomRequestId): string {
  const sent = headers.get(REQUEST_ID_HEADER);
  return sent !== null && REQUEST_ID.test(sent) ? sent : create();
}

/** A random UUID. */
function randomRequestId(): string {
  return crypto.randomUUID();
}

/**
 * A handler that finds the route of a request: an exact path first, then the longest prefix. An unknown path is 404 in
 * plain text. Delays the responses to repeated wrong tokens. Throws when two routes have the same path.
 */
export function createRouter(routes: readonly Route[], options: RouterOptions): HttpHandler {
  const find = routeFinder(routes);
  const log = new ThrottledLog(options.logger, { clock: options.clock });
  const failedTokens = new FailedTokens(options.clock);
  return async (request, closing, peer) => {
    const requestId = requestIdOf(request.headers, options.newRequestId);
    const facts = () => ({ ...factsOf(request, requestId), ...options.logFields?.(request) });
    const refused = (kind: string, fields: LogFields) =>
      log.warning(kind, "HTTP request refused", { ...fields, ...facts() });
    const refuse = (refusal: Refusal) => {
      refused(refusal.kind, refusalFields(refusal));
      return problemResponse(refusal, requestId);
    };
    const response = await answer().catch((error: unknown) => {
      log.error("internal", "HTTP request failed", { ...facts(), error });
      return problemResponse({ kind: "internal", reason: "internal error" }, requestId);
    });
    response.headers.set(REQUEST_ID_HEADER, requestId);
    const isWrongToken = response.status === 401 && request.headers.has("authorization");
    if (isWrongToken) await failedTokens.delay(peer, closing);
    return response;

    async function answer(): Promise<Response> {
      const url = new URL(request.url);
      const route = find(url.pathname);
      if (route === undefined) {
        refused(UNKNOWN_PATH.kind, refusalFields(UNKNOWN_PATH));
        return pageNotFound();
      }
      const { methods, path } = route;
      if (methods.length > 0 && !methods.includes(request.method)) return refuse(wrongMethod(methods));
      const send = ({ status, headers, body, code }: WebhookAnswer) => {
        if (code !== undefined) refused(`${path} ${code}`, { code, status });
        return new Response(body === "" ? null : body, { status, headers: { ...headers } });
      };
      return await route.handle({ request, url, requestId, closing, peer, refuse, send });
    }
  };
}

function routeFinder(routes: readonly Route[]): (path: string) => Route | undefined {
  const exact = new Map<string, Route>();
  const prefixes = new Map<string, Route>();
  for (const route of routes) {
    const isPrefix = route.path.endsWith("*");
    const table = isPrefix ? prefixes : exact;
    const path = isPrefix ? route.path.slice(0, -1) : route.path;
    if (table.has(path)) throw new Error(`Cannot route "${route.path}": the path is already taken`);
    table.set(path, route);
  }
  const longestFirst = [...prefixes].sort(([a], [b]) => b.length - a.length);
  return (path) => exact.get(path) ?? longestFirst.find(([prefix]) => path.startsWith(prefix))?.[1];
}

/** The response of envoyproxy/ratelimit. */
function pageNotFound(): Response {
  const headers = { "content-type": "text/plain; charset=utf-8" };
  return new Response("404 page not found\n", { status: REFUSALS.not_found, headers });
}

function wrongMethod(methods: readonly string[]): Refusal {
  const allow = methods.join(", ");
  return { kind: "method_not_allowed", reason: `the method must be one of ${allow}`, headers: { allow } };
}

function refusalFields({ kind, reason, field }: Refusal): LogFields {
  return { kind, status: REFUSALS[kind], ...(field === undefined ? {} : { field }), reason };
}

function factsOf(request: Request, requestId: string): LogFields {
  const path = URL.parse(request.url)?.pathname.slice(0, MAX_LOGGED_PATH);
  return { method: request.method, ...(path === undefined ? {} : { path }), requestId };
}
