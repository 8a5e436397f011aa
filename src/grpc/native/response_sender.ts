import { Fifo } from "../../base/fifo.ts";
import type { DirectResponse } from "../grpc_service.ts";
import { FLAG, FRAME, MAX_FRAME_BYTES, readUint32 } from "./frames.ts";
import { FrameSender, NO_TRAILERS, type SenderEvents } from "./frame_sender.ts";
import { FIRST_RESPONSE_HEADERS, OK_TRAILERS, RESPONSE_HEADERS } from "./response_blocks.ts";
import { LIMITS } from "./limits.ts";
import { framed, MESSAGE_PREFIX_BYTES } from "./message_reader.ts";
import type { ServerStream } from "./server_stream.ts";

/** Writes the responses to one peer. */
export class ResponseSender extends FrameSender<ServerStream> {
  #responseHeaders = FIRST_RESPONSE_HEADERS;
  /** Our PINGs that are not answered, whose marks are numbers in order. */
  readonly #toConfirm = new Fifo<{ readonly mark: number; readonly arrived: () => void }>();
  #lastMark = 0;

  constructor(events: SenderEvents<ServerStream>) {
    super(events, LIMITS);
  }

  /** Sends the whole response of a unary call. */
  unary(stream: ServerStream, message: Uint8Array): void {
    const { id, outgoing } = stream;
    const length = MESSAGE_PREFIX_BYTES + message.length;
    if (
      length > outgoing.window || length > this.window || length > MAX_FRAME_BYTES || outgoing.headersSent
    ) {
      this.message(stream, message);
      if (!stream.isAnswered) this.end(stream, OK_TRAILERS);
      return;
    }
    const { output } = this;
    const headers = this.#responseHeaders;
    this.#responseHeaders = RESPONSE_HEADERS;
    output.frame(headers.length, FRAME.HEADERS, FLAG.END_HEADERS, id);
    output.bytes(headers);
    output.frame(length, FRAME.DATA, 0, id);
    output.byte(0);
    output.uint32(message.length);
    output.bytes(message);
    output.frame(OK_TRAILERS.length, FRAME.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, id);
    output.bytes(OK_TRAILERS);
    this.window -= length;
    outgoing.isEnded = true;
    this.events.finished(stream);
  }

  /** True if one frame, and the windows of a new stream, have room for a whole message of this length. */
  canSend(messageBytes: number): boolean {
    const length = MESSAGE_PREFIX_BYTES + messageBytes;
    return length <= Math.min(this.window, this.initialWindow, MAX_FRAME_BYTES) &&
      this.output.length < LIMITS.unsentBytes;
  }

  /** Sends the whole response of a unary call whose stream was never opened here. */
  direct(streamId: number, response: DirectResponse): void {
    const { output } = this;
    const headers = this.#responseHeaders;
    this.#responseHeaders = RESPONSE_HEADERS;
    output.frame(headers.length, FRAME.HEADERS, FLAG.END_HEADERS, streamId);
    output.bytes(headers);
    this.window -= output.message(streamId, response);
    output.frame(OK_TRAILERS.length, FRAME.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, streamId);
    output.bytes(OK_TRAILERS);
  }

  /** Sends one message of a response, and its headers before the first one. */
  message(stream: ServerStream, message: Uint8Array): void {
    this.headers(stream, this.#responseHeaders);
    this.#responseHeaders = RESPONSE_HEADERS;
    this.queue(stream, framed(message));
  }

  /** Calls back when the peer has answered a PING after all that a stream has sent; false if some of that waits. */
  confirm(stream: ServerStream, arrived: () => void): boolean {
    if (stream.outgoing.queued !== undefined) return false;
    const mark = ++this.#lastMark;
    this.#toConfirm.push({
      mark,
      arrived: () => {
        if (!stream.isClosed && !stream.isAnswered) arrived();
      },
    });
    this.ping(mark);
    return true;
  }

  /** The peer has answered a PING. */
  pingAnswered(payload: Uint8Array): void {
    const { first } = this.#toConfirm;
    if (first?.mark !== readUint32(payload, 0)) return;
    this.#toConfirm.shift();
    first.arrived();
  }

  /** Sends a response that is not gRPC: headers and a body. */
  plain(stream: ServerStream, headers: Uint8Array, body: Uint8Array): void {
    stream.outgoing.isEnded = true;
    if (body.length === 0) {
      this.end(stream, headers);
      return;
    }
    this.headers(stream, headers);
    this.queue(stream, body, NO_TRAILERS);
  }
}
