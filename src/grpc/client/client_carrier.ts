import type { Duplex } from "node:stream";
import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import { TurnTask } from "../../base/turn.ts";
import { LIMITS } from "../native/limits.ts";
import { type CallStatus, localStatus } from "./call_status.ts";
import { ClientConnection } from "./client_connection.ts";

/** When a silent server is asked whether it is there, and how long it may take to answer. */
export interface Keepalive {
  readonly everyMs: number;
  readonly withinMs: number;
}

/** Options of `ClientCarrier`. */
interface ClientCarrierOptions {
  readonly clock: Clock;
  /** No PING is sent when absent. */
  readonly keepalive?: Keepalive | undefined;
  /** The server has sent its greeting, so that calls begin. */
  readonly onReady?: (() => void) | undefined;
  /** Received bytes were handled. */
  readonly onRead?: ((now: number) => void) | undefined;
  /** The socket is closed, and every call has ended with the status. */
  readonly onClosed: (status: CallStatus) => void;
}

/** Timeout of the last output. */
const LINGER_MS = 1_000;
const GOAWAY_SENT = localStatus("UNAVAILABLE", "the connection was closed");

/** Carries bytes between one socket and its connection, and enforces the timeouts of both. */
export class ClientCarrier {
  readonly connection: ClientConnection;
  readonly #socket: Duplex;
  readonly #options: ClientCarrierOptions;
  /** Writes the output that does not follow from a read. */
  readonly #flushSoon = new TurnTask(() => this.flush());
  #status: CallStatus | undefined;
  #isEnded = false;
  /** Since when the server has not read what was written. */
  #pausedAt: number | undefined;
  #timer: { readonly at: number; readonly cancel: () => void } | undefined;
  /** The earliest deadline of a call, or earlier. */
  #deadlineAt = Infinity;

  constructor(socket: Duplex, options: ClientCarrierOptions) {
    const { clock } = options;
    this.#socket = socket;
    this.#options = options;
    this.connection = new ClientConnection({
      now: () => clock.elapsed(),
      onOutput: () => this.#flushSoon.request(),
      onReady: options.onReady,
      onRead: options.onRead,
    });
    socket.on("data", (chunk: Uint8Array) => {
      // `Buffer.subarray` and its like take several times as long as a plain view.
      this.connection.receive(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
      this.flush();
    });
    socket.on("drain", () => this.#onDrain());
    socket.on("error", (error) => this.#status ??= localStatus("UNAVAILABLE", errorText(error)));
    socket.on("close", () => this.#onClose());
    this.flush();
    this.#schedule();
  }

  /** A call ends at this time unless it ended before. */
  expireAt(at: number): void {
    if (at >= this.#deadlineAt) return;
    this.#deadlineAt = at;
    this.#schedule();
  }

  /** Closes immediately; calls end with this status. */
  destroy(status: CallStatus): void {
    this.#status ??= status;
    this.#socket.destroy();
  }

  /** Writes the output, unless the server does not read what was written before. */
  flush(): void {
    const { connection } = this;
    const { output } = connection;
    const socket = this.#socket;
    if (output.length > 0 && this.#pausedAt === undefined && !this.#isEnded && !socket.destroyed) {
      const taken = output.take();
      socket.write(taken, (error) => {
        if (error === undefined || error === null) output.give(taken);
      });
      if (socket.writableLength > LIMITS.unsentBytes) this.#pause();
      else connection.readOn();
      // What had no room in the output before.
      if (output.length > 0) this.#flushSoon.request();
    }
    if (connection.isClosing && !this.#isEnded) this.#end();
  }

  #pause(): void {
    this.#pausedAt = this.#options.clock.elapsed();
    this.#socket.pause();
    this.#schedule();
  }

  #onDrain(): void {
    if (this.#pausedAt === undefined) return;
    this.#pausedAt = undefined;
    this.#socket.resume();
    this.connection.readOn();
    this.flush();
  }

  /** The last output is written. */
  #end(): void {
    this.#isEnded = true;
    this.#status ??= this.connection.calls.end ?? GOAWAY_SENT;
    this.#socket.end(() => this.#socket.destroy());
    this.#schedule();
  }

  #onClose(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const status = this.#status ?? localStatus("UNAVAILABLE", "the server closed the connection");
    this.connection.abandon(status);
    this.#options.onClosed(status);
  }

  /** Sets the timer for the next timeout. */
  #schedule(): void {
    const at = this.#nextTimeout();
    if (this.#socket.destroyed || (this.#timer !== undefined && this.#timer.at <= at)) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (at === Infinity) return;
    const { clock } = this.#options;
    this.#timer = { at, cancel: clock.after(Math.max(0, at - clock.elapsed()), () => this.#onTimer()) };
  }

  #nextTimeout(): number {
    const { clock, keepalive } = this.#options;
    if (this.#isEnded) return clock.elapsed() + LINGER_MS;
    const { pingSentAt, lastReceivedAt } = this.connection;
    const unsentAt = (this.#pausedAt ?? Infinity) + LIMITS.unsentMs;
    const pingAt = keepalive === undefined
      ? Infinity
      : pingSentAt === undefined
      ? lastReceivedAt + keepalive.everyMs
      : pingSentAt + keepalive.withinMs;
    return Math.min(this.#deadlineAt, unsentAt, pingAt);
  }

  #onTimer(): void {
    this.#timer = undefined;
    const now = this.#options.clock.elapsed();
    if (this.#isEnded) return void this.#socket.destroy();
    if (this.#pausedAt !== undefined && now - this.#pausedAt >= LIMITS.unsentMs) {
      return this.destroy(localStatus("UNAVAILABLE", "the server does not read what is sent"));
    }
    if (now >= this.#deadlineAt) this.#deadlineAt = this.connection.calls.expire(now);
    this.#keepAlive(now);
    this.flush();
    this.#schedule();
  }

  #keepAlive(now: number): void {
    const { keepalive } = this.#options;
    const { pingSentAt, lastReceivedAt } = this.connection;
    if (keepalive === undefined) return;
    if (pingSentAt !== undefined) {
      if (now - pingSentAt < keepalive.withinMs) return;
      this.destroy(localStatus("UNAVAILABLE", "the server did not answer a keepalive ping"));
    } else if (now - lastReceivedAt >= keepalive.everyMs) this.connection.ping();
  }
}
