import { GrpcError } from "../grpc_service.ts";
import { checkReset } from "../native/control_frames.ts";
import { ConnectionError, FLAG, FRAME, readUint32, StreamError, unpadded } from "../native/frames.ts";
import { MessageReader } from "../native/message_reader.ts";
import type { ConnectionWindow } from "../native/receive_window.ts";
import { AnswerFrames } from "./answer_frames.ts";
import type { ClientCall } from "./client_call.ts";
import type { ClientCalls } from "./client_calls.ts";
import { localStatus, resetStatus } from "./call_status.ts";
import { ResponseReader } from "./response_reader.ts";

/** Options of `AnswerReader`. */
interface AnswerReaderOptions {
  readonly calls: ClientCalls;
  readonly window: ConnectionWindow;
  /** Counts what frames cost that carry nothing for a call; throws `ConnectionError` when there are too many. */
  readonly countNoise: (now: number, cost?: number) => void;
}

const NO_STATUS = localStatus("INTERNAL", "the server ended the call without a status");
const CUT_MESSAGE = localStatus("INTERNAL", "the server ended the call in the middle of a message");

/** Reads the frames of answers on one connection, and hands messages and statuses to their calls. */
export class AnswerReader {
  readonly #calls: ClientCalls;
  readonly #window: ConnectionWindow;
  readonly #countNoise: AnswerReaderOptions["countNoise"];
  readonly #responses = new ResponseReader();
  readonly #answer = new AnswerFrames();

  constructor({ calls, window, countNoise }: AnswerReaderOptions) {
    this.#calls = calls;
    this.#window = window;
    this.#countNoise = countNoise;
  }

  /** Takes DATA, HEADERS, CONTINUATION and RST_STREAM; false for frames of other types. */
  take(type: number, flags: number, streamId: number, payload: Uint8Array, now: number): boolean {
    const { blocks } = this.#responses;
    if (blocks.isOpen && type !== FRAME.CONTINUATION) {
      throw new ConnectionError("PROTOCOL_ERROR", "a header block is interrupted");
    }
    if (type === FRAME.DATA) this.#onData(flags, streamId, payload, now);
    else if (type === FRAME.RST_STREAM) this.#onReset(streamId, payload, now);
    else if (type === FRAME.HEADERS) {
      this.#checkOpened(streamId, "HEADERS");
      blocks.begin(flags, streamId, payload);
      if (!blocks.isOpen) this.#onBlock(now);
    } else if (type === FRAME.CONTINUATION) {
      blocks.continue(flags, streamId, payload);
      if (!blocks.isOpen) this.#onBlock(now);
    } else return false;
    return true;
  }

  /**
   * Takes a whole answer that begins at a position, if nothing about it is special; returns where it ends. All checks
   * come first: otherwise nothing has changed and the same position is returned.
   */
  takeWhole(bytes: Uint8Array, at: number, now: number): number {
    const answer = this.#answer;
    if (this.#responses.blocks.isOpen || !answer.read(bytes, at)) return at;
    const call = this.#calls.get(answer.streamId);
    if (call === undefined || call.messages !== undefined) return at;
    const { maxMessageBytes = Infinity } = call.options;
    const head = this.#responses.knownHead(bytes, answer.headStart, answer.headEnd);
    if (head === undefined || head.refusal !== undefined || head.httpStatus !== HTTP_OK) return at;
    const status = this.#responses.knownTrailers(bytes, answer.trailersStart, answer.end)?.status;
    if (status === undefined || answer.messageEnd - answer.messageStart > maxMessageBytes) return at;
    this.#window.take(answer.bodyBytes);
    call.taker.message(bytes, answer.messageStart, answer.messageEnd, now);
    if (!call.isOver) this.#calls.complete(call, status, now);
    return answer.end;
  }

  #onData(flags: number, streamId: number, payload: Uint8Array, now: number): void {
    this.#checkOpened(streamId, "DATA");
    this.#window.take(payload.length);
    const body = (flags & FLAG.PADDED) === 0 ? payload : unpadded(payload);
    const isLast = (flags & FLAG.END_STREAM) !== 0;
    const call = this.#calls.get(streamId);
    if (call === undefined || (body.length === 0 && !isLast)) this.#countNoise(now);
    if (call === undefined) return;
    if (!call.window.take(payload.length)) {
      throw new StreamError("FLOW_CONTROL_ERROR", streamId, "the window of the call is exceeded");
    }
    const { messages } = call;
    if (messages === undefined) throw new StreamError("PROTOCOL_ERROR", streamId, "DATA before HEADERS");
    this.#onBody(call, messages, body, now);
    if (call.isOver) return;
    if (isLast) this.#calls.complete(call, messages.held > 0 ? CUT_MESSAGE : NO_STATUS, now);
    else if (call.taker.isFull !== true) this.#calls.readMore(call);
  }

  #onBody(call: ClientCall, messages: MessageReader, body: Uint8Array, now: number): void {
    try {
      for (const message of messages.read(body)) {
        call.taker.message(message, 0, message.length, now);
        if (call.isOver) return;
      }
    } catch (error) {
      if (!(error instanceof GrpcError)) throw error;
      this.#calls.cancel(call, localStatus(error.code, error.message));
    }
  }

  /** A header block is complete. */
  #onBlock(now: number): void {
    const responses = this.#responses;
    const { streamId, endsStream, cost } = responses.blocks;
    const call = this.#calls.get(streamId);
    if (call === undefined) {
      responses.skip();
      return this.#countNoise(now, 1 + cost);
    }
    if (call.messages !== undefined) {
      const { status = NO_STATUS } = responses.trailers();
      if (!endsStream) {
        throw new StreamError("PROTOCOL_ERROR", streamId, "HEADERS in the middle of an answer");
      }
      const isCut = status.code === "OK" && call.messages.held > 0;
      return this.#calls.complete(call, isCut ? CUT_MESSAGE : status, now);
    }
    const { httpStatus = 0, status, refusal, encoding } = responses.head();
    if (endsStream) return this.#calls.complete(call, status ?? refusal ?? NO_STATUS, now);
    if (httpStatus >= 100 && httpStatus < 200) return this.#countNoise(now, 1 + cost);
    if (refusal !== undefined) return this.#calls.cancel(call, status ?? refusal);
    call.messages = new MessageReader(encoding, call.options.maxMessageBytes);
  }

  #onReset(streamId: number, payload: Uint8Array, now: number): void {
    checkReset(streamId, payload, this.#calls.lastId);
    const call = this.#calls.get(streamId);
    if (call === undefined) this.#countNoise(now);
    else this.#calls.drop(call, resetStatus(readUint32(payload, 0)), now);
  }

  #checkOpened(streamId: number, what: string): void {
    if (streamId % 2 === 1 && streamId <= this.#calls.lastId) return;
    throw new ConnectionError(
      "PROTOCOL_ERROR",
      `${what} on stream ${streamId}, which the client did not open`,
    );
  }
}

const HTTP_OK = 200;
