import { Fifo } from "../../base/fifo.ts";
import { GrpcError } from "../grpc_service.ts";
import { type CallStatus, errorOf, localStatus } from "./call_status.ts";
import { type CallTaker, type ClientCall, STREAM_WINDOW } from "./client_call.ts";
import type { ClientCalls } from "./client_calls.ts";
import { framed } from "../native/message_reader.ts";

/** Bytes that may be queued before `send` waits. */
const SEND_BYTES = 65_536;
/** Memory of a message in addition to its bytes. */
const MESSAGE_OVERHEAD = 64;
/** Memory of the messages that wait to be read. Only compressed ones reach it within the window. */
const MAX_WAITING_BYTES = 33_554_432;
const OVER = localStatus("FAILED_PRECONDITION", "the call has ended");
const TOO_MANY = localStatus("RESOURCE_EXHAUSTED", "more messages of the server wait than may");
const CANCELLED = localStatus("CANCELLED", "the call was cancelled");

/**
 * A call with messages in both directions. Iterate over it once for the messages of the server: the iteration ends with
 * the call, and throws the `GrpcError` of one that failed. Leaving it early cancels the call. A reader that is slow
 * slows down the server.
 */
export class GrpcStream implements CallTaker, AsyncIterable<Uint8Array> {
  #calls: ClientCalls | undefined;
  #call: ClientCall | undefined;
  /** Messages that were not read, and their size in memory. */
  readonly #messages = new Fifo<Uint8Array>();
  #bytes = 0;
  #status: CallStatus | undefined;
  #arrived = Promise.withResolvers<void>();
  #sent: PromiseWithResolvers<void> | undefined;

  /** Begins the call. */
  start(calls: ClientCalls, begin: (taker: CallTaker) => ClientCall): this {
    this.#calls = calls;
    this.#call = begin(this);
    return this;
  }

  /** End of the call; absent while it runs. */
  get status(): CallStatus | undefined {
    return this.#status;
  }

  /**
   * Sends a message. Settles when the next one may be sent: most of what was sent before is within the windows of the
   * server. Rejects with a `GrpcError` when the call is over.
   */
  async send(message: Uint8Array): Promise<void> {
    const call = this.#call;
    if (call === undefined || this.#status !== undefined) throw this.#error();
    if (call.isRequestEnded) throw new GrpcError("FAILED_PRECONDITION", "the request has ended");
    this.#calls?.send(call, framed(message), false);
    while ((call.outgoing.queued?.length ?? 0) > SEND_BYTES && this.#status === undefined) {
      await (this.#sent ??= Promise.withResolvers()).promise;
    }
    if (this.#status !== undefined) throw this.#error();
  }

  /** Sends no further message. */
  closeSend(): void {
    if (this.#call !== undefined) this.#calls?.closeSend(this.#call);
  }

  /** Ends the call with CANCELLED, or this status. */
  cancel(status: CallStatus = CANCELLED): void {
    if (this.#call !== undefined) this.#calls?.cancel(this.#call, status);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        const message = this.#messages.shift();
        if (message !== undefined) {
          this.#bytes -= message.length + MESSAGE_OVERHEAD;
          if (!this.isFull && this.#call !== undefined) this.#calls?.readMore(this.#call);
          yield message;
        } else if (this.#status?.code === "OK") return;
        else if (this.#status !== undefined) throw this.#error();
        else {
          this.#arrived = Promise.withResolvers();
          await this.#arrived.promise;
        }
      }
    } finally {
      this.cancel();
    }
  }

  /** Takes a message of the connection. */
  message(bytes: Uint8Array, start: number, end: number): void {
    if (this.#messages.length > 0 && this.#bytes >= MAX_WAITING_BYTES) return this.cancel(TOO_MANY);
    this.#messages.push(bytes.slice(start, end));
    this.#bytes += end - start + MESSAGE_OVERHEAD;
    this.#arrived.resolve();
  }

  /** Takes the end of the call from the connection. */
  ended(status: CallStatus): void {
    this.#status = status;
    this.#arrived.resolve();
    this.advanced();
  }

  /** The connection has sent a part of what was queued. */
  advanced(): void {
    this.#sent?.resolve();
    this.#sent = undefined;
  }

  /** True if the server must not send more. */
  get isFull(): boolean {
    return this.#bytes >= STREAM_WINDOW;
  }

  #error(): GrpcError {
    const status = this.#status ?? CANCELLED;
    return errorOf(status.code === "OK" ? OVER : status);
  }
}
