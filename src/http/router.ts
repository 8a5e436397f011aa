import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { ThrottledLog } from "../telemetry/throttled_log.ts";
import { FailedTokens } from "./failed_tokens.ts";
import { problemResponse, type Refusal, REFUSALS } from "./problem.ts";
import { randomRequestId, REQUEST_ID_HEADER, requestIdOf } from "./request_id.ts";

/** What a handler is given. */
export interface Call {
  readonly request: Request;
  readonly url: URL;
  readonly requestId: string;
  /** Aborted when the listener is closed and has waited long enough. */
  readonly closing: AbortSignal;
  /** The address of the client. */
  readonly peer: string;
  /** Logs a refusal and makes the answer. */
  refuse(refusal: Refusal): Response;
}

/** Answers one call. What it throws becomes a 500. */
export type CallHandler = (call: Call) => Response | Promise<Response>;

/**
 * Answers one request of the client at the address `peer`, and never throws; `closing` is aborted when the listener
 * gives up waiting.
 */
export type HttpHandler = (request: Request, closing: AbortSignal, peer: string) => Promise<Response>;

/** One path and what answers there. */
export interface Route {
  /** An exact path; with `*` as its last character, every path that begins with the text before it. */
  readonly path: string;
  /** Empty where the handler itself says which methods it wants. */
  readonly methods: readonly string[];
  readonly handle: CallHandler;
}

/** How a router works beside its routes. */
export interface RouterOptions {
  readonly logger: Logger;
  readonly clock: Clock;
  /** Makes the id of a request that brings none; a random UUID when absent. */
  readonly newRequestId?: () => string;
}

const MAX_LOGGED_PATH = 200;
/** The refusal of a request whose host and path make no URL. */
export const BAD_TARGET: Refusal = {
  kind: "bad_target",
  field: "host",
  reason: "the host and the path make no URL",
};
const UNKNOWN_PATH: Refusal = { kind: "not_found", reason: "nothing is served at this path" };

/**
 * A handler that finds the route of a request: an exact path first, then the longest prefix. A path without
 * a route is 404 in plain text. Repeated wrong tokens are answered late. Throws when two routes have one path.
 */
export function createRouter(routes: readonly Route[], options: RouterOptions): HttpHandler {
  const find = routeFinder(routes);
  const log = new ThrottledLog(options.logger, { clock: options.clock });
  const newRequestId = options.newRequestId ?? randomRequestId;
  const failedTokens = new FailedTokens(options.clock);
  return async (request, closing, peer) => {
    const requestId = requestIdOf(request.headers, newRequestId);
    const refuse = (refusal: Refusal) => {
      logRefusal(log, { request, requestId, refusal });
      return problemResponse(refusal, requestId);
    };
    const response = await answer().catch((error: unknown) => {
      log.error("internal", "HTTP request failed", { ...factsOf(request, requestId), error });
      return problemResponse({ kind: "internal", reason: "internal error" }, requestId);
    });
    response.headers.set(REQUEST_ID_HEADER, requestId);
    const isWrongToken = response.status === 401 && request.headers.has("authorization");
    if (isWrongToken) await failedTokens.delay(peer, closing);
    return response;

    async function answer(): Promise<Response> {
      const url = urlOf(request);
      if (url === undefined) return refuse(BAD_TARGET);
      const route = find(url.pathname);
      if (route === undefined) {
        logRefusal(log, { request, requestId, refusal: UNKNOWN_PATH });
        return pageNotFound();
      }
      const { methods } = route;
      if (methods.length > 0 && !methods.includes(request.method)) return refuse(wrongMethod(methods));
      return await route.handle({ request, url, requestId, closing, peer, refuse });
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

/** Undefined for a target that makes no URL, such as one with a space in the host. */
function urlOf(request: Request): URL | undefined {
  try {
    return new URL(request.url);
  } catch {
    return undefined;
  }
}

/** The answer that callers of the best-known implementation expect. */
function pageNotFound(): Response {
  const headers = { "content-type": "text/plain; charset=utf-8" };
  return new Response("404 page not found\n", { status: REFUSALS.not_found, headers });
}

function wrongMethod(methods: readonly string[]): Refusal {
  const allow = methods.join(", ");
  return { kind: "method_not_allowed", reason: `the method must be one of ${allow}`, headers: { allow } };
}

function logRefusal(
  log: ThrottledLog,
  { request, requestId, refusal }: { request: Request; requestId: string; refusal: Refusal },
): void {
  const { kind, reason, field } = refusal;
  const place = field === undefined ? {} : { field };
  const facts = { kind, status: REFUSALS[kind], ...place, reason, ...factsOf(request, requestId) };
  log.warning(kind, "HTTP request refused", facts);
}

function factsOf(request: Request, requestId: string): Readonly<Record<string, unknown>> {
  const path = urlOf(request)?.pathname.slice(0, MAX_LOGGED_PATH);
  return { method: request.method, ...(path === undefined ? {} : { path }), requestId };
}
