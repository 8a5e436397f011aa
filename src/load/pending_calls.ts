import { type CallStatus, isSent } from "../grpc/client/call_status.ts";
import { type CallTaker, ClientCall } from "../grpc/client/client_call.ts";
import type { RequestHead } from "../grpc/client/request_head.ts";
import type { LoadCall } from "./call_source.ts";
import type { CallRecord } from "./load_record.ts";

/** A part of some bytes. */
export interface ByteRange {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** Finds what is wrong with the message of an answer to this request; undefined when it is good. */
export type MessageCheck = (message: ByteRange, request: Uint8Array) => string | undefined;

/** Options of `PendingCalls`. */
interface PendingCallsOptions {
  readonly head: RequestHead;
  readonly checkMessage: MessageCheck;
  readonly record: CallRecord;
}

/** The calls in flight on one connection: checks each answer, and records it. */
export class PendingCalls {
  readonly #options: PendingCallsOptions;
  /** Objects of ended calls, for later ones. */
  readonly #free: PendingCall[] = [];
  readonly #end = (call: PendingCall, isLost: boolean) => {
    this.size--;
    if (isLost) this.lost++;
    this.#free.push(call);
  };
  /** Calls in flight. */
  size = 0;
  /** Calls that ended without an answer. */
  lost = 0;

  constructor(options: PendingCallsOptions) {
    this.#options = options;
  }

  /** Begins a call to send; its taker checks the answer. */
  begin(call: LoadCall, start: number): ClientCall {
    const pending = this.#free.pop() ?? new PendingCall(this.#options, this.#end);
    pending.begin(call, start);
    this.size++;
    this.#options.record.begin(start);
    return pending.call;
  }
}

const NO_BYTES: Uint8Array = new Uint8Array(0);

/** One call in flight, and what is wrong with its answer so far. */
class PendingCall implements CallTaker {
  readonly call: ClientCall;
  readonly #options: PendingCallsOptions;
  readonly #end: (call: PendingCall, isLost: boolean) => void;
  /** The range of a message; one object for all of them. */
  readonly #range = { bytes: NO_BYTES, start: 0, end: 0 };
  #request = NO_BYTES;
  #start = 0;
  #messages = 0;
  #problem: string | undefined;

  constructor(options: PendingCallsOptions, end: (call: PendingCall, isLost: boolean) => void) {
    this.#options = options;
    this.#end = end;
    this.call = new ClientCall(options.head, this);
  }

  begin({ message }: LoadCall, start: number): void {
    this.#request = message;
    this.#start = start;
    this.#messages = 0;
    this.#problem = undefined;
  }

  message(bytes: Uint8Array, start: number, end: number): void {
    const range = this.#range;
    range.bytes = bytes;
    range.start = start;
    range.end = end;
    this.#messages++;
    this.#problem = this.#messages === 1
      ? this.#options.checkMessage(range, this.#request)
      : "the answer has more than one message";
  }

  ended(status: CallStatus, now: number): void {
    const { record } = this.#options;
    const { code, message } = status;
    const isLost = !isSent(status);
    this.#end(this, isLost);
    if (isLost) return record.lost(message, 1);
    if (code !== "OK") {
      record.badAnswer(code, this.#start, now);
      return record.error(message === "" ? code : `${code}: ${message}`);
    }
    record.goodAnswer(this.#start, now);
    const problem = this.#messages === 0 ? "the answer has no message" : this.#problem;
    if (problem !== undefined) record.error(problem);
  }
}
