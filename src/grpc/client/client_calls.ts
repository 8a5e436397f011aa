import { FrameSender, NO_TRAILERS } from "../native/frame_sender.ts";
import { FLAG, FRAME } from "../native/frames.ts";
import { LIMITS } from "../native/limits.ts";
import { type CallOptions, type CallTaker, ClientCall } from "./client_call.ts";
import { type CallStatus, localStatus } from "./call_status.ts";
import { HeadEncoder, type RequestHead, timeoutText } from "./request_head.ts";

/** Options of `ClientCalls`. */
interface ClientCallsOptions {
  /** Milliseconds; only differences count. */
  readonly now: () => number;
  /** Bytes of a call were written to the output, or queued. */
  readonly onOutput: () => void;
  /** A call began or sent a message. */
  readonly onWork: () => void;
  /** A call ended. */
  readonly onEnded: () => void;
}

/** Calls that wait because the server allows no more at the same time. */
const MAX_WAITING = 10_000;
/** Bytes of messages that wait for the windows of the server, and of output that waits for the socket. */
const QUEUED = { queuedStreamBytes: 67_108_864, queuedBytes: 134_217_728, outputBytes: LIMITS.unsentBytes };
const MAX_STREAM_ID = 2 ** 31 - 1;
const OVERFLOWED = localStatus("RESOURCE_EXHAUSTED", "too many bytes wait for the server to read them");
const TOO_MANY = localStatus("RESOURCE_EXHAUSTED", `more than ${MAX_WAITING} calls wait for the server`);
const TIMED_OUT = localStatus("DEADLINE_EXCEEDED", "no answer before the deadline");
const NO_STREAM = localStatus("UNAVAILABLE", "the connection has carried as many calls as HTTP/2 allows");

/** The calls of one connection: begins them within the limits of the server, writes their requests and ends them. */
export class ClientCalls {
  readonly sender: FrameSender<ClientCall>;
  readonly heads = new HeadEncoder();
  /** Running calls whose requests go on, by their streams. */
  readonly sending = {
    get: (streamId: number): ClientCall | undefined => {
      const call = this.#running.get(streamId);
      return call?.isWhole === true ? undefined : call;
    },
    values: (): ClientCall[] => [...this.#running.values()].filter(({ isWhole }) => !isWhole),
  };
  readonly #options: ClientCallsOptions;
  readonly #running = new Map<number, ClientCall>();
  readonly #waiting = new Set<ClientCall>();
  #nextId = 1;
  /** Number of calls that the server allows at the same time; none before its greeting. */
  maxRunning = 0;
  /** Why no further call begins; absent while calls begin. */
  end: CallStatus | undefined;

  constructor(options: ClientCallsOptions) {
    this.#options = options;
    this.sender = new FrameSender<ClientCall>({
      finished: () => {},
      overflowed: (call) => this.cancel(call, OVERFLOWED),
      advanced: (call) => call.taker.advanced?.(),
    }, QUEUED);
  }

  /** Calls that have not ended, whether they run or wait. */
  get size(): number {
    return this.#running.size + this.#waiting.size;
  }

  /** The highest stream that was opened; 0 before the first one. */
  get lastId(): number {
    return Math.max(0, this.#nextId - 2);
  }

  /** True if a call begins now, instead of waiting for the end of another. */
  get hasRoom(): boolean {
    return this.end === undefined && this.#running.size < this.maxRunning &&
      this.sender.output.length < QUEUED.outputBytes;
  }

  /** The running call on a stream. */
  get(streamId: number): ClientCall | undefined {
    return this.#running.get(streamId);
  }

  /**
   * Begins a call, now or as soon as the server allows one more. The taker may be notified of its end before this
   * returns. Metadata must have been checked.
   */
  begin(head: RequestHead, taker: CallTaker, options: CallOptions): ClientCall {
    const call = new ClientCall(head, taker, options);
    if (this.end !== undefined) this.#finish(call, this.end);
    else if (this.hasRoom) this.#openUsual(call);
    else if (this.#waiting.size < MAX_WAITING) this.#waiting.add(call);
    else this.#finish(call, TOO_MANY);
    this.#options.onOutput();
    return call;
  }

  /**
   * Begins a call whose request is this DATA frame, which ends it; false when it would have to wait. It is a new one
   * without options, or one that is over: then it is used again.
   */
  beginWhole(call: ClientCall, data: Uint8Array, bodyBytes: number): boolean {
    const { sender } = this;
    if (!this.hasRoom || bodyBytes > sender.window || bodyBytes > sender.initialWindow) return false;
    if (call.id !== 0) call.renew();
    call.isWhole = true;
    this.#open(call, this.heads.known(call.head) ?? this.heads.encode(call.head));
    sender.output.encoded(data, call.id);
    sender.window -= bodyBytes;
    return true;
  }

  /** Sends a message with its prefix, now or when the windows allow it. */
  send(call: ClientCall, framed: Uint8Array, isLast: boolean): void {
    if (call.isOver || call.isRequestEnded) return;
    if (isLast) call.outgoing.isEnded = true;
    this.#options.onWork();
    this.sender.queue(call, framed, isLast ? NO_TRAILERS : undefined);
    this.#options.onOutput();
  }

  /** Ends the request; the answer continues. */
  closeSend(call: ClientCall): void {
    if (call.isOver || call.isRequestEnded) return;
    if (call.id === 0 && call.outgoing.queued === undefined) call.outgoing.isEnded = true;
    else this.sender.finish(call);
    this.#options.onOutput();
  }

  /** Lets the server send more, unless most of the window is left. */
  readMore(call: ClientCall): void {
    if (call.isOver || call.id === 0) return;
    const refill = call.window.refill();
    if (refill === 0) return;
    this.sender.windowUpdate(call.id, refill);
    this.#options.onOutput();
  }

  /** The answer has ended, so the rest of the request is not needed. */
  complete(call: ClientCall, status: CallStatus, now: number): void {
    if (!call.isRequestSent) this.sender.reset(call.id, "CANCEL");
    this.#finish(call, status, now);
  }

  /** Ends a call whose stream is reset, by either side. */
  drop(call: ClientCall, status: CallStatus, now: number): void {
    const { deadlineAt = Infinity } = call.options;
    this.#finish(call, deadlineAt <= now ? TIMED_OUT : status, now);
  }

  /** Ends a call with this status; the server is asked to stop. */
  cancel(call: ClientCall, status: CallStatus): void {
    if (call.isOver) return;
    if (call.id !== 0) this.sender.reset(call.id, "CANCEL");
    this.#finish(call, status);
    this.#options.onOutput();
  }

  /** Ends calls past their deadline; returns the earliest deadline that is left, or Infinity. */
  expire(now: number): number {
    let next = Infinity;
    for (const call of [...this.#running.values(), ...this.#waiting]) {
      const { deadlineAt = Infinity } = call.options;
      if (deadlineAt <= now) this.cancel(call, TIMED_OUT);
      else next = Math.min(next, deadlineAt);
    }
    return next;
  }

  /** Begins calls that wait. */
  fill(): void {
    for (const call of this.#waiting) {
      if (!this.hasRoom) return;
      this.#waiting.delete(call);
      this.#openUsual(call);
      // What was sent so far is queued.
      if (call.outgoing.queued !== undefined) this.sender.widenStream(call, 0);
      else if (call.outgoing.isEnded) this.sender.finish(call);
    }
  }

  /** Begins no further calls, and ends those that wait and those on streams above `lastId`. */
  stop(status: CallStatus, lastId = MAX_STREAM_ID): void {
    this.end ??= status;
    for (const call of [...this.#running.values(), ...this.#waiting]) {
      if (call.id === 0 || call.id > lastId) this.#finish(call, status);
    }
  }

  #openUsual(call: ClientCall): void {
    const { metadata = [], deadlineAt } = call.options;
    const timeout = deadlineAt === undefined ? undefined : timeoutText(deadlineAt - this.#options.now());
    const more = timeout === undefined ? metadata : [["grpc-timeout", timeout] as const, ...metadata];
    this.#open(call, this.heads.encode(call.head, more));
    call.outgoing.window = this.sender.initialWindow;
  }

  #open(call: ClientCall, block: Uint8Array): void {
    call.id = this.#nextId;
    this.#nextId += 2;
    if (this.#nextId > MAX_STREAM_ID) this.end ??= NO_STREAM;
    this.#running.set(call.id, call);
    this.#options.onWork();
    const { output } = this.sender;
    output.frame(block.length, FRAME.HEADERS, FLAG.END_HEADERS, call.id);
    output.bytes(block);
  }

  #finish(call: ClientCall, status: CallStatus, now = this.#options.now()): void {
    if (call.isOver) return;
    call.isOver = true;
    if (!call.isWhole) this.sender.forget(call);
    if (call.id === 0) this.#waiting.delete(call);
    else this.#running.delete(call.id);
    call.options.onOver?.();
    call.taker.ended(status, now);
    this.#options.onEnded();
  }
}
