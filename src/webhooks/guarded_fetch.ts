import type { Buffer } from "node:buffer";
import { request as httpRequest } from "node:http";
import type { ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { ConnectionPool } from "./connection_pool.ts";
import { Dialler, type DialOptions, proxyCredentials, targetOf } from "./guarded_dial.ts";
import { answerError, SendError } from "./send_error.ts";

/** How requests are sent. */
export interface GuardedFetchOptions extends DialOptions {
  /**
   * Whether connections are used again. The platform sends a request that meets one which its server was just closing
   * once more on another one, so this is for requests that may be repeated.
   */
  readonly isReusing?: boolean | undefined;
}

/**
 * A `fetch` that only dials addresses which were checked. It follows no redirect, obeys no variable of the environment,
 * never asks a cache, and sends every body with its length. What it throws is a `SendError`, or the signal's reason.
 */
export interface GuardedFetch {
  (input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** Ends its connections. */
  close(): Promise<void>;
}

/** Headers that say how a message is framed and where it goes: they are never the caller's. */
const OURS = new Set([
  ...[
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
  ],
  ...["proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"],
]);
/** Statuses whose answers have no body. */
const BODILESS = [204, 205, 304];

/** Makes a guarded `fetch` with connections of its own. */
export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  if (options.proxy !== undefined && options.proxy.protocol !== "http:") {
    throw new RangeError(
      `Cannot use WEBHOOK_PROXY with the scheme "${options.proxy.protocol}": http: would be right`,
    );
  }
  const dialler = new Dialler(options);
  const { isReusing = false, clock, proxy } = options;
  const pools = { isReusing, clock, dial: (target: ReturnType<typeof targetOf>) => dialler.dial(target) };
  const plain = new ConnectionPool({ ...pools, isTls: false });
  const secure = new ConnectionPool({ ...pools, isTls: true });
  async function guardedFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
    const outgoing = await outgoingOf(input, init, proxy);
    return await exchange(outgoing, outgoing.isTls ? secure : plain);
  }
  return Object.assign(guardedFetch, {
    async close() {
      plain.destroy();
      secure.destroy();
      await dialler.close();
    },
  });
}

/** What is put on the wire. */
interface Outgoing {
  readonly isTls: boolean;
  readonly options: RequestOptions;
  readonly body: Uint8Array | undefined;
  readonly signal: AbortSignal | undefined;
}

async function outgoingOf(
  input: string | URL | Request,
  init: RequestInit | undefined,
  proxy: URL | undefined,
): Promise<Outgoing> {
  if (input instanceof Request) {
    const { url, method, headers, signal, ...whole } = await readRequest(new Request(input, init));
    return await outgoingOf(url, { method, headers, signal, ...whole }, proxy);
  }
  const url = new URL(input);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new SendError("unsendable", "the URL is neither http nor https");
  }
  const { host, port, isTls } = targetOf(url);
  const body = bytesOf(init?.body);
  const method = init?.method ?? "GET";
  const headers: Record<string, string> = { host: url.host, ...headersOf(init?.headers) };
  if (body !== undefined || /^(?:POST|PUT|PATCH)$/.test(method)) {
    headers["content-length"] = `${body?.byteLength ?? 0}`;
  }
  let path = url.pathname + url.search;
  if (proxy !== undefined && !isTls) {
    path = `${url.origin}${path}`;
    const credentials = proxyCredentials(proxy);
    if (credentials !== undefined) headers["proxy-authorization"] = credentials;
  }
  return { isTls, body, signal: init?.signal ?? undefined, options: { host, port, path, method, headers } };
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

function headersOf(headers: RequestInit["headers"]): Record<string, string> {
  const pairs = headers instanceof Headers || Array.isArray(headers)
    ? [...headers]
    : Object.entries(headers ?? {});
  const result: Record<string, string> = {};
  for (const [name = "", value = ""] of pairs) {
    if (OURS.has(name.toLowerCase())) {
      throw new SendError("unsendable", `the header "${name.toLowerCase()}" is not the caller's to set`);
    }
    result[name] = value;
  }
  return result;
}

/** Sends a request and answers when the head of its answer is there. */
function exchange({ options, body, signal }: Outgoing, agent: ConnectionPool): Promise<Response> {
  return new Promise((resolve, reject) => {
    let sent: ClientRequest;
    try {
      signal?.throwIfAborted();
      sent = httpRequest({ ...options, agent });
    } catch (error) {
      const isAborted = signal?.aborted === true;
      return reject(
        isAborted ? error : new SendError("unsendable", "the request has a part that HTTP cannot hold"),
      );
    }
    const onAbort = () => {
      reject(signal?.reason);
      sent.destroy();
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    sent.on("close", () => signal?.removeEventListener("abort", onAbort));
    sent.on("response", (message) => {
      try {
        resolve(responseOf(message, options.method === "HEAD"));
      } catch (error) {
        reject(error);
        sent.destroy();
      }
    });
    sent.on("upgrade", (message, socket) => {
      socket.destroy();
      reject(noFinalStatus(message.statusCode));
    });
    // The listener stays: an error may come long after the answer.
    sent.on("error", (error) => reject(answerError(error)));
    // To ask for a connection may have taken until the abort.
    if (signal?.aborted === true) onAbort();
    else sent.end(body);
  });
}

function responseOf(message: IncomingMessage, isHead: boolean): Response {
  message.on("error", () => {});
  const { statusCode: status = 0, rawHeaders } = message;
  if (status < 200 || status > 599) throw noFinalStatus(status);
  const headers = new Headers();
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    try {
      headers.append(rawHeaders[index] ?? "", rawHeaders[index + 1] ?? "");
    } catch {
      // A header that no one can read is no reason to lose an answer.
    }
  }
  if (isHead || BODILESS.includes(status)) {
    message.resume();
    return new Response(null, { status, headers });
  }
  return new Response(bodyOf(message), { status, headers });
}

function noFinalStatus(status = 0): SendError {
  return new SendError("status", `the receiver answered ${status}, which is no final answer`, { status });
}

/** The body as it arrives; whoever gives it up ends the connection with it. */
function bodyOf(message: IncomingMessage): ReadableStream<Uint8Array<ArrayBuffer>> {
  let isOver = false;
  return new ReadableStream({
    start(controller) {
      message.pause();
      message.on("data", (piece: Buffer<ArrayBuffer>) => {
        if (isOver) return;
        controller.enqueue(piece);
        message.pause();
      });
      message.on("end", () => {
        if (isOver) return;
        isOver = true;
        controller.close();
      });
      message.on("close", () => {
        if (isOver) return;
        isOver = true;
        controller.error(new SendError("reset", "the connection ended before the end of the answer"));
      });
    },
    pull() {
      message.resume();
    },
    cancel() {
      isOver = true;
      message.destroy();
    },
  }, { highWaterMark: 0 });
}
