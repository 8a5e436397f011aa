import { Buffer } from "node:buffer";
import { GuardedClient, type GuardedClientOptions, type OutboundCall } from "./client.ts";
import type { ResponseListener } from "./connection.ts";
import type { ResponseHead } from "./response_head.ts";
import { codingsOf, tooLarge, withoutCodings } from "./response_body.ts";
import { markUnsent, SendError } from "./send_error.ts";
import { type WireRequest, wireTargetOf } from "./wire_request.ts";

/** Most bytes of an encoded body, and of what it is decoded to. */
export const MAX_DECODED_BYTES = 1_048_576;

/** The options of a request. */
export interface GuardedRequestInit extends RequestInit {
  /** Called with the status as soon as its line was read; the rest of the head may never come. */
  readonly onStatus?: ((status: number) => void) | undefined;
}

/**
 * A `fetch` over a guarded client, which decodes what `Accept-Encoding` offers. What it throws is a `SendError`, or the
 * signal's reason.
 */
interface GuardedFetch {
  (input: string | URL | Request, init?: GuardedRequestInit): Promise<Response>;
  close(): Promise<void>;
}

/** Failures to connect that may pass, by their kinds. */
const MAY_PASS: readonly string[] = ["connect", "timeout"];
/** Statuses whose responses have no body. */
const BODILESS = [204, 205, 304];

/** Creates a guarded `fetch` with its own connections. Throws a `RangeError` for a proxy that is not http. */
export function createGuardedFetch(options: GuardedClientOptions): GuardedFetch {
  const client = new GuardedClient(options);

  async function guardedFetch(input: string | URL | Request, init?: GuardedRequestInit): Promise<Response> {
    const { request, signal } = await outgoingOf(input, init);
    signal?.throwIfAborted();
    const exchange = new Exchange(request.method === "HEAD", signal, init?.onStatus);
    exchange.begin(client.send(request, exchange));
    return await exchange.response;
  }

  return Object.assign(guardedFetch, { close: () => client.close() });
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
  const target = wireTargetOf(String(input));
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

/** The response of a request, whose body is read no faster than the caller takes it. */
class Exchange implements ResponseListener {
  readonly #isHeadOnly: boolean;
  readonly #signal: AbortSignal | undefined;
  readonly #onStatus: GuardedRequestInit["onStatus"];
  readonly #settled = Promise.withResolvers<Response>();
  #call: OutboundCall | undefined;
  /** The status, and the headers so far, while the head is incomplete. */
  #begun: ResponseHead | undefined;
  #body: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;

  constructor(
    isHeadOnly: boolean,
    signal: AbortSignal | undefined,
    onStatus: GuardedRequestInit["onStatus"],
  ) {
    this.#isHeadOnly = isHeadOnly;
    this.#signal = signal;
    this.#onStatus = onStatus;
  }

  get response(): Promise<Response> {
    return this.#settled.promise;
  }

  begin(call: OutboundCall): void {
    this.#call = call;
    this.#signal?.addEventListener("abort", this.#onAbort, { once: true });
    // A lookup may have aborted it.
    if (this.#signal?.aborted === true) this.#onAbort();
  }

  onStatus(head: ResponseHead): void {
    this.#begun = head;
    this.#onStatus?.(head.status);
  }

  onHead(head: ResponseHead): void {
    this.#begun = undefined;
    this.#respond(head);
  }

  #respond(head: ResponseHead): void {
    const { status, headers: pairs } = head;
    const headers = new Headers();
    for (const [name, value] of pairs) {
      try {
        headers.append(name, value);
      } catch {
        // An unreadable header is no reason to lose a response.
      }
    }
    const hasBody = !this.#isHeadOnly && !BODILESS.includes(status);
    const body = hasBody ? decodedStream(this.#stream(), codingsOf(head)) : null;
    this.#settled.resolve(new Response(body, { status, headers }));
  }

  onBody(piece: Uint8Array<ArrayBuffer>): void {
    // A body that no one reads may have no end.
    if (this.#body === undefined) return this.#cancel();
    this.#body.enqueue(piece);
    this.#call?.pause();
  }

  onEnd(): void {
    this.#end();
    this.#body?.close();
  }

  onError(error: SendError): void {
    if (this.#call?.isWritten === false && MAY_PASS.includes(error.kind)) markUnsent(error);
    this.#end();
    // The status is known, and only the rest is not.
    if (this.#begun !== undefined) this.#respond(this.#begun);
    this.#fail(error);
  }

  readonly #onAbort = (): void => {
    if (this.#call?.isWritten === false) markUnsent(this.#signal?.reason);
    this.#cancel();
    this.#settled.reject(this.#signal?.reason);
    this.#fail(new SendError("reset", "the connection ended before the end of the answer"));
  };

  #stream(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return new ReadableStream({
      start: (controller) => {
        this.#body = controller;
      },
      pull: () => this.#call?.resume(),
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
    const call = this.#call;
    this.#end();
    call?.cancel();
  }

  #end(): void {
    this.#call = undefined;
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }
}

/** The body without its codings; it is read as a whole first, within the limit. */
function decodedStream(
  encoded: ReadableStream<Uint8Array<ArrayBuffer>>,
  codings: readonly string[],
): ReadableStream<Uint8Array<ArrayBuffer>> {
  if (codings.length === 0) return encoded;
  const reader = encoded.getReader();
  return new ReadableStream({
    async pull(controller) {
      const bytes = await withoutCodings(await wholeOf(reader), codings, MAX_DECODED_BYTES);
      if (bytes.byteLength > 0) controller.enqueue(bytes);
      controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  }, { highWaterMark: 0 });
}

async function wholeOf(
  reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>,
): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let left = MAX_DECODED_BYTES;
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    if (value === undefined) continue;
    left -= value.byteLength;
    if (left < 0) {
      reader.cancel().catch(() => {});
      throw tooLarge(MAX_DECODED_BYTES);
    }
    pieces.push(value);
  }
  return Buffer.concat(pieces);
}
