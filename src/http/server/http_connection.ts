import { Buffer } from "node:buffer";
import type { Duplex } from "node:stream";
import type { Clock } from "../../base/clock.ts";
import { CurrentRequest } from "./current_request.ts";
import { problemResponse, type Refusal } from "./problem.ts";
import type { BodyDecoder } from "./body_decoder.ts";
import { headTooLarge, MAX_HEAD_BYTES, readRequestHead, type RequestHead } from "./request_head.ts";
import { chunkOf, isStreamed, LAST_CHUNK, responseHead } from "./response_bytes.ts";
import { REQUEST_ID_HEADER, requestIdOf } from "./router.ts";
import type { RunningRequests } from "./running_requests.ts";
import { UnreadBytes } from "./unread_bytes.ts";

/** The timeouts of a connection. */
const CONNECTION_LIMITS = {
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
const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";
const LATE_HEAD: Refusal = { kind: "timeout", reason: "the head of the request was not whole in time" };

/** Options of `HttpConnection`. */
interface HttpConnectionOptions {
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
  readonly #unread = new UnreadBytes();
  readonly #turns = new Turns(() => this.#readOn());
  #request: CurrentRequest | undefined;
  #isDraining = false;
  #isStopping = false;
  #hasAnswered = false;

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
      this.#turns.end();
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

  /** True between two requests. */
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
    this.#unread.add(bytes);
    if (this.#state === "answering") this.#request?.feed();
    else this.#read();
    if (this.#unread.length > MAX_UNREAD_BYTES) this.#socket.pause();
  }

  /** Reads the head of the next request, if it is complete. */
  #read(): void {
    if (this.#state !== "waiting" && this.#state !== "head") return;
    const received = this.#unread.takeHead();
    if (received === "none") return;
    if (received === "too large") return this.#refuse(headTooLarge(`larger than ${MAX_HEAD_BYTES} bytes`));
    if (received === "incomplete") {
      if (this.#state === "waiting") this.#enter("head", CONNECTION_LIMITS.headMs);
      return;
    }
    const head = readRequestHead(received.text, this.#options.scheme);
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
    const read = this.#unread.use((bytes) => decoder.next(bytes));
    if (read === undefined) return "malformed";
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
    if (request !== undefined && isStreamed(response)) return await this.#stream(response, request);
    const body = response.body === null ? undefined : await response.bytes();
    if (this.#socket.destroyed) return;
    const isLast = this.#isLast(response, request);
    this.#request = undefined;
    const length = body?.length ?? 0;
    const head = responseHead(response, { length, isLast, now: this.#options.clock.now() });
    this.#end(body === undefined ? head : Buffer.concat([head, body]), isLast);
  }

  /** Sends the parts of a body as they come, and waits for a client that reads them slowly. */
  async #stream(response: Response, request: CurrentRequest): Promise<void> {
    const isChunked = request.takesChunks;
    const isLast = !isChunked || this.#isLast(response, request);
    const reader = response.body?.getReader();
    const cancel = () => void reader?.cancel().catch(() => {});
    request.signal?.addEventListener("abort", cancel);
    try {
      await this.#write(responseHead(response, { isChunked, isLast, now: this.#options.clock.now() }));
      for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
        if (part.value.length > 0) await this.#write(isChunked ? chunkOf(part.value) : part.value);
      }
    } catch {
      // A body that breaks off must not look whole.
      this.#socket.destroy();
    }
    this.#request = undefined;
    if (!this.#socket.destroyed) this.#end(isChunked ? LAST_CHUNK : "", isLast);
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (this.#socket.destroyed || this.#socket.write(bytes)) return;
    this.#enter("answering", CONNECTION_LIMITS.writeMs);
    const { promise, resolve } = Promise.withResolvers<void>();
    const events = ["drain", "close"] as const;
    for (const event of events) this.#socket.once(event, resolve);
    await promise;
    for (const event of events) this.#socket.removeListener(event, resolve);
    this.#enter("answering", Infinity);
  }

  #isLast(response: Response, request: CurrentRequest | undefined): boolean {
    if (this.#isDraining || response.headers.get("connection") === "close") return true;
    return request?.canBeFollowed() !== true;
  }

  /** Sends the end of a response. */
  #end(bytes: Uint8Array | string, isLast: boolean): void {
    if (isLast) {
      this.#enter("leaving", CONNECTION_LIMITS.writeMs);
      this.#unread.clear();
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
    if (this.#unread.length === 0) this.#readOn();
    else this.#turns.take();
  }

  #readOn(): void {
    this.#read();
    if (this.#unread.length <= MAX_UNREAD_BYTES) this.#socket.resume();
  }
}

/** Lets a connection handle some requests that have arrived, then others have their turn. */
class Turns {
  readonly #run: () => void;
  #count = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(run: () => void) {
    this.#run = run;
  }

  take(): void {
    if (++this.#count < REQUESTS_IN_TURN) return this.#run();
    this.#count = 0;
    this.#timer = setTimeout(this.#run, 0);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}
