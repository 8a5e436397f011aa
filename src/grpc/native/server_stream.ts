import type { CallContext, CallFigures } from "../grpc_service.ts";
import { MessageReader } from "./message_reader.ts";
import type { RequestHead } from "./request_head.ts";

/** What waits to be sent on a stream until the peer lets more in. */
export interface Queued {
  /** Payload of DATA frames, in order. */
  readonly pieces: Uint8Array[];
  /** Octets in `pieces`. */
  length: number;
  /** The block of headers that ends the stream behind them; absent while it goes on. */
  trailers: Uint8Array | undefined;
}

/** One call of a peer. */
export class ServerStream implements CallContext {
  readonly id: number;
  readonly head: RequestHead;
  /** When its headers came, in milliseconds. */
  readonly openedAt: number;
  /** When its request was whole, in milliseconds. */
  requestedAt: number;
  /** Octets of DATA that the peer still lets us send. */
  sendWindow: number;
  /** Octets of DATA that the peer still may send. */
  receiveWindow: number;
  /** Octets of DATA without padding that came. */
  received = 0;
  /** Nothing more comes. */
  remoteEnded = false;
  /** The headers of the answer are sent. */
  headersSent = false;
  /** The end of the answer is sent or waits to be; whatever the call still brings is dropped. */
  answered = false;
  /** Messages that came. */
  messages = 0;
  /** How much of `held` counts against the connection's bound. */
  heldCounted = 0;
  /** Taken out of its connection; nothing may be sent on it. */
  closed = false;
  /** The one message of a unary call, until the stream's end says that there is no other. */
  request: Uint8Array | undefined;
  queued: Queued | undefined;
  /** Told when the call is over, once it has started. */
  figures: CallFigures | undefined;
  /** Called once when the stream ends, for streams that the server feeds. */
  onEnd: (() => void) | undefined;
  #reader: MessageReader | undefined;

  constructor(id: number, head: RequestHead, windows: { send: number; receive: number; now: number }) {
    this.id = id;
    this.head = head;
    this.openedAt = windows.now;
    this.requestedAt = windows.now;
    this.sendWindow = windows.send;
    this.receiveWindow = windows.receive;
  }

  /** Puts the messages together; made when the first octets come. */
  get reader(): MessageReader {
    return this.#reader ??= new MessageReader(this.head.encoding);
  }

  /** Octets kept of a message that is not whole. */
  get unfinished(): number {
    return this.#reader?.held ?? 0;
  }

  /** Octets kept of what came and is not handled. */
  get held(): number {
    return this.unfinished + (this.request?.length ?? 0);
  }

  /** A stream that is reset, past its deadline or without its connection counts as answered. */
  get gone(): boolean {
    return this.answered;
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
