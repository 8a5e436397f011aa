import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";
import { settledWithin } from "../base/wait.ts";
import { problemResponse } from "./problem.ts";
import { randomRequestId, REQUEST_ID_HEADER, requestIdOf } from "./request_id.ts";
import type { HttpHandler } from "./router.ts";

/** The certificate chain and its private key, as PEM texts. */
export interface HttpTls {
  readonly cert: string;
  readonly key: string;
}

/** Where to listen. */
export interface ListenHttpOptions {
  readonly hostname: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Serves HTTPS with this pair; plain HTTP when absent. */
  readonly tls?: HttpTls;
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
   * Serves on, and says with each answer that it is the last of its connection: clients leave before `close`,
   * which drops requests that have come and were not begun to be read.
   */
  drain(): void;
  /**
   * Stops accepting at once and lets running requests end within `graceMs`; those still running then are
   * answered with 503. With 0 every connection is cut at once. Calling it again waits for the first call,
   * whose grace it can shorten and never prolong.
   */
  close(graceMs: number): Promise<void>;
}

/** How long answers that were forced at the end of the grace have to leave. */
const LAST_ANSWERS_MS = 250;

/** Serves `handler` over HTTP. The port may be shared with other processes. Throws when it cannot listen. */
export function listenHttp(handler: HttpHandler, options: ListenHttpOptions): HttpListener {
  const running = new RunningRequests(handler, options.logger);
  const cut = new AbortController();
  const server = serve(running, cut.signal, options);
  const end = new ListenerEnd({ server, cut, running, logger: options.logger, clock: options.clock });
  const { hostname, port } = server.addr;
  return { hostname, port, drain: () => running.drain(), close: (graceMs) => end.within(graceMs) };
}

function serve(
  running: RunningRequests,
  signal: AbortSignal,
  { hostname, port, tls, logger }: ListenHttpOptions,
): Deno.HttpServer<Deno.NetAddr> {
  const settings = { hostname, port, reusePort: true, signal, onListen: () => {}, ...tls };
  const onError = (error: unknown) => failed(error, randomRequestId(), logger);
  try {
    return Deno.serve({ ...settings, onError }, (request) => running.answer(request));
  } catch (cause) {
    throw new Error(`Cannot listen on "${hostname}:${port}": ${errorText(cause)}`, { cause });
  }
}

/** What a listener is ended by. */
interface ListenerParts {
  readonly server: Deno.HttpServer<Deno.NetAddr>;
  /** Cuts every connection; must not be used once the server shuts down: that ends the process. */
  readonly cut: AbortController;
  readonly running: RunningRequests;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** The end of a listener, asked for once or several times. */
class ListenerEnd {
  readonly #parts: ListenerParts;
  readonly #graceOver = Promise.withResolvers<void>();
  #ended: Promise<void> | undefined;
  /** When the grace is over, by the clock's `elapsed`. */
  #deadline = Infinity;
  #cancelTimer = () => {};

  constructor(parts: ListenerParts) {
    this.#parts = parts;
  }

  within(graceMs: number): Promise<void> {
    if (this.#ended === undefined && graceMs <= 0) this.#ended = this.#cutAll();
    this.#ended ??= this.#drain().finally(() => this.#endGrace());
    this.#shorten(graceMs);
    return this.#ended;
  }

  #shorten(graceMs: number): void {
    const { clock } = this.#parts;
    const deadline = clock.elapsed() + graceMs;
    if (deadline >= this.#deadline) return;
    this.#cancelTimer();
    this.#deadline = deadline;
    if (graceMs <= 0) this.#graceOver.resolve();
    else this.#cancelTimer = clock.after(graceMs, this.#graceOver.resolve);
  }

  /** No later call sets a timer. */
  #endGrace(): void {
    this.#deadline = -Infinity;
    this.#cancelTimer();
  }

  async #cutAll(): Promise<void> {
    const { server, cut, running } = this.#parts;
    running.giveUp();
    cut.abort();
    await server.finished;
  }

  async #drain(): Promise<void> {
    const { server, running, logger, clock } = this.#parts;
    running.drain();
    const shutdown = server.shutdown();
    const graceOver = this.#graceOver.promise.then(() => false);
    if (await Promise.race([shutdown.then(() => true), graceOver])) return;
    running.giveUp();
    if (await settledWithin(shutdown, LAST_ANSWERS_MS, clock)) return;
    // Left are peers that neither finish their request nor take their answer. They must not hold up the end.
    server.unref();
    const { hostname, port } = server.addr;
    logger.warning("HTTP connections left open at the end of the grace", { hostname, port });
  }
}

/** The requests that are being answered, so that the wait for their handlers can be ended. */
class RunningRequests {
  readonly #handler: HttpHandler;
  readonly #logger: Logger;
  readonly #closing = new AbortController();
  readonly #endings = new Set<() => void>();
  #isDraining = false;

  constructor(handler: HttpHandler, logger: Logger) {
    this.#handler = handler;
    this.#logger = logger;
  }

  answer(request: Request): Promise<Response> {
    return new Promise((resolve) => {
      const end = () => resolve(shuttingDown(request));
      const fail = (error: unknown) =>
        resolve(failed(error, requestIdOf(request.headers, randomRequestId), this.#logger));
      this.#endings.add(end);
      this.#handler(request, this.#closing.signal)
        .then((response) => forMethod(request, response))
        .then((response) => resolve(this.#isDraining ? asLast(response) : response))
        .catch(fail)
        .finally(() => this.#endings.delete(end));
    });
  }

  /** Every answer from now on is the last one of its connection. */
  drain(): void {
    this.#isDraining = true;
  }

  giveUp(): void {
    for (const end of this.#endings) end();
    this.#closing.abort();
  }
}

/** HEAD is answered with the length that GET has. The runtime would send the body over HTTP/2. */
async function forMethod({ method }: Request, response: Response): Promise<Response> {
  if (method !== "HEAD" || response.body === null) return response;
  const { byteLength } = await response.arrayBuffer();
  const { status, headers } = response;
  headers.set("content-length", `${byteLength}`);
  return new Response(null, { status, headers });
}

/** The runtime closes the connection, but does not say so: a client of HTTP/1.1 would send its next request. */
function asLast(response: Response): Response {
  response.headers.set("connection", "close");
  return response;
}

/** The answer for a handler that throws against its contract. */
function failed(error: unknown, requestId: string, logger: Logger): Response {
  logger.error("HTTP request failed", { requestId, error });
  const headers = { [REQUEST_ID_HEADER]: requestId };
  return problemResponse({ kind: "internal", reason: "internal error", headers }, requestId);
}

function shuttingDown(request: Request): Response {
  const requestId = requestIdOf(request.headers, randomRequestId);
  const reason = "the service is shutting down";
  const headers = { connection: "close", [REQUEST_ID_HEADER]: requestId };
  return problemResponse({ kind: "shutting_down", reason, headers }, requestId);
}
