import type { AnswerHead } from "./response_head.ts";
import { type Exchange, GuardedClient, type GuardedClientOptions } from "./client.ts";
import type { AnswerListener } from "./connection.ts";
import { SendError } from "./send_error.ts";
import { type WireRequest, wireTargetOf } from "./wire_request.ts";

/** How requests are sent. */
export type GuardedFetchOptions = GuardedClientOptions;

/**
 * A `fetch` that only dials addresses which were checked. It follows no redirect, obeys no variable of the environment,
 * never asks a cache, sends every body with its length, and every request once. What it throws is a `SendError`, or the
 * signal's reason.
 */
export interface GuardedFetch {
  (input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Ends its connections. */
  close(): Promise<void>;
}

/** Statuses whose answers have no body for a `Response`. */
const BODILESS = [204, 205, 304];

/** Makes a guarded `fetch` with connections of its own. */
export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const client = new GuardedClient(options);
  async function guardedFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const { request, signal } = await outgoingOf(input, init);
    signal?.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const answer = new FetchedAnswer(request.method === "HEAD", { resolve, reject, signal });
    answer.follow(client.begin(request, answer));
    return await promise;
  }
  return Object.assign(guardedFetch, { close: () => client.close() });
}

interface Outgoing {
  readonly request: WireRequest;
  readonly signal: AbortSignal | undefined;
}

async function outgoingOf(input: string | URL | Request, init: RequestInit | undefined): Promise<Outgoing> {
  if (input instanceof Request) {
    const { url, ...whole } = await readRequest(new Request(input, init));
    return await outgoingOf(url, whole);
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

/** A web request as parts, its body read. */
async function readRequest(request: Request) {
  const { url, method, headers, signal } = request;
  if (request.body === null) return { url, method, headers, signal };
  return { url, method, headers, signal, body: new Uint8Array(await request.arrayBuffer()) };
}

function bytesOf(body: RequestInit["body"]): Uint8Array | undefined {
  if (body === undefined || body === null) return undefined;
  if (body instanceof Uint8Array) return body;
  if (typeof body === "string") return new TextEncoder().encode(body);
  throw new SendError("unsendable", "a body is a text or bytes here, so that its length is known");
}

interface FetchedAnswerOptions {
  readonly resolve: (response: Response) => void;
  readonly reject: (reason: unknown) => void;
  readonly signal: AbortSignal | undefined;
}

/** An answer that becomes a `Response`, its body read no faster than somebody takes it. */
class FetchedAnswer implements AnswerListener {
  readonly #isHead: boolean;
  readonly #options: FetchedAnswerOptions;
  #exchange: Exchange | undefined;
  #body: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
  #onAbort = () => {};

  constructor(isHead: boolean, options: FetchedAnswerOptions) {
    this.#isHead = isHead;
    this.#options = options;
  }

  /** The signal ends the exchange at any time. */
  follow(exchange: Exchange): void {
    const { signal, reject } = this.#options;
    this.#exchange = exchange;
    this.#onAbort = () => {
      exchange.cancel();
      reject(signal?.reason);
      this.#breakOff(new SendError("reset", "the connection ended before the end of the answer"));
    };
    if (signal?.aborted === true) this.#onAbort();
    else signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  onHead({ status, headers: pairs }: AnswerHead): void {
    const headers = new Headers();
    for (const [name, value] of pairs) {
      try {
        headers.append(name, value);
      } catch {
        // A header that no one can read is no reason to lose an answer.
      }
    }
    const hasBody = !this.#isHead && !BODILESS.includes(status);
    this.#options.resolve(new Response(hasBody ? this.#stream() : null, { status, headers }));
  }

  onBody(piece: Uint8Array<ArrayBuffer>): void {
    if (this.#body === undefined) {
      // Nobody waits for it, and it may have no end.
      this.#release();
      return this.#exchange?.cancel();
    }
    this.#body.enqueue(piece);
    this.#exchange?.pause();
  }

  onEnd(): void {
    this.#release();
    this.#body?.close();
  }

  onError(error: SendError): void {
    this.#options.reject(error);
    this.#breakOff(error);
  }

  #stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return new ReadableStream({
      start: (controller) => {
        this.#body = controller;
      },
      pull: () => this.#exchange?.resume(),
      cancel: () => {
        this.#body = undefined;
        this.#release();
        this.#exchange?.cancel();
      },
    }, { highWaterMark: 0 });
  }

  #breakOff(error: SendError): void {
    this.#release();
    this.#body?.error(error);
    this.#body = undefined;
  }

  #release(): void {
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
  }
}
