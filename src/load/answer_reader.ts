import { FLAG, FRAME, joined } from "../grpc/native/frames.ts";
import { statusesOf, statusProblem } from "./answer_statuses.ts";
import { type Block, BlockReader } from "./block_reader.ts";
import { number31 } from "./frame_reader.ts";
import { type ByteRange, copied, type Frame, unpadded } from "./h2_frames.ts";
import type { CallRecord } from "./load_record.ts";
import type { PendingCall, PendingCalls } from "./pending_calls.ts";
import { MESSAGE_PREFIX_BYTES } from "./rate_limit_message.ts";

const GOOD = "good";

/** Finds what is wrong with the body of an answer to this request; undefined when it is good. */
export type BodyCheck = (body: ByteRange, request: Uint8Array) => string | undefined;

/** Options of `AnswerReader`. */
export interface AnswerReaderOptions {
  readonly pending: PendingCalls;
  readonly checkBody: BodyCheck;
  readonly record: CallRecord;
}

/** Reads the frames of answers on one connection, checks each answer, and records it. */
export class AnswerReader {
  readonly #options: AnswerReaderOptions;
  readonly #blocks = new BlockReader();
  /** A header block whose CONTINUATION frames have not all arrived. */
  #open: { readonly streamId: number; readonly flags: number; readonly bytes: Uint8Array } | undefined;

  constructor(options: AnswerReaderOptions) {
    this.#options = options;
  }

  /** Reads a frame of an answer, received at `now`; throws when the peer breaks the protocol. */
  take(frame: Frame, now: number): void {
    if (this.#open !== undefined && frame.type !== FRAME.CONTINUATION) {
      throw new RangeError(`Cannot read frame of type "${frame.type}": a header block is not at its end`);
    }
    switch (frame.type) {
      case FRAME.DATA:
        return this.#takeBody(frame, now);
      case FRAME.HEADERS:
        return this.#takeHeaders(frame, now);
      case FRAME.CONTINUATION:
        return this.#continueBlock(frame, now);
      case FRAME.RST_STREAM:
        return this.fail(frame.streamId, `stream reset with code ${number31(frame.bytes, frame.start)}`);
    }
  }

  /** Ends a call without an answer. */
  fail(streamId: number, text: string): void {
    const slot = this.#options.pending.get(streamId);
    if (slot === undefined) return;
    this.#options.pending.end(slot);
    this.#options.record.lost(text, 1);
  }

  #takeBody(frame: Frame, now: number): void {
    const slot = this.#options.pending.get(frame.streamId);
    if (slot === undefined) return;
    const body = unpadded(frame);
    if (slot.part === undefined && slot.body === undefined && isWhole(body)) this.#check(slot, body);
    else if (body.end > body.start) addPart(slot, body);
    if ((frame.flags & FLAG.END_STREAM) !== 0) this.#finish(slot, undefined, now);
  }

  #takeHeaders(frame: Frame, now: number): void {
    const block = unpadded(frame);
    const { streamId, flags } = frame;
    if ((flags & FLAG.END_HEADERS) === 0) this.#open = { streamId, flags, bytes: copied(block) };
    else this.#takeBlock(streamId, block, { isLast: (flags & FLAG.END_STREAM) !== 0, now });
  }

  #continueBlock(frame: Frame, now: number): void {
    const open = this.#open;
    if (open === undefined || open.streamId !== frame.streamId) {
      throw new RangeError(`Cannot continue header block of stream "${frame.streamId}": none is open`);
    }
    const bytes = joined(open.bytes, copied(frame));
    this.#open = (frame.flags & FLAG.END_HEADERS) === 0 ? { ...open, bytes } : undefined;
    if (this.#open !== undefined) return;
    const block = { bytes, start: 0, end: bytes.length };
    this.#takeBlock(open.streamId, block, { isLast: (open.flags & FLAG.END_STREAM) !== 0, now });
  }

  #takeBlock(streamId: number, range: ByteRange, options: {
    readonly isLast: boolean;
    readonly now: number;
  }): void {
    // Read for ended calls too, because the block may change the dynamic table.
    const block = this.#blocks.read(range, options.isLast ? "last" : "first");
    const slot = this.#options.pending.get(streamId);
    if (slot === undefined) return;
    if (options.isLast) this.#finish(slot, block, options.now);
    else slot.first = block;
  }

  #check(slot: PendingCall, body: ByteRange): void {
    if (slot.call === undefined) return;
    slot.body = this.#options.checkBody(body, slot.call.body) ?? GOOD;
  }

  #finish(slot: PendingCall, last: Block | undefined, now: number): void {
    const { pending, record } = this.#options;
    // An answer without a body is one block, which is the first and the last.
    const first = slot.first ?? last ?? NO_BLOCK;
    const statuses = statusProblem(first, last ?? NO_BLOCK);
    if (statuses !== undefined) {
      record.badAnswer(statusesOf(first, last ?? NO_BLOCK), slot.start, now);
      record.error(statuses);
    } else {
      record.goodAnswer(slot.start, now);
      const part = slot.part ?? new Uint8Array(0);
      if (slot.body === undefined) this.#check(slot, { bytes: part, start: 0, end: part.length });
      else if (slot.part !== undefined) slot.body = "the answer has more than one message";
      if (slot.body !== GOOD) record.error(slot.body ?? "no call");
    }
    pending.end(slot);
  }
}

const NO_BLOCK: Block = {
  httpStatus: undefined,
  grpcStatus: undefined,
  grpcMessage: undefined,
  contentType: undefined,
};

function isWhole({ bytes, start, end }: ByteRange): boolean {
  return end - start >= MESSAGE_PREFIX_BYTES &&
    number31(bytes, start + 1) === end - start - MESSAGE_PREFIX_BYTES;
}

function addPart(slot: PendingCall, body: ByteRange): void {
  const part = copied(body);
  slot.part = slot.part === undefined ? part : joined(slot.part, part);
}
