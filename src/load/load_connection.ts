import { systemClock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { Fifo } from "../base/fifo.ts";
import { localStatus } from "../grpc/client/call_status.ts";
import { ClientCarrier } from "../grpc/client/client_carrier.ts";
import { authorityOf, dialGrpc, type GrpcTarget } from "../grpc/client/dial.ts";
import { requestHead } from "../grpc/client/request_head.ts";
import type { LoadCall } from "./call_source.ts";
import type { CallRecord } from "./load_record.ts";
import { type MessageCheck, PendingCalls } from "./pending_calls.ts";

/** Options of `LoadConnection`. */
interface LoadConnectionOptions {
  readonly peer: GrpcTarget;
  /** Path of the method. */
  readonly path: string;
  readonly inFlight: number;
  readonly checkMessage: MessageCheck;
  readonly record: CallRecord;
  /** The next call, or undefined to stop; absent where calls are only offered. */
  readonly nextCall?: ((now: number) => LoadCall | undefined) | undefined;
  /** While it returns true, no next call begins and the connection stays open; `resume` asks again. */
  readonly isPaused?: ((now: number) => boolean) | undefined;
  /** Closes the connection, even with calls in flight. */
  readonly deadline: AbortSignal;
}

/** One connection that keeps calls in flight, checks every answer, and records it. */
export class LoadConnection {
  readonly #options: LoadConnectionOptions;
  readonly #pending: PendingCalls;
  readonly #waiting = new Fifo<{ readonly call: LoadCall; readonly start: number }>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #closed = Promise.withResolvers<void>();
  readonly #dialling = new AbortController();
  #carrier: ClientCarrier | undefined;
  #isStopping = false;
  /** Why no further call can begin. */
  #refused: string | undefined;
  #now = 0;

  constructor(options: LoadConnectionOptions) {
    const { peer, path, deadline } = options;
    this.#options = options;
    const scheme = peer.tls === undefined ? "http" : "https";
    const head = requestHead({ path, scheme, authority: authorityOf(peer) });
    this.#pending = new PendingCalls({ ...options, head });
    deadline.addEventListener("abort", () => this.#destroy("no answer before the deadline"), { once: true });
    void this.#open();
  }

  /** Settles when calls can begin, or when the connection has failed. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Settles when the connection is closed: the last call is answered or lost. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** Offered calls that have not begun. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Begins a call that was due at `start`, now or as soon as there is room. */
  offer(call: LoadCall, start: number): void {
    if (this.#refused !== undefined) return this.#options.record.error(this.#refused);
    this.#waiting.push({ call, start });
    this.#fill();
  }

  /** Asks for calls again after a pause. */
  resume(): void {
    this.#now = performance.now();
    this.#fill();
  }

  /** Closes the connection if calls cannot begin yet. */
  endUnlessReady(reason: string): void {
    if (this.#carrier?.connection.isReady !== true) this.#destroy(reason);
  }

  /** Begins no further calls than the offered ones, and closes the connection after the last answer. */
  finish(): void {
    this.#isStopping = true;
    this.#endWhenIdle();
  }

  async #open(): Promise<void> {
    const { signal } = this.#dialling;
    try {
      const socket = await dialGrpc(this.#options.peer, { signal, clock: systemClock });
      this.#carrier = new ClientCarrier(socket, {
        clock: systemClock,
        onReady: this.#ready.resolve,
        onRead: (now) => this.#onRead(now),
        onClosed: ({ message }) => this.#end(message),
      });
      if (signal.aborted) this.#destroy(errorText(signal.reason));
    } catch (error) {
      this.#end(errorText(error));
    }
  }

  #onRead(now: number): void {
    this.#now = now;
    const { connection } = this.#carrier ?? {};
    if (connection?.calls.end !== undefined) this.#refuse(connection.calls.end.message);
    this.#fill();
  }

  /** The server ends the connection after the answers to calls in flight. */
  #refuse(reason: string): void {
    this.#isStopping = true;
    if (this.#refused !== undefined) return;
    this.#refused = reason;
    this.#options.record.error(reason, 1 + this.waiting);
    this.#waiting.clear();
  }

  /** Begins calls until enough are in flight, all of them in one write. */
  #fill(): void {
    const carrier = this.#carrier;
    if (carrier?.connection.isReady !== true || this.#refused !== undefined) return this.#endWhenIdle();
    const { calls } = carrier.connection;
    const pending = this.#pending;
    const maxInFlight = Math.min(this.#options.inFlight, calls.maxRunning);
    while (pending.size < maxInFlight) {
      const offered = this.#waiting.shift();
      const call = offered?.call ?? this.#nextCall();
      if (call === undefined) break;
      const begun = pending.begin(call, offered?.start ?? this.#now);
      if (calls.beginWhole(begun, call.frame, call.body.length)) continue;
      // The windows of the server have no room for it now.
      calls.send(calls.begin(begun.head, begun.taker, {}), call.body, true);
    }
    carrier.flush();
    this.#endWhenIdle();
  }

  #nextCall(): LoadCall | undefined {
    const { nextCall, isPaused } = this.#options;
    if (nextCall === undefined || this.#isStopping || isPaused?.(this.#now) === true) return undefined;
    const call = nextCall(this.#now);
    if (call === undefined) this.#isStopping = true;
    return call;
  }

  #destroy(reason: string): void {
    this.#dialling.abort(new Error(reason));
    this.#carrier?.destroy(localStatus("UNAVAILABLE", reason));
  }

  #endWhenIdle(): void {
    if (!this.#isStopping || this.#pending.size > 0 || this.waiting > 0) return;
    this.#dialling.abort(new Error("no call was made"));
    this.#carrier?.connection.close(FINISHED);
    this.#carrier?.flush();
  }

  /** The connection is closed, and every call in flight has ended. */
  #end(reason: string): void {
    const { record } = this.#options;
    const { waiting } = this;
    if (waiting > 0) record.error(reason, waiting);
    else if (!this.#isStopping && this.#pending.lost === 0) record.error(reason);
    this.#waiting.clear();
    this.#isStopping = true;
    this.#refused ??= reason;
    this.#ready.resolve();
    this.#closed.resolve();
  }
}

const FINISHED = localStatus("CANCELLED", "the run is over");
