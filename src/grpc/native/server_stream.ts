import type { BidiCall, CallContext, CallMetrics } from "../grpc_service.ts";
import { Outgoing, type OutgoingStream } from "./frame_sender.ts";
import { StreamError } from "./frames.ts";
import { LIMITS } from "./limits.ts";
import { MessageReader } from "./message_reader.ts";
import { ReceiveWindow } from "./receive_window.ts";
import type { RequestHead } from "./request_head.ts";

/** The request of one stream: its flow control window and how much has arrived. Only its methods change it. */
class IncomingRequest {
  readonly window = new ReceiveWindow(LIMITS.streamWindow);
  #length = 0;
  /** True if nothing more arrives. */
  isEnded = false;
  /** When the request was complete, in milliseconds; 0 before. */
  endedAt = 0;

  /** All of it has arrived at `now`, and is checked. */
  complete(now: number): void {
    this.isEnded = true;
    this.endedAt = now;
  }

  /** Adds content that arrived at `now`; throws `StreamError` where it contradicts `content-length`. */
  add(bytes: number, isLast: boolean, now: number, { id, head: { contentLength } }: ServerStream): void {
    this.#length += bytes;
    this.isEnded = isLast;
    if (isLast) this.endedAt = now;
    if (contentLength === undefined) return;
    if (this.#length > contentLength || (isLast && this.#length !== contentLength)) {
      throw new StreamError("PROTOCOL_ERROR", id, "content-length is not the length of the content");
    }
  }
}

/** The messages of a request that is not one whole message in one frame. `CallRunner` writes it. */
export class RequestMessages {
  readonly reader: MessageReader;
  /** Messages that arrived. */
  count = 0;
  /** The message of a unary call, until the end of the stream proves that it is the only one. */
  first: Uint8Array | undefined;
  /** The part of `held` that counts against the limit of the connection. */
  counted = 0;

  constructor(encoding: string, maxBytes: number | undefined) {
    this.reader = new MessageReader(encoding, maxBytes);
  }

  /** Bytes that are kept and not handled yet. */
  get held(): number {
    return this.reader.held + (this.first?.length ?? 0);
  }
}

/** One call of a peer. */
export class ServerStream implements CallContext, OutgoingStream {
  readonly id: number;
  readonly head: RequestHead;
  /** When its headers arrived, in milliseconds. */
  readonly openedAt: number;
  readonly request: IncomingRequest = new IncomingRequest();
  readonly outgoing: Outgoing;
  /** Cost of its headers, which the request earns back. */
  headersCost = 0;
  /** Absent while no message had to be assembled. `CallRunner` writes this and the three fields below. */
  messages: RequestMessages | undefined;
  /** Notified when the call is over, once it has started. */
  metrics: CallMetrics | undefined;
  /** Absent before the first message of a call in both directions. */
  bidi: BidiCall | undefined;
  /** Called once when a streaming call ends. */
  onEnd: (() => void) | undefined;
  /** Removed from its connection, which writes this: nothing may be sent on it. */
  isClosed = false;

  constructor(id: number, head: RequestHead, sendWindow: number, now: number) {
    this.id = id;
    this.head = head;
    this.openedAt = now;
    this.outgoing = new Outgoing(sendWindow);
  }

  /** True if nothing may be added to the response: it has ended, or the stream was reset or lost. */
  get isAnswered(): boolean {
    return this.outgoing.isEnded || this.isClosed;
  }

  get cancelled(): boolean {
    return this.isAnswered;
  }

  get fields(): RequestHead["fields"] {
    return this.head.fields;
  }

  header(name: string): string | undefined {
    for (const [known, value] of this.head.fields) {
      if (known === name) return value;
    }
    return undefined;
  }
}
