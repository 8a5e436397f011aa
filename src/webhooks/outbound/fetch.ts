import { type ConnectionRequest, GuardedConnection, type ResponseListener } from "./connection.ts";
import { ConnectionPool } from "./connection_pool.ts";
import { Dialler, type DialOptions, type PendingConnection, proxyCredentials } from "./dial.ts";
import type { ResponseHead } from "./response_head.ts";
import { responseError, SendError } from "./send_error.ts";
import { wireBytes, type WireRequest, wireTargetOf } from "./wire_request.ts";

/** How requests are sent. */
export interface GuardedFetchOptions extends DialOptions {
  readonly isReusing?: boolean | undefined;
}

/**
 * A `fetch` that only dials checked addresses. It follows no redirect, obeys no variable of the environment, has no
 * cache, sends every body with its length, and every request once: whether to retry one whose connection breaks is up
 * to the caller. What it throws is a `SendError`, or the signal's reason.
 */
export interface GuardedFetch {
  (input: string | URL | Request, init?: RequestInit): Promise<Response>;
  close(): Promise<void>;
}

/** Statuses whose responses have no body. */
const BODILESS = [204, 205, 304];

/** Creates a guarded `fetch` with its own connections. Throws a `RangeError` for a proxy that is not http. */
export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { proxy, isReusing = false, clock } = options;
  if (proxy !== undefined && proxy.protocol !== "http:") {
    throw new RangeError(`Invalid WEBHOOK_PROXY: expected the scheme http:, got "${proxy.protocol}"`);
  }
  const dialler = new Dialler(options);
  const pool = new ConnectionPool<GuardedConnection>(clock);
  const credentials = proxy === undefined ? undefined : proxyCredentials(proxy);
  const wire = { isReusing, isProxied: proxy !== undefined, credentials };
  let isClosed = false;

  async function connect({ key, dial }: WireRequest["target"], pending: PendingConnection) {
    const socket = await dialler.dial(dial, pending);
    return new GuardedConnection(socket, {
      createdAt: clock.elapsed(),
      onFree: (free, serverIdleMs) => {
        free.resume();
        if (isReusing && !isClosed) pool.keep(key, free, serverIdleMs);
        else free.destroy();
      },
      onClose: (closed) => pool.forget(key, closed),
    });
  }

  async function guardedFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const { request, signal } = await outgoingOf(input, init);
    signal?.throwIfAborted();
    const isHeadOnly = request.method === "HEAD";
    const exchange = new Exchange({ bytes: wireBytes(request, wire), isHeadOnly }, signal);
    const known = pool.take(request.target.key);
    if (known !== undefined) exchange.run(known);
    else {
      const pending = dialler.begin();
      exchange.await(pending);
      connect(request.target, pending).then(
        (connection) => exchange.run(connection),
        (error) => exchange.onError(responseError(error)),
      );
    }
    return await exchange.response;
  }

  return Object.assign(guardedFetch, {
    async close() {
      isClosed = true;
      pool.close();
      await dialler.close();
    },
  });
}

async function outgoingOf(
  input: string | URL | Request,
  init: RequestInit | undefined,
): Promise<{ readonly request: WireRequest; readonly signal: AbortSignal | undefined }> {
  if (input instanceof Request) {
    const whole = new Request(input, init);
    const { url, method, headers, signal } = whole;
    const body = whole.body === null ? null : new Uint8Array(await whole.arrayBuffer());
    return await outgoingOf(url, { method, headers, signal, body });
  }
  const target = wireTargetOf(new URL(input));
  const { method = "GET", headers, body, signal } = init ?? {};
  const pairs = headers instanceof Headers || Array.isArray(headers)
    ? [...headers]
    : Object.entries(headers ?? {});
  const named = pairs.map(([name = "", value = ""]) => [name, value] as const);
  return {
    request: { target, method: method.toUpperCase(), headers: named, body: bytesOf(body) },
    signal: signal ?? undefined,
  };
}

function bytesOf(body: RequestInit["body"]): Uint8Array | undefined {
  if (body === undefined || body === null) return undefined;
  if (body instanceof Uint8Array) return body;
  if (typeof body === "string") return new TextEncoder().encode(body);
  throw new SendError("unsendable", "a body is a text or bytes here, so that its length is known");
}

/** One request, and its response, whose body is read no faster than the caller takes it. */
class Exchange implements ResponseListener {
  readonly #request: ConnectionRequest;
  readonly #signal: AbortSignal | undefined;
  readonly #settled = Promise.withResolvers<Response>();
  #isOver = false;
  #pending: PendingConnection | undefined;
  #connection: GuardedConnection | undefined;
  #body: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;

  constructor(request: ConnectionRequest, signal: AbortSignal | undefined) {
    this.#request = request;
    this.#signal = signal;
    signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  get response(): Promise<Response> {
    return this.#settled.promise;
  }

  /** Its connection is being made. */
  await(pending: PendingConnection): void {
    this.#pending = pending;
  }

  /** Sends the request, unless it was cancelled meanwhile. */
  run(connection: GuardedConnection): void {
    this.#pending = undefined;
    if (this.#isOver) return connection.destroy();
    this.#connection = connection;
    connection.begin(this.#request, this);
  }

  onHead({ status, headers: pairs }: ResponseHead): void {
    if (status < 200 || status > 599) {
      this.#cancel();
      const text = `the receiver responded with ${status}, which is not a final status`;
      return this.#fail(new SendError("status", text, { status }));
    }
    const headers = new Headers();
    for (const [name, value] of pairs) {
      try {
        headers.append(name, value);
      } catch {
        // An unreadable header is no reason to lose a response.
      }
    }
    const hasBody = !this.#request.isHeadOnly && !BODILESS.includes(status);
    this.#settled.resolve(new Response(hasBody ? this.#stream() : null, { status, headers }));
  }

  onBody(piece: Uint8Array<ArrayBuffer>): void {
    // A body that no one reads may have no end.
    if (this.#body === undefined) return this.#cancel();
    this.#body.enqueue(piece);
    this.#connection?.pause();
  }

  onEnd(): void {
    this.#end();
    this.#body?.close();
  }

  onError(error: SendError): void {
    this.#end();
    this.#fail(error);
  }

  readonly #onAbort = (): void => {
    this.#cancel();
    this.#settled.reject(this.#signal?.reason);
    this.#fail(new SendError("reset", "the connection ended before the end of the answer"));
  };

  #stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return new ReadableStream({
      start: (controller) => {
        this.#body = controller;
      },
      pull: () => this.#connection?.resume(),
      cancel: () => {
        this.#body = undefined;
        this.#cancel();
      },
    }, { highWaterMark: 0 });
  }

  #fail(error: SendError): void {
    this.#settled.reject(error);
    this.#body?.error(error);
    this.#body = undefined;
  }

  #cancel(): void {
    const [pending, connection] = [this.#pending, this.#connection];
    this.#end();
    pending?.cancel();
    connection?.destroy();
  }

  /** From here on its connection may serve another request. */
  #end(): void {
    this.#isOver = true;
    this.#pending = undefined;
    this.#connection = undefined;
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }
}
