import { Buffer } from "node:buffer";
import { ClientRequest, type ClientRequestInit } from "./client_request.ts";
import { BodyDecoder } from "./body_decoder.ts";
import type { RequestHead } from "./request_head.ts";

/** The body of a request, as its connection provides it. */
interface BodySource {
  /** The next part; undefined if it has not arrived. */
  next(decoder: BodyDecoder): Buffer | "malformed" | undefined;
  /** Asks the client to send the body. */
  goOn(): void;
}

/** The request whose handler runs, and its body. */
export class CurrentRequest {
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

  /** Parts of a response may be sent as chunks. */
  get takesChunks(): boolean {
    return this.#head.takesChunks;
  }

  /** Aborted when the client leaves. */
  get signal(): AbortSignal | undefined {
    return this.#request?.signal;
  }

  /** The request for its handler. */
  open(url: string): Request {
    const { method, headers, repeated } = this.#head;
    const init = { method, headers: [...headers], repeated };
    // `Request` allows no body for these; it is skipped.
    if (method === "GET" || method === "HEAD" || this.#decoder.isDone) {
      return this.#request = new ClientRequest(url, init);
    }
    const first = this.#isContinued ? this.#source.next(this.#decoder) : undefined;
    if (first instanceof Buffer && this.#decoder.isDone) {
      return this.#request = new ClientRequest(url, { ...init, arrived: new Uint8Array(first) });
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

  /** The client has left. */
  leave(): void {
    this.#request?.leave();
    if (!this.#decoder.isDone) this.#breakOff();
  }

  #breakOff(): void {
    this.#isMalformed = true;
    this.#body?.error(new Error("the body ended early"));
    this.#body = undefined;
  }

  /** True when another request may follow: the client allows it, and the whole body has arrived. */
  canBeFollowed(): boolean {
    if (this.#head.isLast || this.#isMalformed) return false;
    for (let part; !this.#decoder.isDone && (part = this.#source.next(this.#decoder)) !== undefined;) {
      if (part === "malformed") return false;
    }
    return this.#decoder.isDone;
  }
}
