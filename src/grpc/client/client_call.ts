import { Outgoing, type OutgoingStream } from "../native/frame_sender.ts";
import type { MessageReader } from "../native/message_reader.ts";
import { ReceiveWindow } from "../native/receive_window.ts";
import type { CallStatus } from "./call_status.ts";
import type { RequestHead } from "./request_head.ts";

/** Flow control window of each answer. */
export const STREAM_WINDOW = 262_144;

/** Takes the answer of one call. Its functions must not throw; they may begin and end calls. */
export interface CallTaker {
  /** Takes a message between two positions of bytes that are only valid during the call. */
  message(bytes: Uint8Array, start: number, end: number, now: number): void;
  /** The call is over. It is the last event. */
  ended(status: CallStatus, now: number): void;
  /** A part of what was queued is sent. */
  advanced?(): void;
  /** True if so many messages wait that the server must not send more, until `readOn`. */
  readonly isFull?: boolean;
}

/** Head fields of a call in addition to those of its method. */
export interface CallOptions {
  /** Metadata in the order in which it is sent. */
  readonly metadata?: readonly (readonly [name: string, value: string])[] | undefined;
  /** When the call ends with DEADLINE_EXCEEDED, by the clock of the connection. */
  readonly deadlineAt?: number | undefined;
  /** Maximum size of a message of the answer; 4 MiB when absent. */
  readonly maxMessageBytes?: number | undefined;
  /** Called once when the call is over. */
  readonly onOver?: (() => void) | undefined;
}

/** One call. Its connection writes it. */
export class ClientCall implements OutgoingStream {
  /** 0 until the call has begun. */
  id = 0;
  readonly head: RequestHead;
  readonly taker: CallTaker;
  readonly options: CallOptions;
  /** The messages of the answer; absent before its headers. */
  messages: MessageReader | undefined;
  isOver = false;
  /** True if the whole request is sent or queued in one frame, so that nothing more is sent. */
  isWhole = false;
  #outgoing: Outgoing | undefined;
  #window: ReceiveWindow | undefined;

  constructor(head: RequestHead, taker: CallTaker, options: CallOptions = {}) {
    this.head = head;
    this.taker = taker;
    this.options = options;
  }

  /** Makes a call that is over a new one. */
  renew(): void {
    this.id = 0;
    this.messages = undefined;
    this.isOver = false;
    this.#outgoing = undefined;
    this.#window = undefined;
  }

  /** The queued request. Created when needed: most requests are one frame. */
  get outgoing(): Outgoing {
    return this.#outgoing ??= new Outgoing(0);
  }

  /** The window of the answer. */
  get window(): ReceiveWindow {
    return this.#window ??= new ReceiveWindow(STREAM_WINDOW);
  }

  /** True if no further message may be sent. */
  get isRequestEnded(): boolean {
    return this.isWhole || this.#outgoing?.isEnded === true;
  }

  /** True if the request is sent to its end, so that its stream needs no reset after the answer. */
  get isRequestSent(): boolean {
    return this.isWhole || (this.#outgoing?.isEnded === true && this.#outgoing.queued === undefined);
  }
}
