import { Buffer } from "node:buffer";
import type { Duplex } from "node:stream";
import type { Clock } from "../base/clock.ts";
import { STATUS_PHRASES } from "../base/problem_details.ts";
import { ClientRequest, type ClientRequestInit } from "./client_request.ts";
import { problemResponse, type Refusal } from "./problem.ts";
import { BodyDecoder } from "./request_body.ts";
import { headTooLarge, MAX_HEAD_BYTES, readRequestHead, type RequestHead } from "./request_head.ts";
import { REQUEST_ID_HEADER, requestIdOf } from "./router.ts";
import type { RunningRequests } from "./running_requests.ts";

/** The timeouts of a connection. */
export const CONNECTION_LIMITS = {
  /** Until the first byte, and from there until the head is complete. */
  headMs: 10_000,
  /** Between two requests; longer than that of common proxies, so that they close first. */
  idleMs: 75_000,
  /** For a client to read its response. */
  writeMs: 30_000,
  /** For a client to close after its last response, which a reset would destroy. */
  leaveMs: 2_000,
} as const;

const MAX_UNREAD_BYTES = MAX_HEAD_BYTES;
/** `Request` cannot carry them. */
const UNSERVED_METHODS = ["CONNECT", "TRACE", "TRACK"];
const LOWER_CASE = /[a-z]/;
/** Requests of one connection before others have their turn. */
const REQUESTS_IN_TURN = 16;
const UNSERVED: Refusal = { kind: "not_implemented", reason: "the method is not served" };
const EMPTY = Buffer.alloc(0);
/** Statuses whose answers have no body and no length. */
const WITHOUT_BODY = [204, 304];
const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";
const LATE_HEAD: Refusal = { kind: "timeout", reason: "the head of the request was not whole in time" };

/** Options of `HttpConnection`. */
export interface HttpConnectionOptions {
  readonly scheme: "http" | "https";
  readonly peer: string;
  readonly running: RunningRequests;
  readonly clock: Clock;
  /** Called for requests that are refused before they reach the handler. */
  readonly onRefused: (refusal: Refusal, requestId: string) => void;
  readonly onFailed: (error: unknown) => void;
  readonly onClose: () => void;
}

/**
 * - `waiting`: no byte of a request has arrived
 * - `head`: a part of its head has arrived
 * - `answering`: its handler runs
 * - `writing`: the client reads its response slowly
 * - `leaving`: the last response is written; further bytes are discarded
 */
type State = "waiting" | "head" | "answering" | "writing" | "leaving";

/** One connection of HTTP/1.1, which handles one request at a time. */
export class HttpConnection {
  readonly #socket: Duplex;
  readonly #options: HttpConnectionOptions;
  #state: State = "waiting";
  /** Of the state, by the clock's `elapsed`. */
  #deadline: number;
  #unread: Buffer = EMPTY;
  /** Unread bytes that hold no end of a head. */
  #searched = 0;
  #request: CurrentRequest | undefined;
  #isDraining = false;
  #answeredInTurn = 0;
  #isStopping = false;
  #hasAnswered = false;
  #turn: ReturnType<typeof setTimeout> | undefined;

  constructor(socket: Duplex, options: HttpConnectionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#deadline = options.clock.elapsed() + CONNECTION_LIMITS.headMs;
    socket.on("data", (bytes: Buffer) => this.#take(bytes));
    socket.on("drain", () => this.#state === "writing" && this.#next());
    socket.on("error", () => {});
    // A client that has closed its side waits for no response.
    socket.on("end", () => this.#request?.leave());
    socket.on("close", () => {
      clearTimeout(this.#turn);
      this.#request?.leave();
      options.onClose();
    });
  }

  /** Ends the connection if its state has timed out. */
  expire(now: number): void {
    if (now < this.#deadline) return;
    if (this.#state === "head") this.#refuse(LATE_HEAD);
    else this.#socket.destroy();
  }

  /** Whether it is between two requests. */
  get isIdle(): boolean {
    return this.#hasAnswered && this.#state === "waiting" && this.#unread.length === 0;
  }

  /** Makes the next response the last. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Closes the connection if no request has begun. */
  closeIfIdle(): void {
    this.#isStopping = true;
    if (this.#state === "waiting" && this.#unread.length === 0) this.#socket.destroy();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #enter(state: State, limitMs: number): void {
    this.#state = state;
    this.#deadline = this.#options.clock.elapsed() + limitMs;
  }

  #take(bytes: Buffer): void {
    if (this.#state === "leaving") return;
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes]);
    if (this.#state === "answering") this.#request?.feed();
    else this.#read();
    if (this.#unread.length > MAX_UNREAD_BYTES) this.#socket.pause();
  }

  /** Reads the head of the next request, if it is complete. */
  #read(): void {
    if (this.#state !== "waiting" && this.#state !== "head") return;
    // Empty lines before a request are ignored (RFC 9112, section 2.2).
    while (this.#unread[0] === 13 && this.#unread[1] === 10) this.#unread = this.#unread.subarray(2);
    const [first] = this.#unread;
    if (first === undefined) return;
    const end = this.#unread.indexOf("\r\n\r\n", this.#searched, "latin1");
    if (end > MAX_HEAD_BYTES || (end < 0 && this.#unread.length > MAX_HEAD_BYTES)) {
      return this.#refuse(headTooLarge(`larger than ${MAX_HEAD_BYTES} bytes`));
    }
    const isText = first === 13 || (first > 32 && first < 127);
    if (end < 0 && isText) {
      this.#searched = Math.max(0, this.#unread.length - 3);
      if (this.#state === "waiting") this.#enter("head", CONNECTION_LIMITS.headMs);
      return;
    }
    const head = readRequestHead(this.#unread.toString("latin1", 0, end), this.#options.scheme);
    this.#unread = this.#unread.subarray(end + 4);
    this.#searched = 0;
    if ("kind" in head) this.#refuse(head);
    else this.#answer(head);
  }

  #answer(head: RequestHead): void {
    if (typeof head.url !== "string") return this.#refuse(head.url, head);
    // `Request` would capitalize some methods, which are case-sensitive.
    const isUnserved = UNSERVED_METHODS.includes(head.method) || LOWER_CASE.test(head.method);
    if (isUnserved) return this.#refuse(UNSERVED, head);
    this.#enter("answering", Infinity);
    const current = new CurrentRequest(head, {
      next: (decoder) => this.#nextPart(decoder),
      goOn: () => void this.#socket.write(CONTINUE),
    });
    this.#request = current;
    this.#serve(current, head.url).catch((error: unknown) => {
      this.#options.onFailed(error);
      this.#socket.destroy();
    });
  }

  async #serve(current: CurrentRequest, url: string): Promise<void> {
    await this.#respond(await this.#options.running.answer(current.open(url), this.#options.peer), current);
  }

  #nextPart(decoder: BodyDecoder): Buffer | "malformed" | undefined {
    const read = decoder.next(this.#unread);
    if (read === undefined) return "malformed";
    this.#unread = this.#unread.subarray(read.used);
    if (this.#unread.length <= MAX_UNREAD_BYTES) this.#socket.resume();
    return read.part;
  }

  /** Refuses a request before its handler and closes: the start of the next request is unknown. */
  #refuse(refusal: Refusal, head?: RequestHead): void {
    this.#enter("answering", Infinity);
    const requestId = requestIdOf(new Headers([...head?.headers ?? []]));
    this.#options.onRefused(refusal, requestId);
    const headers = { ...refusal.headers, connection: "close", [REQUEST_ID_HEADER]: requestId };
    this.#respond(problemResponse({ ...refusal, headers }, requestId))
      .catch((error: unknown) => this.#options.onFailed(error));
  }

  async #respond(response: Response, request?: CurrentRequest): Promise<void> {
    const body = response.body === null ? undefined : await response.bytes();
    if (this.#socket.destroyed) return;
    const isLast = this.#isDraining || response.headers.get("connection") === "close" ||
      request?.canBeFollowed() !== true;
    this.#request = undefined;
    const bytes = responseBytes(response, { body, isLast, now: this.#options.clock.now() });
    if (isLast) {
      this.#enter("leaving", CONNECTION_LIMITS.writeMs);
      this.#unread = EMPTY;
      this.#socket.resume();
      this.#socket.end(bytes, () => this.#enter("leaving", CONNECTION_LIMITS.leaveMs));
    } else if (this.#socket.write(bytes)) {
      this.#next();
    } else {
      this.#enter("writing", CONNECTION_LIMITS.writeMs);
    }
  }

  #next(): void {
    this.#hasAnswered = true;
    this.#enter("waiting", CONNECTION_LIMITS.idleMs);
    if (this.#isStopping && this.#unread.length === 0) return void this.#socket.end();
    if (this.#unread.length === 0 || ++this.#answeredInTurn < REQUESTS_IN_TURN) return this.#readOn();
    this.#answeredInTurn = 0;
    this.#turn = setTimeout(() => this.#readOn(), 0);
  }

  #readOn(): void {
    this.#read();
    if (this.#unread.length <= MAX_UNREAD_BYTES) this.#socket.resume();
  }
}

/** The body of a request, as its connection provides it. */
interface BodySource {
  /** The next part; undefined if it has not arrived. */
  next(decoder: BodyDecoder): Buffer | "malformed" | undefined;
  /** Asks the client to send the body. */
  goOn(): void;
}

/** The request whose handler runs, and its body. */
class CurrentRequest {
  readonly #head: RequestHead;
  readonly #source: BodySource;
  readonly #decoder: BodyDecoder;
  #request: ClientRequest | undefined;
  #isContinued: boolean;
  #isMalformed = false;
  #body: ReadableStreamDefaultController<Uint8Array> | undefined;
  #isWanted = false;

  constructor(head: RequestHead, source: BodySource) {
    this.#head = head;
    this.#source = source;
    this.#decoder = new BodyDecoder(head.body);
    this.#isContinued = !head.expectsContinue;
  }

  open(url: string): Request {
    const { method, headers, repeated } = this.#head;
    const init = { method, headers: [...headers], repeated };
    // `Request` allows no body for these; it is skipped.
    if (method === "GET" || method === "HEAD" || this.#decoder.isDone) {
      return this.#request = new ClientRequest(url, init);
    }
    const first = this.#isContinued ? this.#source.next(this.#decoder) : undefined;
    if (first instanceof Buffer && this.#decoder.isDone) {
      return this.#request = new ClientRequest(url, { ...init, body: new Uint8Array(first) });
    }
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#body = controller;
        if (first instanceof Buffer) controller.enqueue(first);
        else if (first === "malformed") this.#breakOff();
      },
      pull: () => {
        this.#isWanted = true;
        if (!this.#isContinued) this.#source.goOn();
        this.#isContinued = true;
        this.feed();
      },
      cancel: () => void (this.#body = undefined),
    }, { highWaterMark: 0 });
    return this.#request = new ClientRequest(url, { ...init, body, duplex: "half" } as ClientRequestInit);
  }

  /** Passes a part of the body to a waiting handler. */
  feed(): void {
    if (!this.#isWanted || this.#body === undefined) return;
    const part = this.#source.next(this.#decoder);
    if (part === "malformed") return this.#breakOff();
    if (part === undefined && !this.#decoder.isDone) return;
    this.#isWanted = false;
    if (part !== undefined) return this.#body.enqueue(part);
    this.#body.close();
    this.#body = undefined;
  }

  leave(): void {
    this.#request?.leave();
    if (!this.#decoder.isDone) this.#breakOff();
  }

  #breakOff(): void {
    this.#isMalformed = true;
    this.#body?.error(new Error("the body ended early"));
    this.#body = undefined;
  }

  /** Whether another request may follow: the client allows it, and the whole body has arrived. */
  canBeFollowed(): boolean {
    if (this.#head.isLast || this.#isMalformed) return false;
    for (let part; !this.#decoder.isDone && (part = this.#source.next(this.#decoder)) !== undefined;) {
      if (part === "malformed") return false;
    }
    return this.#decoder.isDone;
  }
}

/** A response in HTTP/1.1. */
function responseBytes(response: Response, { body, isLast, now }: {
  readonly body: Uint8Array | undefined;
  readonly isLast: boolean;
  readonly now: number;
}): Buffer {
  const { status, headers } = response;
  let head = `HTTP/1.1 ${status} ${STATUS_PHRASES[status] ?? ""}\r\n`;
  for (const [name, value] of headers) head += `${name}: ${value}\r\n`;
  const hasLength = headers.has("content-length") || WITHOUT_BODY.includes(status);
  if (!hasLength) head += `content-length: ${body?.length ?? 0}\r\n`;
  head += `date: ${dateText(now)}\r\n`;
  if (isLast && !headers.has("connection")) head += "connection: close\r\n";
  const start = Buffer.from(`${head}\r\n`, "latin1");
  return body === undefined ? start : Buffer.concat([start, body]);
}

let shownSecond = -1;
let shownDate = "";

function dateText(now: number): string {
  const second = Math.floor(now / 1_000);
  if (second !== shownSecond) {
    shownSecond = second;
    shownDate = new Date(second * 1_000).toUTCString();
  }
  return shownDate;
}
