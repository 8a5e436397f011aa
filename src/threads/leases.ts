import type { Clock } from "../base/clock.ts";
import { settledWithin } from "../base/wait.ts";

/** Options of leases. */
interface LeaseOptions<T> {
  readonly clock: Clock;
  readonly newId: () => string;
  /** Duration of a claim or a renewal; asked each time. */
  readonly lengthMs: () => number;
  readonly renewMs: number;
  /** Renews claims; answers those that are still held. */
  readonly renew: (claimIds: readonly string[], leaseUntil: number) => Promise<readonly string[]>;
  readonly release: (claimIds: readonly string[], now: number) => Promise<void>;
  /** A renewal failed; it is retried each second. */
  readonly onError: (error: unknown) => void;
  /** Another process has the claim; its work is being aborted. */
  readonly onLost?: (() => void) | undefined;
  /** Work has ended, and no longer counts as running. */
  readonly onEnd: (work: T) => void;
}

/** The facts that a store needs for a claim. */
interface ClaimTerms {
  readonly now: number;
  readonly leaseUntil: number;
  readonly newClaimId: () => string;
}

/** The lease of one piece of work. */
export interface Lease {
  /** Aborts when the lease is lost, or when the process stops. */
  readonly signal: AbortSignal;
  /** True if the lease is certainly held at this moment. */
  isHeld(): boolean;
}

interface Running<T> {
  readonly work: T;
  readonly controller: AbortController;
  /** Settles when the work is over; never rejects. */
  readonly done: Promise<void>;
  leaseUntil: number;
  isLost: boolean;
}

/** After a failed renewal the next one comes this soon. */
const RETRY_MS = 1_000;
/** Time that `stop` waits for aborted work: claims are released before its process is ended, some seconds later. */
const ABORT_MS = 2_000;

/**
 * The leases that one process holds on work in a shared store: renewed while the work runs, given back when it does not.
 * A process that stops answering loses them when they end.
 */
export class Leases<T> {
  readonly #options: LeaseOptions<T>;
  readonly #running = new Map<string, Running<T>>();
  /** Claims that the store may hold for this process although nothing runs under them. */
  readonly #unused = new Set<string>();
  #renewal: Promise<boolean> = Promise.resolve(true);
  #cancelRenewal = () => {};
  #isStopped = false;

  constructor(options: LeaseOptions<T>) {
    this.#options = options;
  }

  /** Amount of work that runs. */
  get size(): number {
    return this.#running.size;
  }

  /** The work that runs, oldest first. */
  *work(): Iterable<T> {
    for (const { work } of this.#running.values()) yield work;
  }

  /** Renews from now on. */
  start(): void {
    this.#scheduleRenewal(this.#options.renewMs);
  }

  /** Asks a store for claims. Where it fails it may have committed them all the same: they are released later. */
  async claim<R>(ask: (terms: ClaimTerms) => Promise<R>): Promise<R> {
    const { clock, newId, lengthMs } = this.#options;
    const claimIds: string[] = [];
    const newClaimId = () => claimIds[claimIds.push(newId()) - 1] ?? "";
    const now = clock.now();
    try {
      return await ask({ now, leaseUntil: now + lengthMs(), newClaimId });
    } catch (error) {
      for (const claimId of claimIds) this.#unused.add(claimId);
      throw error;
    }
  }

  /** Runs work under a claim. `run` never rejects; it answers whether the claim is to be released. */
  run(claimId: string, work: T, leaseUntil: number, run: (lease: Lease) => Promise<boolean>): void {
    const { clock, onEnd } = this.#options;
    const controller = new AbortController();
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const running: Running<T> = { work, controller, done, leaseUntil, isLost: false };
    this.#running.set(claimId, running);
    const isHeld = () => !running.isLost && clock.now() <= running.leaseUntil;
    run({ signal: controller.signal, isHeld }).then((isUnused) => {
      this.#running.delete(claimId);
      if ((isUnused || controller.signal.aborted) && !running.isLost) this.#unused.add(claimId);
      onEnd(work);
      resolve();
    });
  }

  /** Releases unused claims; answers whether there were any. Throws when the store cannot. */
  async releaseUnused(): Promise<boolean> {
    const claimIds = [...this.#unused];
    if (claimIds.length === 0) return false;
    await this.#options.release(claimIds, this.#options.clock.now());
    for (const claimId of claimIds) this.#unused.delete(claimId);
    return true;
  }

  /** Renews all leases now, after a renewal under way; false when the store cannot. */
  renew(): Promise<boolean> {
    this.#scheduleRenewal(this.#options.renewMs);
    return this.#renewal = this.#renewal.then(() => this.#renewAll());
  }

  /** Lets work run for so long, aborts the rest, and releases every claim. Throws when the store cannot. */
  async stop(graceMs: number): Promise<void> {
    const { clock } = this.#options;
    if (graceMs > 0) await settledWithin(this.#allDone(), graceMs, clock);
    for (const { controller } of this.#running.values()) controller.abort();
    await settledWithin(this.#allDone(), ABORT_MS, clock);
    this.#isStopped = true;
    this.#cancelRenewal();
    for (const claimId of this.#running.keys()) this.#unused.add(claimId);
    await this.releaseUnused();
  }

  async #allDone(): Promise<void> {
    await Promise.all([this.#renewal, ...[...this.#running.values()].map(({ done }) => done)]);
  }

  #scheduleRenewal(delayMs: number): void {
    this.#cancelRenewal();
    if (!this.#isStopped) this.#cancelRenewal = this.#options.clock.after(delayMs, () => void this.renew());
  }

  async #renewAll(): Promise<boolean> {
    const { clock, lengthMs, renew, onError } = this.#options;
    const claimIds = [...this.#running.keys()];
    const leaseUntil = clock.now() + lengthMs();
    try {
      const held = new Set(claimIds.length === 0 ? [] : await renew(claimIds, leaseUntil));
      for (const claimId of claimIds) this.#follow(claimId, held.has(claimId) ? leaseUntil : undefined);
      return true;
    } catch (error) {
      this.#scheduleRenewal(RETRY_MS);
      onError(error);
      return false;
    }
  }

  /** Records a renewal; without a new end the lease is lost, and whatever its work does counts no more. */
  #follow(claimId: string, leaseUntil: number | undefined): void {
    const running = this.#running.get(claimId);
    if (running === undefined || running.controller.signal.aborted) return;
    if (leaseUntil !== undefined) {
      running.leaseUntil = leaseUntil;
      return;
    }
    running.isLost = true;
    running.controller.abort();
    this.#options.onLost?.();
  }
}
