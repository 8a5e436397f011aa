import { backoffMs, type BackoffTimes } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { LogFields, Logger, PortLine } from "../base/log.ts";
import { settledWithin } from "../base/wait.ts";

/** The supervisor's side of the connection to a worker; a `Worker` is one. */
export interface WorkerHandle<Sent, Received> {
  postMessage(message: Sent): void;
  terminate(): void;
  onmessage: ((event: MessageEvent<Received | WorkerNotice>) => void) | null;
  onmessageerror: ((event: MessageEvent) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
}

/** The worker's side of the connection; the global scope of a worker is one. */
export interface WorkerPort<Received, Sent> {
  postMessage(message: Sent | WorkerNotice): void;
  addEventListener(type: "message", listener: (event: MessageEvent<Received>) => void): void;
}

/** A message that any worker may send: a line for the log, the answer to a ping, and its last message. */
export type WorkerNotice = PortLine | { readonly type: "alive" } | { readonly type: "stopped" };

/** Which worker is supervised, and how. */
export interface SupervisedWorkerOptions<Sent, Received> {
  /** The subject of log lines, such as "Rule file worker". */
  readonly name: string;
  /** The behaviour until the next worker is ready, such as "keeping the current rules"; ends the log line. */
  readonly meanwhile: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly createWorker: () => WorkerHandle<Sent, Received>;
  /** The first message to each worker; awaited replies may be registered here. */
  readonly startMessage: () => Sent;
  /** `reply` answers the worker that sent the message, and drops the answer once that was replaced. */
  readonly onMessage: (message: Received, reply: (message: Sent) => void) => void;
  /** Called with what went wrong before a worker is replaced; returns further facts for the log. */
  readonly onFailure?: ((reason: string) => LogFields | void) | undefined;
  readonly heartbeatMs: number;
  /** Sent with each heartbeat, and answered by `alive`. */
  readonly ping?: Sent | undefined;
  /** Maximum silence of a worker that sends by itself; read with each heartbeat. */
  readonly maxSilenceMs?: (() => number) | undefined;
  /** Maximum factor of timeouts: they double with each silence, because a thread that never ends stays in memory. */
  readonly maxPatience?: number | undefined;
  readonly backoff?: BackoffTimes | undefined;
  /** A number from 0 to below 1, for the jitter of the backoff; without it there is no jitter. */
  readonly random?: (() => number) | undefined;
}

const BACKOFF: BackoffTimes = { firstMs: 1_000, longestMs: 60_000 };
/** A worker that ran this long did not fail because of how it was started. */
const STEADY_MS = 60_000;
const PING_TIMEOUT_MS = 60_000;
const PONG = "answer to a ping";

/**
 * Keeps a worker running: one that fails, or owes a reply for too long, is terminated and replaced after a backoff.
 * Messages of a worker that was replaced are ignored. Nothing throws.
 */
export class SupervisedWorker<Sent, Received extends { readonly type: string }> {
  readonly #options: SupervisedWorkerOptions<Sent, Received>;
  readonly #heartbeat: Heartbeat;
  readonly #ended = Promise.withResolvers<string | undefined>();
  #worker: WorkerHandle<Sent, Received> | undefined;
  #startedAt = 0;
  #failures = 0;
  #isRetired = false;
  #cancelRestart = () => {};

  constructor(options: SupervisedWorkerOptions<Sent, Received>) {
    const { clock, heartbeatMs, ping, maxSilenceMs, maxPatience = 1 } = options;
    this.#options = options;
    this.#heartbeat = new Heartbeat({
      clock,
      intervalMs: heartbeatMs,
      maxPatience,
      maxSilenceMs,
      ping: ping === undefined ? undefined : () => this.post(ping),
      onSilence: (reason) => this.fail(reason),
    });
  }

  /** True if there is a worker to post to. */
  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  /** Settles when a retired worker has stopped, or failed, and then with what went wrong. */
  get ended(): Promise<string | undefined> {
    return this.#ended.promise;
  }

  /** Starts a worker, in place of the one that runs if there is one. Does nothing once retired. */
  start(): void {
    if (this.#isRetired) return;
    this.#terminate();
    this.#startedAt = this.#options.clock.elapsed();
    try {
      const worker = this.#options.createWorker();
      this.#worker = worker;
      worker.onmessage = ({ data }) => {
        if (worker === this.#worker) this.#take(data, worker);
      };
      worker.onmessageerror = () => {
        if (worker === this.#worker) this.fail("a message cannot be read");
      };
      worker.onerror = (event) => {
        // Otherwise it would end the process.
        event.preventDefault();
        if (worker === this.#worker) this.fail(event.error ?? event.message);
      };
      this.#heartbeat.start();
      worker.postMessage(this.#options.startMessage());
    } catch (error) {
      this.fail(error);
    }
  }

  /** Sends a message to the worker; without one it is dropped. */
  post(message: Sent): void {
    this.#worker?.postMessage(message);
  }

  /** The worker fails unless this reply is settled in time. A reply that is awaited already keeps its timeout. */
  expect(reply: string, timeoutMs: number): void {
    if (this.#worker !== undefined && !this.#isRetired) this.#heartbeat.expect(reply, timeoutMs);
  }

  /** The reply came. */
  settle(reply: string): void {
    this.#heartbeat.settle(reply);
  }

  /** Replaces a worker that cannot continue. */
  fail(error: unknown): void {
    const reason = errorText(error);
    if (this.#isRetired) return this.#ended.resolve(reason);
    this.#terminate();
    const { name, meanwhile, clock, logger, random, backoff = BACKOFF, onFailure } = this.#options;
    if (clock.elapsed() - this.#startedAt >= STEADY_MS) this.#failures = 0;
    // Without jitter the wait is the whole one.
    const restartMs = Math.round(backoffMs(++this.#failures, random?.() ?? 1, backoff));
    this.#cancelRestart = clock.after(restartMs, () => this.start());
    const facts = onFailure?.(reason) ?? {};
    logger.error(`${name} failed; restarting it and ${meanwhile}`, { error, restartMs, ...facts });
  }

  /** Starts no worker and awaits no reply from now on; a running worker continues until `terminate`. */
  retire(): void {
    this.#isRetired = true;
    this.#cancelRestart();
    this.#heartbeat.stop();
  }

  /** Ends the worker immediately. */
  terminate(): void {
    this.retire();
    this.#terminate();
  }

  /** Asks the worker to stop, and terminates it; whether it answered `stopped`, or failed, in time. */
  async stop(message: Sent, timeoutMs: number): Promise<boolean> {
    this.retire();
    const worker = this.#worker;
    if (worker === undefined) return true;
    worker.postMessage(message);
    const isInTime = await settledWithin(this.#ended.promise, timeoutMs, this.#options.clock);
    // Not awaited: its thread may never end.
    this.#terminate();
    return isInTime;
  }

  #terminate(): void {
    this.#cancelRestart();
    this.#heartbeat.stop();
    this.#worker?.terminate();
    this.#worker = undefined;
  }

  #take(message: Received | WorkerNotice, worker: WorkerHandle<Sent, Received>): void {
    this.#heartbeat.noteMessage();
    if (!isNotice(message)) {
      return this.#options.onMessage(message, (answer) => {
        if (worker === this.#worker) worker.postMessage(answer);
      });
    }
    if (message.type === "log") {
      const { level, message: text, fields, shownUpTo } = message;
      this.#options.logger[level](text, fields, shownUpTo);
    } else if (message.type === "alive") this.#heartbeat.settle(PONG);
    else this.#ended.resolve(undefined);
  }
}

function isNotice(message: { readonly type: string }): message is WorkerNotice {
  return message.type === "log" || message.type === "alive" || message.type === "stopped";
}

interface HeartbeatOptions {
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly maxPatience: number;
  readonly maxSilenceMs: (() => number) | undefined;
  readonly ping: (() => void) | undefined;
  readonly onSilence: (reason: string) => void;
}

/**
 * Watches for awaited replies and for silence. Time is counted in beats and not by the clock, so that a process that was
 * suspended as a whole does not take its worker for dead.
 */
class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #awaited = new Map<string, { readonly timeoutMs: number; beats: number }>();
  readonly #isConstant: boolean;
  #silentBeats = 0;
  #patience = 1;
  #cancelBeat: (() => void) | undefined;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
    this.#isConstant = options.ping !== undefined || options.maxSilenceMs !== undefined;
  }

  start(): void {
    this.#silentBeats = 0;
    if (this.#isConstant) this.#beatLater();
  }

  noteMessage(): void {
    this.#silentBeats = 0;
  }

  stop(): void {
    this.#awaited.clear();
    this.#cancelBeat?.();
    this.#cancelBeat = undefined;
  }

  expect(reply: string, timeoutMs: number): void {
    if (!this.#awaited.has(reply)) this.#awaited.set(reply, { timeoutMs, beats: 0 });
    if (this.#cancelBeat === undefined) this.#beatLater();
  }

  settle(reply: string): void {
    this.#awaited.delete(reply);
    if (this.#awaited.size === 0 && !this.#isConstant) this.stop();
  }

  #beatLater(): void {
    const { clock, intervalMs } = this.#options;
    this.#cancelBeat = clock.after(intervalMs, () => this.#beat());
  }

  #beat(): void {
    const { intervalMs, maxPatience, maxSilenceMs, ping, onSilence } = this.#options;
    this.#beatLater();
    const silenceMs = maxSilenceMs?.() ?? Infinity;
    if (++this.#silentBeats * intervalMs >= silenceMs) {
      return onSilence(`no message for ${silenceMs / 1_000} s`);
    }
    for (const [reply, awaited] of this.#awaited) {
      const timeoutMs = awaited.timeoutMs * this.#patience;
      if (++awaited.beats * intervalMs < timeoutMs) continue;
      this.#patience = Math.min(this.#patience * 2, maxPatience);
      return onSilence(`no ${reply} for ${timeoutMs / 1_000} s`);
    }
    if (ping === undefined || this.#awaited.has(PONG)) return;
    this.expect(PONG, PING_TIMEOUT_MS);
    ping();
  }
}
