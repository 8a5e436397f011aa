import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { problemResponse } from "./problem.ts";
import { randomRequestId, REQUEST_ID_HEADER, requestIdOf } from "./request_id.ts";
import type { HttpHandler } from "./router.ts";

/** Where to listen. */
export interface ListenHttpOptions {
  readonly hostname: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** A port that is being served. */
export interface HttpListener {
  /** The bound address. */
  readonly hostname: string;
  /** The bound port, also when 0 was asked for. */
  readonly port: number;
  /**
   * Stops accepting at once and lets running requests end within `graceMs`; those still running then are
   * answered with 503. With 0 every connection is cut at once. Calling it again waits for the first call.
   */
  close(graceMs: number): Promise<void>;
}

/** How long answers that were forced at the end of the grace have to leave. */
const LAST_ANSWERS_MS = 250;

/** Serves `handler` over HTTP. The port may be shared with other processes. Throws when it cannot listen. */
export function listenHttp(handler: HttpHandler, options: ListenHttpOptions): HttpListener {
  const running = new RunningRequests(handler);
  const cut = new AbortController();
  const server = serve(running, cut.signal, options);
  const { hostname, port } = server.addr;
  let closed: Promise<void> | undefined;
  const close = async (graceMs: number) => {
    if (graceMs <= 0) {
      running.giveUp();
      cut.abort();
      return await server.finished;
    }
    // From here on `cut` must not be used: aborting a server that is shutting down ends the process.
    const shutdown = server.shutdown();
    if (await settlesWithin(shutdown, graceMs, options.clock)) return;
    running.giveUp();
    if (await settlesWithin(shutdown, LAST_ANSWERS_MS, options.clock)) return;
    // Left are peers that neither finish their request nor take their answer. They must not hold up the end.
    server.unref();
    options.logger.warning("HTTP connections left open at the end of the grace", { hostname, port });
  };
  return { hostname, port, close: (graceMs) => closed ??= close(graceMs) };
}

function serve(
  running: RunningRequests,
  signal: AbortSignal,
  { hostname, port, logger }: ListenHttpOptions,
): Deno.HttpServer<Deno.NetAddr> {
  const settings = { hostname, port, reusePort: true, signal, onListen: () => {} };
  const onError = (error: unknown) => {
    logger.error("HTTP request failed", { error });
    return problemResponse({ kind: "internal", reason: "internal error" }, randomRequestId());
  };
  try {
    return Deno.serve({ ...settings, onError }, (request) => running.answer(request));
  } catch (cause) {
    const state = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`Cannot listen on "${hostname}:${port}": ${state}`, { cause });
  }
}

/** The requests that are being answered, so that the wait for their handlers can be ended. */
class RunningRequests {
  readonly #handler: HttpHandler;
  readonly #closing = new AbortController();
  readonly #endings = new Set<() => void>();

  constructor(handler: HttpHandler) {
    this.#handler = handler;
  }

  answer(request: Request): Promise<Response> {
    return new Promise((resolve, reject) => {
      const end = () => resolve(shuttingDown(request));
      this.#endings.add(end);
      this.#handler(request, this.#closing.signal).then(resolve, reject).finally(() =>
        this.#endings.delete(end)
      );
    });
  }

  giveUp(): void {
    for (const end of this.#endings) end();
    this.#closing.abort();
  }
}

function shuttingDown(request: Request): Response {
  const requestId = requestIdOf(request.headers, randomRequestId);
  const reason = "the service is shutting down";
  const headers = { connection: "close", [REQUEST_ID_HEADER]: requestId };
  return problemResponse({ kind: "shutting_down", reason, headers }, requestId);
}

function settlesWithin(work: Promise<void>, ms: number, clock: Clock): Promise<boolean> {
  const result = Promise.withResolvers<boolean>();
  const cancelTimer = clock.after(ms, () => result.resolve(false));
  work.then(() => result.resolve(true), result.reject);
  return result.promise.finally(cancelTimer);
}
