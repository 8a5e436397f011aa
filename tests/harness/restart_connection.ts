import type { Duplex } from "node:stream";
import { systemClock } from "../../src/base/clock.ts";
import { dialAddressOf } from "../../src/base/host_port.ts";
import { dial } from "../../src/grpc/client/dial.ts";
import {
  ERROR_CODES,
  FLAG,
  FRAME,
  FRAME_HEADER_BYTES,
  joined,
  readUint32,
} from "../../src/grpc/native/frames.ts";
import { HpackDecoder } from "../../src/grpc/native/hpack_decoder.ts";
import { SHOULD_RATE_LIMIT } from "./grpc_client.ts";
import {
  callFields,
  concatBytes,
  content,
  frame,
  greeting,
  headerBlock,
  headers,
  message,
  windowUpdate,
} from "./h2_peer.ts";

/** The outcome of a call: a response, a server that had not begun it, or anything else. */
type CallOutcome =
  | { readonly kind: "answer"; readonly status: string; readonly body: Uint8Array }
  | { readonly kind: "refused" }
  | { readonly kind: "broken"; readonly why: string };

const NO_BYTES: Uint8Array = new Uint8Array(0);
const HEADER_BLOCK = headerBlock(callFields(SHOULD_RATE_LIMIT));
/** Room for all answers of a connection, so that no window has to be opened. */
const WINDOW = 2 ** 30;
const CONNECT_MS = 30_000;

interface OpenCall {
  body: Uint8Array;
  status: string;
  readonly end: (outcome: CallOutcome) => void;
}

/**
 * A connection of a client that does as RFC 9113 says when the server wants it to go: it sends nothing
 * more after the first GOAWAY, and knows from the last one which of its calls the server never began.
 */
export class RestartConnection {
  readonly #socket: Duplex;
  readonly #calls = new Map<number, OpenCall>();
  readonly #decoder = new HpackDecoder();
  readonly #greeted = Promise.withResolvers<boolean>();
  #rest = NO_BYTES;
  #nextId = 1;
  #wanted = true;

  /** Connects to `host:port` or `unix:path`; absent when the connection ends before the server said a word. */
  static async open(address: string): Promise<RestartConnection | undefined> {
    const options = { signal: AbortSignal.timeout(CONNECT_MS), clock: systemClock };
    const socket = await dial({ address: dialAddressOf(address) }, options).catch(() => undefined);
    if (socket === undefined) return undefined;
    const connection = new RestartConnection(socket);
    return await connection.#greeted.promise ? connection : undefined;
  }

  private constructor(socket: Duplex) {
    this.#socket = socket;
    socket.on("error", () => {});
    socket.write(concatBytes(greeting(), windowUpdate(0, WINDOW)));
    socket.on("data", (chunk: Uint8Array) => this.#read(chunk));
    socket.on("close", () => {
      this.#wanted = false;
      this.#greeted.resolve(false);
      for (const id of [...this.#calls.keys()]) this.#end(id, { kind: "broken", why: "connection closed" });
    });
  }

  /** Returns whether calls may be sent: the server has not asked the client to go. */
  get usable(): boolean {
    return this.#wanted;
  }

  /** Asks for a decision. */
  call(request: Uint8Array): Promise<CallOutcome> {
    const id = this.#nextId;
    this.#nextId += 2;
    return new Promise((end) => {
      this.#calls.set(id, { body: NO_BYTES, status: "", end });
      this.#socket.write(concatBytes(headers(id, HEADER_BLOCK), content(id, message(request), true)));
    });
  }

  /** Ends the connection, which has no calls any more. */
  close(): void {
    this.#wanted = false;
    this.#socket.destroy();
  }

  #read(chunk: Uint8Array): void {
    const bytes = this.#rest.length === 0 ? chunk : joined(this.#rest, chunk);
    let at = 0;
    while (bytes.length - at >= FRAME_HEADER_BYTES) {
      const end = at + FRAME_HEADER_BYTES + (readUint32(bytes, at) >>> 8);
      if (end > bytes.length) break;
      const [, , , type = 0, flags = 0] = bytes.subarray(at, at + 5);
      this.#frame(type, flags, readUint32(bytes, at + 5), bytes.subarray(at + FRAME_HEADER_BYTES, end));
      at = end;
    }
    this.#rest = bytes.slice(at);
  }

  #frame(type: number, flags: number, streamId: number, payload: Uint8Array): void {
    const call = this.#calls.get(streamId);
    const ends = (flags & FLAG.END_STREAM) !== 0;
    if (type === FRAME.SETTINGS && (flags & FLAG.ACK) === 0) {
      this.#socket.write(frame(FRAME.SETTINGS, 0, NO_BYTES, FLAG.ACK));
      this.#greeted.resolve(true);
    } else if (type === FRAME.PING && (flags & FLAG.ACK) === 0) {
      this.#socket.write(frame(FRAME.PING, 0, payload, FLAG.ACK));
    } else if (type === FRAME.GOAWAY) this.#leave(readUint32(payload, 0));
    else if (type === FRAME.RST_STREAM) this.#onReset(streamId, readUint32(payload, 0));
    else if (type === FRAME.DATA && call !== undefined) call.body = joined(call.body, payload);
    else if (type === FRAME.HEADERS) {
      for (const [name, value] of this.#decoder.decode(payload)) {
        if (name === "grpc-status" && call !== undefined) call.status = value;
      }
    }
    if (ends && call !== undefined && (type === FRAME.DATA || type === FRAME.HEADERS)) {
      this.#end(streamId, { kind: "answer", status: call.status, body: call.body.subarray(5) });
    }
  }

  #leave(lastStreamId: number): void {
    this.#wanted = false;
    for (const id of [...this.#calls.keys()]) if (id > lastStreamId) this.#end(id, { kind: "refused" });
  }

  #onReset(streamId: number, code: number): void {
    if (code === ERROR_CODES.REFUSED_STREAM) this.#end(streamId, { kind: "refused" });
    else this.#end(streamId, { kind: "broken", why: `reset with code ${code}` });
  }

  #end(streamId: number, outcome: CallOutcome): void {
    const call = this.#calls.get(streamId);
    this.#calls.delete(streamId);
    call?.end(outcome);
  }
}
