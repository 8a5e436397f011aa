import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { settledWithin } from "../base/wait.ts";
import { type AttemptReport, DispatchCounts, type DispatchFigures } from "./dispatch_figures.ts";
import { type AttemptSteps, makeAttempt } from "./delivery_attempt.ts";
import { InFlight } from "./in_flight.ts";
import type { Endpoint, Sealed } from "./records.ts";
import type { DeliverySender } from "./sender.ts";
import type { ClaimedDelivery, DeliveryStore } from "./store.ts";

/** Opens what was sealed. */
export interface Unsealer {
  unseal(sealed: Sealed): Promise<string>;
}

/** What a dispatcher works with. */
export interface DispatcherOptions {
  readonly store: DeliveryStore;
  readonly sender: DeliverySender;
  readonly secretBox: Unsealer;
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
  readonly newId: () => string;
  readonly logger: Logger;
  /** Attempts that run at once over all endpoints. */
  readonly maxInFlight: number;
  /** Of an attempt, where its endpoint has none of its own. */
  readonly timeoutMs: number;
  /** Of Weir, for the user agent. */
  readonly version: string;
  /** Told of each attempt that is over. */
  readonly onAttempt?: ((report: AttemptReport) => void) | undefined;
  /** Called around each step of an attempt; what it throws is a fault of the step. */
  readonly at?: AttemptSteps | undefined;
}

/** Due rows are looked up at least this often. */
const LOOK_MS = 1_000;
/** How much longer than its attempt a claim lasts. */
const LEASE_MARGIN_MS = 15_000;
/** Claims of workers that did not come back are taken back this often. */
const EXPIRE_MS = 5_000;
/** Deliveries of disabled endpoints are looked through this often. */
const PAUSED_MS = 60_000;

/**
 * Brings deliveries to their endpoints: claims what is due, endpoint by endpoint in turn, and makes the attempts. Only
 * one dispatcher may run on a store at a time: its owner holds the lock beside the store.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #inFlight: InFlight;
  readonly #counts = new DispatchCounts();
  /** Endpoints of which more may be due. */
  readonly #hot = new Set<string>();
  #endpoints = new Map<string, Endpoint>();
  #isStale = true;
  #state: "new" | "running" | "stopping" | "stopped" = "new";
  #wakeUp = () => {};
  #loop: Promise<void> = Promise.resolve();
  #cancelTick = () => {};
  /** By the clock's `elapsed`. */
  #nextExpiry = 0;
  #nextPaused = 0;
  #nextRenewal = 0;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#inFlight = new InFlight(options.maxInFlight);
  }

  get figures(): DispatchFigures {
    return this.#counts.figures;
  }

  /** How many attempts run. */
  get running(): number {
    return this.#inFlight.size;
  }

  /** How many attempts of an endpoint run. */
  inFlight(endpointId: string): number {
    return this.#inFlight.of(endpointId);
  }

  /** Begins. Its owner has taken back what was claimed before. */
  start(): void {
    if (this.#state !== "new") return;
    this.#state = "running";
    this.#loop = this.#run();
  }

  /** Something became due, of these endpoints or of any. Endpoints that were edited are read anew. */
  wake(endpointIds?: readonly string[]): void {
    if (endpointIds === undefined) {
      this.#isStale = true;
      for (const id of this.#endpoints.keys()) this.#hot.add(id);
    } else {
      for (const id of endpointIds) {
        this.#hot.add(id);
        if (!this.#endpoints.has(id)) this.#isStale = true;
      }
    }
    this.#wakeUp();
  }

  /** Claims nothing more, lets attempts run for so long, and gives back what is left. */
  async stop(graceMs: number): Promise<void> {
    if (this.#state !== "running") return;
    this.#state = "stopping";
    this.#wakeUp();
    await this.#loop;
    const { clock, store } = this.#options;
    if (graceMs > 0) {
      const ended = Promise.all(this.#inFlight.flights.map((flight) => flight.ended));
      await settledWithin(ended.then(() => {}), graceMs, clock);
    }
    this.#state = "stopped";
    this.#cancelTick();
    const left = this.#inFlight.flights;
    for (const { abort } of left) abort.abort();
    const claimIds = left.map(({ claimed }) => claimed.claimId);
    if (claimIds.length > 0) await this.#asked(() => store.releaseClaims(claimIds, clock.now()));
    await Promise.all(left.map(({ ended }) => ended));
  }

  async #run(): Promise<void> {
    this.#renewLater();
    this.#tick();
    while (this.#state === "running") {
      const slept = this.#awake();
      await this.#keepClaims();
      const isMore = await this.#claim();
      if (!isMore) await slept;
    }
    this.#cancelTick();
    if (this.#state === "stopping") this.#keepWhileStopping();
  }

  /** Settles with the next call of `wake`, or what the clock wakes for. */
  #awake(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wakeUp = resolve;
    return promise;
  }

  #tick(): void {
    this.#cancelTick = this.#options.clock.after(LOOK_MS, () => {
      this.wake();
      this.#tick();
    });
  }

  /** Attempts that outlast the loop keep their claims. */
  #keepWhileStopping(): void {
    this.#cancelTick = this.#options.clock.after(LOOK_MS, () => {
      this.#keepClaims().then(() => {
        if (this.#state === "stopping") this.#keepWhileStopping();
      });
    });
  }

  /** Answers whether more may be claimed at once. */
  async #claim(): Promise<boolean> {
    const { store, clock, newId, at = () => {} } = this.#options;
    if (this.#isStale && !await this.#readEndpoints()) return false;
    const hot = [...this.#hot].flatMap((id) => this.#endpoints.get(id) ?? []);
    const wants = this.#inFlight.wants(hot);
    if (wants.length === 0) return false;
    await at("before", "claim");
    const now = clock.now();
    const leaseUntil = now + this.#leaseMs();
    const asked = await this.#asked(() =>
      store.claimDeliveries({ now, leaseUntil, newClaimId: newId, wants })
    );
    if (asked === undefined) return false;
    const got = Map.groupBy(asked, ({ endpoint }) => endpoint.id);
    for (const { endpointId, max } of wants) {
      if ((got.get(endpointId)?.length ?? 0) < max) this.#hot.delete(endpointId);
    }
    for (const claimed of asked) this.#begin(claimed);
    return asked.length > 0 && this.#hot.size > 0;
  }

  async #readEndpoints(): Promise<boolean> {
    this.#isStale = false;
    const endpoints = await this.#asked(() => this.#options.store.endpointsToServe());
    if (endpoints === undefined) {
      this.#isStale = true;
      return false;
    }
    const isFirst = this.#endpoints.size === 0;
    this.#endpoints = new Map(endpoints.map((endpoint) => [endpoint.id, endpoint]));
    if (isFirst) { for (const id of this.#endpoints.keys()) this.#hot.add(id); }
    for (const id of this.#hot) if (!this.#endpoints.has(id)) this.#hot.delete(id);
    return true;
  }

  #begin(claimed: ClaimedDelivery): void {
    const abort = new AbortController();
    const ended = makeAttempt(claimed, {
      ...this.#options,
      signal: abort.signal,
      onAttempt: (report) => {
        this.#counts.count(report);
        this.#options.onAttempt?.(report);
      },
      onLost: () => this.#counts.lostClaims++,
      onStoreError: (error) => this.#storeFailed(error),
    }).then(() => {
      this.#inFlight.remove(claimed);
      // A slot is free, and what failed may be due again at once.
      this.wake([claimed.endpoint.id]);
    });
    this.#inFlight.add({ claimed, abort, ended });
  }

  #leaseMs(): number {
    const { timeoutMs } = this.#options;
    let longest = timeoutMs;
    for (const endpoint of this.#endpoints.values()) longest = Math.max(longest, endpoint.timeoutMs ?? 0);
    return longest + LEASE_MARGIN_MS;
  }

  #renewLater(): void {
    this.#nextRenewal = this.#options.clock.elapsed() + LEASE_MARGIN_MS / 3;
  }

  /** Prolongs its own claims, and takes back those of a worker that is gone. */
  async #keepClaims(): Promise<void> {
    const { clock, store, newId } = this.#options;
    const elapsed = clock.elapsed();
    const claimIds = this.#inFlight.claimIds;
    const isTime = elapsed >= this.#nextRenewal || elapsed >= this.#nextExpiry;
    if (isTime && claimIds.length > 0) {
      const leaseUntil = clock.now() + this.#leaseMs();
      const held = await this.#asked(() => store.renewClaims(claimIds, leaseUntil));
      if (held === undefined) return;
      const kept = new Set(held);
      for (const id of claimIds) if (!kept.has(id)) this.#lose(id);
    }
    if (isTime) this.#renewLater();
    if (elapsed >= this.#nextExpiry) {
      this.#nextExpiry = elapsed + EXPIRE_MS;
      const count = await this.#asked(() => store.voidClaims({ now: clock.now(), which: "expired" }));
      if (count !== undefined && count > 0) {
        this.#counts.expiredClaims += count;
        this.#options.logger.warning("Claims ended before their attempts did", { count });
        this.wake();
      }
    }
    if (elapsed < this.#nextPaused) return;
    this.#nextPaused = elapsed + PAUSED_MS;
    await this.#asked(() => store.failPaused({ now: clock.now(), newId }));
  }

  /** Somebody else has the claim now: what the attempt brings would not be written. */
  #lose(claimId: string): void {
    const flight = this.#inFlight.get(claimId);
    if (flight === undefined || flight.abort.signal.aborted) return;
    this.#counts.lostClaims++;
    flight.abort.abort();
  }

  /** What the store answers; nothing when it cannot at the moment, which is counted and logged. */
  async #asked<T>(ask: () => Promise<T>): Promise<T | undefined> {
    try {
      return await ask();
    } catch (error) {
      this.#storeFailed(error);
      return undefined;
    }
  }

  #storeFailed(error: unknown): void {
    this.#counts.storeErrors++;
    this.#options.logger.error("Cannot use the store of deliveries", { error });
  }
}
