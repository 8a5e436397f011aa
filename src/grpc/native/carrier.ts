import type { Duplex } from "node:stream";
import { TurnTask } from "../../base/turn.ts";
import { Connection, type ConnectionServices } from "./connection.ts";
import type { EndedCalls } from "./ended_calls.ts";
import { LIMITS } from "./limits.ts";

/** The services of a carrier, and the receivers of its reports. */
interface CarrierOptions extends ConnectionServices {
  /** Age at which the peer is asked to go away. */
  readonly maxAgeMs: number;
  /** Time after that until the connection is closed. */
  readonly graceMs: number;
  /** The socket is closed. */
  readonly onClosed: () => void;
  /** Calls of all connections that are over and whose metrics wait for a reading of the clock. */
  readonly ended: EndedCalls;
}

/** Timeout for the answer to the PING that goes with the first GOAWAY. */
const DRAIN_PING_MS = 5_000;
/** Timeout for the peer to close after we did. */
const LINGER_MS = 1_000;

/** Carries bytes between one socket and its connection, and enforces the timeouts of both. */
export class Carrier {
  readonly #socket: Duplex;
  readonly #options: CarrierOptions;
  readonly #connection: Connection;
  readonly #openedAt: number;
  /** Writes the output that does not follow from a read. */
  readonly #flushSoon = new TurnTask(() => this.#flush());
  #drainedAt: number | undefined;
  /** When the peer was asked to go away because of the connection's age, which begins a separate grace. */
  #agedAt: number | undefined;
  #endedAt: number | undefined;
  /** Since when nothing is read from the peer because it does not read what is written to it. */
  #pausedAt: number | undefined;

  constructor(socket: Duplex, options: CarrierOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#openedAt = options.now();
    this.#connection = new Connection({
      ...options,
      onOutput: () => this.#flushSoon.request(),
      onEnded: (metrics, startedAt) => options.ended.note(metrics, startedAt),
    });
    socket.on("data", (chunk: Uint8Array) => {
      // Reading and discarding the flood of a refused peer would take time from all others.
      if (this.#connection.isRefused) return void socket.pause();
      // `Buffer.subarray` and its like take several times as long as a plain view.
      this.#connection.receive(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
      this.#flush();
      this.#readOn();
    });
    socket.on("drain", () => this.#resume());
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#connection.abandon();
      options.ended.flush();
      options.onClosed();
    });
    this.#flush();
  }

  /** Asks the peer to go away; the connection closes when its running calls are answered. */
  drain(options: { readonly keepStreams?: boolean } = {}): void {
    this.#drainedAt ??= this.#options.now();
    if (options.keepStreams === true) this.#agedAt ??= this.#drainedAt;
    this.#connection.drain(options);
    this.#flush();
  }

  /** Closes immediately. */
  destroy(): void {
    this.#socket.destroy();
  }

  /** Ends calls past their deadline; returns whether some wait with a deadline. */
  expire(now: number): boolean {
    const waiting = this.#connection.expire(now);
    this.#flush();
    return waiting;
  }

  /** Checks every timeout of a second or more. */
  tick(now: number): void {
    const connection = this.#connection;
    connection.expire(now);
    if (!connection.isEstablished && now - this.#openedAt >= LIMITS.handshakeMs) return this.destroy();
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

  /** Asks the peer to go away because of the connection's age; without a grace, closes after the request is sent. */
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

  /** Continues with frames that wait, as long as the peer reads what is written. */
  #readOn(): void {
    while (this.#connection.isStalled && this.#pausedAt === undefined && !this.#socket.destroyed) {
      this.#connection.readOn();
      this.#flush();
    }
  }

  #flush(): void {
    this.#options.ended.flush();
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
    if (!this.#connection.isClosing || this.#endedAt !== undefined) return;
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
