import type { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { headerText, type ResponseHead } from "./response_head.ts";
import { ResponseParser, type ResponseParts } from "./response_parser.ts";
import { responseError, SendError } from "./send_error.ts";

/** Receives the parts of a response, and then once its end or its error. */
export interface ResponseListener extends ResponseParts {
  onEnd(): void;
  onError(error: SendError): void;
}

/** A request as bytes. */
export interface ConnectionRequest {
  readonly bytes: readonly Uint8Array[];
  /** The response has no body: that to `HEAD`. */
  readonly isHeadOnly: boolean;
}

/** The facts of a connection, and who owns it when it is free. */
interface ConnectionOptions {
  /** By the clock's `elapsed`. */
  readonly createdAt: number;
  /** A response is over and another request may follow, within `serverIdleMs` where the server sets it. */
  readonly onFree: (connection: GuardedConnection, serverIdleMs: number | undefined) => void;
  readonly onClose: (connection: GuardedConnection) => void;
}

/** A connection that serves one request after the other, and sends no byte twice. */
export class GuardedConnection {
  readonly createdAt: number;
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  #parser: ResponseParser | undefined;
  #listener: ResponseListener | undefined;
  #isBroken = false;

  constructor(socket: Socket, options: ConnectionOptions) {
    this.createdAt = options.createdAt;
    this.#socket = socket;
    this.#options = options;
    socket.on("data", (piece: Buffer<ArrayBuffer>) => this.#take(piece));
    socket.on("end", () => this.#ended());
    socket.on("error", (error) => this.#fail(error));
    socket.once("close", () => {
      this.#fail(undefined);
      options.onClose(this);
    });
  }

  /** A request can be sent on it; not while another one is. */
  get isFree(): boolean {
    return !this.#isBroken && this.#listener === undefined && !this.#socket.destroyed;
  }

  /** Sends a request. The listener is not called before this has returned. */
  begin({ bytes, isHeadOnly }: ConnectionRequest, listener: ResponseListener): void {
    this.#parser = new ResponseParser(listener, isHeadOnly);
    this.#listener = listener;
    // It may have been closed before the listeners were added.
    if (this.#socket.destroyed) return queueMicrotask(() => this.#fail(undefined));
    for (const part of bytes) this.#socket.write(part);
  }

  /**
   * Stops reading. With TLS the platform continues to read into memory: a body has to be taken without a break, or
   * cancelled.
   */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes it without a further call of the listener. */
  destroy(): void {
    const isUnanswered = this.#listener !== undefined && this.#parser?.head === undefined;
    this.#isBroken = true;
    this.#listener = undefined;
    // After a mere close the system goes on offering what was written to a server that reads nothing.
    if (isUnanswered && !(this.#socket instanceof TLSSocket)) this.#socket.resetAndDestroy();
    else this.#socket.destroy();
  }

  #take(piece: Buffer<ArrayBuffer>): void {
    const parser = this.#parser;
    // Bytes without a request are no response.
    if (parser === undefined || this.#listener === undefined) return this.destroy();
    try {
      parser.push(piece);
    } catch (error) {
      return this.#fail(error);
    }
    if (parser.isOver) this.#finish(parser);
  }

  #ended(): void {
    if (this.#parser?.end() === true) this.#finish(this.#parser);
    else this.#fail(undefined);
  }

  #finish(parser: ResponseParser): void {
    const listener = this.#listener;
    this.#listener = undefined;
    this.#parser = undefined;
    // A response may come before the request has left as a whole.
    const isFree = parser.isClean && this.isFree && this.#socket.writableLength === 0;
    if (isFree) this.#options.onFree(this, serverIdleMs(parser.head));
    else this.destroy();
    listener?.onEnd();
  }

  #fail(error: unknown): void {
    const listener = this.#listener;
    const isBody = this.#parser?.hasStatus === true && !(error instanceof SendError);
    this.destroy();
    // An end has the code that other platforms report for it.
    listener?.onError(
      isBody
        ? new SendError("reset", "the connection ended before the end of the answer")
        : responseError(error ?? Object.assign(new Error(), { code: "ECONNRESET" })),
    );
  }
}

function serverIdleMs(head: ResponseHead | undefined): number | undefined {
  const hint = head === undefined ? undefined : headerText(head, "keep-alive");
  const seconds = hint === undefined ? undefined : /(?:^|[\s,])timeout=(\d{1,6})/i.exec(hint)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}
