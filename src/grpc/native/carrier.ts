import type { Duplex } from "node:stream";
import type { GrpcMethod } from "../grpc_service.ts";
import { Connection } from "./connection.ts";
import type { EndedCalls } from "./ended_calls.ts";
import type { OtherProtocol } from "./frames.ts";
import { LIMITS } from "./limits.ts";

/** What a carrier is made with. */
export interface CarrierOptions {
  readonly methods: ReadonlyMap<string, GrpcMethod>;
  /** Milliseconds. */
  readonly now: () => number;
  /** Age at which the peer is asked to go. */
  readonly maxAgeMs: number;
  /** How long after that the connection is closed. */
  readonly graceMs: number;
  readonly onFault: (method: string, error: unknown) => void;
  readonly onStranger: (spoken: OtherProtocol) => void;
  readonly onDeadline: () => void;
  /** The socket is closed. */
  readonly onClosed: () => void;
  /** Where calls that are over wait for the clock to be read, those of other connections among them. */
  readonly ended: EndedCalls;
}

/** How long a peer may take to answer the PING that goes with the first GOAWAY. */
const DRAIN_PING_MS = 5_000;
/** How long a peer may take to close after we did. */
const LINGER_MS = 1_000;

/** One socket and its connection: carries octets between them, and looks after both. */
export class Carrier {
  readonly #socket: Duplex;
  readonly #options: CarrierOptions;
  readonly #connection: Connection;
  readonly #openedAt: number;
  #flushDue = false;
  #drainedAt: number | undefined;
  /** When it was asked to go for its age, after which it has a grace of its own. */
  #agedAt: number | undefined;
  #endedAt: number | undefined;
  /** Nothing is read from the peer since then, because it does not take what is written to it. */
  #pausedAt: number | undefined;

  constructor(socket: Duplex, options: CarrierOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#openedAt = options.now();
    this.#connection = new Connection({
      methods: options.methods,
      now: options.now,
      onOutput: () => this.#flushSoon(),
      onFault: options.onFault,
      onStranger: options.onStranger,
      onDeadline: options.onDeadline,
      onEnded: (figures, startedAt) => options.ended.note(figures, startedAt),
    });
    socket.on("data", (chunk: Uint8Array) => {
      // Of a peer that was refused nothing more is read: to throw a flood away takes time from all others.
      if (this.#connection.refused) return void socket.pause();
      // A view of a Buffer is made by a constructor of its own, which takes several times as long.
      this.#connection.receive(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
      this.#flush();
      this.#readOn();
    });
    socket.on("drain", () => this.#resume());
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#connection.abandon();
      options.ended.tell();
      options.onClosed();
    });
    this.#flush();
  }

  /** Asks the peer to go; the connection closes when its running calls are answered. */
  drain(options: { readonly keepStreams?: boolean } = {}): void {
    this.#drainedAt ??= this.#options.now();
    if (options.keepStreams === true) this.#agedAt ??= this.#drainedAt;
    this.#connection.drain(options);
    this.#flush();
  }

  /** Closes at once. */
  destroy(): void {
    this.#socket.destroy();
  }

  /** Ends calls whose time is over; answers whether some wait with a deadline. */
  expire(now: number): boolean {
    const waiting = this.#connection.expire(now);
    this.#flush();
    return waiting;
  }

  /** Looks after everything that takes a second or more. */
  tick(now: number): void {
    const connection = this.#connection;
    connection.expire(now);
    if (!connection.established && now - this.#openedAt >= LIMITS.handshakeMs) return this.destroy();
    if (this.#endedAt !== undefined && now - this.#endedAt >= LINGER_MS) return this.destroy();
    if (this.#pausedAt !== undefined && now - this.#pausedAt >= LIMITS.unsentMs) return this.destroy();
    if (this.#drainedAt === undefined) {
      if (now - this.#openedAt >= this.#options.maxAgeMs) this.#age();
    } else {
      if (now - this.#drainedAt >= DRAIN_PING_MS) connection.finishDraining();
      const { graceMs } = this.#options;
      if (this.#agedAt !== undefined && now - this.#agedAt >= graceMs) return this.destroy();
    }
    this.#keepAlive(now);
    this.#flush();
  }

  /** Asks the peer to go for its age; without a grace it is cut as soon as it has been asked. */
  #age(): void {
    this.drain({ keepStreams: true });
    if (this.#options.graceMs > 0) return;
    this.#endedAt ??= this.#drainedAt;
    this.#socket.end(() => this.#socket.destroy());
  }

  #keepAlive(now: number): void {
    const { pingSentAt, lastReceivedAt } = this.#connection;
    if (now - lastReceivedAt < LIMITS.keepaliveMs) return;
    if (pingSentAt === undefined) this.#connection.ping();
    else if (now - pingSentAt >= LIMITS.keepaliveTimeoutMs) this.destroy();
  }

  /** Goes on with what was read and waits, as long as the peer takes what is written. */
  #readOn(): void {
    while (this.#connection.stalled && this.#pausedAt === undefined && !this.#socket.destroyed) {
      this.#connection.readOn();
      this.#flush();
    }
  }

  /** Output that comes outside of a read goes out once, after everything of this turn. */
  #flushSoon(): void {
    if (this.#flushDue) return;
    this.#flushDue = true;
    queueMicrotask(() => {
      this.#flushDue = false;
      this.#flush();
    });
  }

  #flush(): void {
    this.#options.ended.tell();
    const { output } = this.#connection.sender;
    const socket = this.#socket;
    if (output.length > 0 && !socket.destroyed && this.#endedAt === undefined) {
      const taken = output.take();
      socket.write(taken, (error) => {
        if (error === undefined || error === null) output.give(taken);
      });
      if (socket.writableLength > LIMITS.unsentBytes && this.#pausedAt === undefined) {
        this.#pausedAt = this.#options.now();
        socket.pause();
      }
    }
    if (!this.#connection.closing || this.#endedAt !== undefined) return;
    this.#endedAt = this.#options.now();
    socket.end();
  }

  #resume(): void {
    if (this.#pausedAt === undefined) return;
    this.#pausedAt = undefined;
    this.#socket.resume();
    this.#readOn();
  }
}
