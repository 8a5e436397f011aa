import type { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { type AnswerHead, headerText } from "./response_head.ts";
import { type AnswerParts, AnswerReader } from "./response_parser.ts";
import { answerError, SendError } from "./send_error.ts";

/** Who is told of an exchange: of its parts, and then once of its end or of what went wrong. */
export interface AnswerListener extends AnswerParts {
  onEnd(): void;
  onError(error: SendError): void;
}

/** What is asked on a connection. */
export interface ConnectionRequest {
  readonly bytes: readonly Uint8Array[];
  /** Whether its answer has no body: that to `HEAD`. */
  readonly isHeadOnly: boolean;
}

/** What becomes of a connection. */
export interface ConnectionOptions {
  /** By the clock's `elapsed`. */
  readonly madeAt: number;
  /** An answer is over and another request may follow, within so many milliseconds where the server says so. */
  readonly onFree: (connection: GuardedConnection, serverIdleMs: number | undefined) => void;
  readonly onClose: (connection: GuardedConnection) => void;
}

/** A connection that serves one request after the other, and sends no bytes twice. */
export class GuardedConnection {
  readonly madeAt: number;
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  #reader: AnswerReader | undefined;
  #listener: AnswerListener | undefined;
  #isBroken = false;

  constructor(socket: Socket, options: ConnectionOptions) {
    this.madeAt = options.madeAt;
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

  /** Whether a request can be sent on it; not while another one is. */
  get isFree(): boolean {
    return !this.#isBroken && this.#listener === undefined && !this.#socket.destroyed;
  }

  /** Sends a request. The listener is called later, and not before this has returned. */
  begin({ bytes, isHeadOnly }: ConnectionRequest, listener: AnswerListener): void {
    this.#reader = new AnswerReader(listener, isHeadOnly);
    this.#listener = listener;
    // It may have gone down before anybody listened.
    if (this.#socket.destroyed) return queueMicrotask(() => this.#fail(undefined));
    for (const part of bytes) this.#socket.write(part);
  }

  /**
   * Lets the server wait with the rest of its answer. With TLS the platform reads on all the same and keeps what comes:
   * who takes a body has to take it without a break, or give it up.
   */
  pause(): void {
    this.#socket.pause();
  }

  /** Goes on after `pause`. */
  resume(): void {
    this.#socket.resume();
  }

  /** Ends it; nobody is told anything more. */
  destroy(): void {
    const isUnanswered = this.#listener !== undefined && this.#reader?.head === undefined;
    this.#isBroken = true;
    this.#listener = undefined;
    // To close it would leave what was written to the system, which goes on offering it to a server that reads nothing.
    if (isUnanswered && !(this.#socket instanceof TLSSocket)) this.#socket.resetAndDestroy();
    else this.#socket.destroy();
  }

  #take(piece: Buffer<ArrayBuffer>): void {
    const reader = this.#reader;
    // What comes without a request is no answer.
    if (reader === undefined || this.#listener === undefined) return this.destroy();
    try {
      reader.push(piece);
    } catch (error) {
      return this.#fail(error);
    }
    if (reader.isOver) this.#finish(reader);
  }

  #ended(): void {
    if (this.#reader?.end() === true) this.#finish(this.#reader);
    else this.#fail(undefined);
  }

  #finish(reader: AnswerReader): void {
    const listener = this.#listener;
    this.#listener = undefined;
    this.#reader = undefined;
    // An answer may come before the request has left as a whole.
    const isFree = reader.isClean && this.isFree && this.#socket.writableLength === 0;
    if (isFree) this.#options.onFree(this, serverIdleMs(reader.head));
    else this.destroy();
    listener?.onEnd();
  }

  #fail(error: unknown): void {
    const listener = this.#listener;
    const head = this.#reader?.head;
    this.destroy();
    listener?.onError(errorOf(error, head !== undefined));
  }
}

function errorOf(error: unknown, isBody: boolean): SendError {
  if (error instanceof SendError) return error;
  if (isBody) return new SendError("reset", "the connection ended before the end of the answer");
  // An end is told with the code that other platforms have for it.
  return answerError(error ?? Object.assign(new Error(), { code: "ECONNRESET" }));
}

function serverIdleMs(head: AnswerHead | undefined): number | undefined {
  const hint = head === undefined ? undefined : headerText(head, "keep-alive");
  const seconds = hint === undefined ? undefined : /(?:^|[\s,])timeout=(\d{1,6})/i.exec(hint)?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}
