import { settledWithin } from "../../base/wait.ts";
import { DispatchCounts, type DispatchFigures } from "./metrics.ts";
import { makeAttempt } from "./attempt.ts";
import type { DispatcherOptions } from "./dispatcher_options.ts";
import { EndpointShares } from "./endpoint_shares.ts";
import { type Flight, InFlight } from "./in_flight.ts";
import { OpenedTexts } from "./opened_texts.ts";
import { clockSetBack, releaseClaims, voidClaims } from "../store/claims.ts";
import { type DueEndpoint, dueEndpoints, failPaused, renewClaims } from "../store/delivery_claims.ts";
import type { ClaimedDelivery } from "../store/store.ts";

/** Due rows are looked up at least this often. */
const LOOK_MS = 1_000;
/** How much longer than its attempt a claim lasts. */
const LEASE_MARGIN_MS = 15_000;
/** Claims of workers that did not come back are taken back this often. */
const EXPIRE_MS = 5_000;
/** After the store was away nothing is taken back for so long: others have results to write, and claims to prolong. */
const RETURN_MS = 10_000;
/** After the clock was set forward for so long: others learn of it, and then they prolong their claims. */
const FORWARD_MS = 20_000;
/** Deliveries of disabled endpoints are looked through this often. */
const PAUSED_MS = 60_000;
/** The next look comes no sooner than after so many times of what the last one took, or after `MAX_UNSEEN_MS`. */
const LOOK_SHARE = 20;
const MAX_UNSEEN_MS = LOOK_MS / 2;
/** How long the end waits for attempts that were told to end. */
const ABORT_MS = 5_000;
/** How much is claimed at once: the events of all of it are read from the store in one go. */
const MOST_CLAIMED = 200;
/** The wall clock was set back when it falls behind by more than this between two looks. */
const STEP_MS = 1_000;
/** For so long nothing is claimed after the store has failed. */
const REST_MS = LOOK_MS / 4;

/**
 * Brings deliveries to their endpoints: claims what is due, endpoint by endpoint in turn, and makes the attempts.
 * Several may work on a store that machines share, each with claims of its own: how many attempts an endpoint has at
 * once is then counted over all of them by the store, and a claim may bring less than was wanted.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #inFlight: InFlight;
  readonly #shares: EndpointShares;
  readonly #counts = new DispatchCounts();
  /** Claims that this process may hold without working on them. */
  readonly #unused = new Set<string>();
  /** Endpoints of which more may be due. */
  readonly #hot = new Set<string>();
  /** Those with something due at the last look, or in flight; others are claimed for one by one until they are known. */
  #endpoints = new Map<string, DueEndpoint>();
  #isLookWanted = true;
  #state: "new" | "running" | "stopping" | "stopped" = "new";
  #wakeUp = () => {};
  #loop: Promise<void> = Promise.resolve();
  #cancelTick = () => {};
  #cancelWake = () => {};
  /** By the clock's `elapsed`. */
  #wakeAt = Infinity;
  #nextExpiry = 0;
  #nextPaused = 0;
  #nextRenewal = 0;
  #nextLook = 0;
  #nextClaim = 0;
  #nextLog = 0;
  /** How far the wall clock is ahead of `elapsed`; at first as if it had been set back while nobody looked. */
  #ahead = Infinity;
  #isSetBack = false;
  /** The longest time that an attempt may take. */
  #longestMs: number;

  constructor(options: DispatcherOptions) {
    this.#options = { ...options, secretBox: new OpenedTexts(options.secretBox) };
    this.#inFlight = new InFlight();
    this.#shares = new EndpointShares(options.maxInFlight);
    this.#longestMs = options.timeoutMs;
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

  /** Something became due, of these endpoints or of any; what is due of any is looked up. */
  wake(endpointIds?: readonly string[]): void {
    if (endpointIds === undefined) this.#isLookWanted = true;
    for (const id of endpointIds ?? []) {
      // Among new endpoints the latest is tried first.
      if (this.#shares.isNew(id)) this.#hot.delete(id);
      this.#hot.add(id);
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
    this.#cancelWake();
    const left = this.#inFlight.flights;
    for (const { abort } of left) abort.abort();
    const claimIds = [...this.#unused, ...this.#inFlight.claimIds];
    if (claimIds.length > 0) await this.#asked(() => store.write(releaseClaims, claimIds, clock.now()));
    const givenUp = Promise.all(left.map(({ ended }) => ended)).then(() => {});
    await settledWithin(givenUp, ABORT_MS, clock);
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
    const elapsed = clock.elapsed();
    if (elapsed < this.#nextClaim) {
      this.#wakeIn(this.#nextClaim - elapsed);
      return false;
    }
    if (this.#unused.size > 0 && !await this.#giveBack()) return false;
    if (this.#isLookWanted && !await this.#look(elapsed)) return false;
    const wants = this.#shares.wants(this.#waiting(), this.#inFlight, MOST_CLAIMED, elapsed);
    if (wants.length === 0) return false;
    const claimIds: string[] = [];
    const newClaimId = () => claimIds[claimIds.push(newId()) - 1] ?? "";
    const asked = await this.#asked(async () => {
      await at("before", "claim");
      const now = clock.now();
      return await store.claimDeliveries({ now, leaseUntil: now + this.#leaseMs(), newClaimId, wants });
    });
    if (asked === undefined) {
      // The store may have committed them before its answer was lost.
      for (const claimId of claimIds) this.#unused.add(claimId);
      return false;
    }
    for (const { endpoint } of asked) this.#learn(endpoint);
    const got = Map.groupBy(asked, ({ endpoint }) => endpoint.id);
    for (const { endpointId, max } of wants) {
      this.#hot.delete(endpointId);
      // Behind all others, so that it is their turn before.
      if (got.get(endpointId)?.length === max) this.#hot.add(endpointId);
    }
    for (const claimed of asked) this.#begin(claimed);
    // Each round takes an endpoint from the hot ones or a free place, also when nothing was due, and so it ends.
    return this.#hot.size > 0;
  }

  /** Releases unused claims, so that their deliveries do not wait for the end of a lease. */
  async #giveBack(): Promise<boolean> {
    const { clock, store } = this.#options;
    const claimIds = [...this.#unused];
    const isDone = await this.#asked(() =>
      store.write(releaseClaims, claimIds, clock.now()).then(() => true)
    );
    if (isDone === undefined) return false;
    for (const claimId of claimIds) this.#unused.delete(claimId);
    this.#isLookWanted = true;
    return true;
  }

  /** The hot endpoints in order of waiting, longest first. */
  *#waiting(): Iterable<DueEndpoint> {
    for (const id of this.#hot) yield this.#endpoints.get(id) ?? { id, concurrency: 1 };
  }

  /** Looks up for which endpoints something is due, unless it is too soon: then a timer asks again. */
  async #look(elapsed: number): Promise<boolean> {
    const { store, clock, timeoutMs } = this.#options;
    if (elapsed < this.#nextLook) {
      this.#wakeIn(this.#nextLook - elapsed);
      return true;
    }
    this.#isLookWanted = false;
    const due = await this.#asked(() => store.read(dueEndpoints, clock.now()));
    if (due === undefined) {
      this.#isLookWanted = true;
      return false;
    }
    const end = clock.elapsed();
    this.#nextLook = end + Math.min(LOOK_SHARE * (end - elapsed), MAX_UNSEEN_MS);
    const inFlight = [...this.#endpoints.values()].filter(({ id }) => this.#inFlight.of(id) > 0);
    this.#endpoints = new Map([...inFlight, ...due].map((endpoint) => [endpoint.id, endpoint]));
    for (const { id } of due) this.#hot.add(id);
    const timeouts = [...this.#endpoints.values()].map((endpoint) => endpoint.timeoutMs ?? 0);
    this.#longestMs = timeouts.reduce((longest, ms) => Math.max(longest, ms), timeoutMs);
    return true;
  }

  /** What is known of an endpoint by what was claimed for it. */
  #learn({ id, concurrency, timeoutMs }: DueEndpoint): void {
    this.#endpoints.set(id, { id, concurrency, timeoutMs });
    if (timeoutMs === undefined || timeoutMs <= this.#longestMs) return;
    // Its first claim was made for a shorter time: it is prolonged at once.
    this.#longestMs = timeoutMs;
    this.#nextRenewal = this.#options.clock.elapsed();
  }

  #begin(claimed: ClaimedDelivery): void {
    const abort = new AbortController();
    const ended = makeAttempt(claimed, {
      ...this.#options,
      signal: abort.signal,
      isHeld: () => this.#options.clock.now() <= flight.leaseUntil,
      onAttempt: (report) => {
        this.#counts.count(report);
        this.#shares.learn(report);
        this.#options.onAttempt?.(report);
      },
      onLost: () => this.#counts.lostClaims++,
      onStoreError: (error) => this.#storeFailed(error),
      onUnused: () => {
        this.#unused.add(claimed.claimId);
        this.#rest();
      },
    }).then(() => {
      this.#inFlight.remove(claimed);
      // A slot is free, and what failed may be due again at once.
      this.wake([claimed.endpoint.id]);
    });
    const leaseUntil = claimed.delivery.leaseUntil ?? Infinity;
    const flight: Flight = { claimed, startedAt: this.#options.clock.elapsed(), abort, ended, leaseUntil };
    this.#inFlight.add(flight);
  }

  #leaseMs(): number {
    return this.#longestMs + LEASE_MARGIN_MS;
  }

  #renewLater(): void {
    this.#nextRenewal = this.#options.clock.elapsed() + LEASE_MARGIN_MS / 3;
  }

  /** Prolongs its own claims, and takes back those of a worker that is gone. */
  async #keepClaims(): Promise<void> {
    const { clock, store, newId } = this.#options;
    const elapsed = clock.elapsed();
    // One moment for all: a process that sleeps in between does not find its own claims over.
    const now = clock.now();
    const claimIds = this.#inFlight.claimIds;
    const isTime = elapsed >= this.#nextRenewal || elapsed >= this.#nextExpiry;
    if (isTime && claimIds.length > 0) {
      const leaseUntil = now + this.#leaseMs();
      const held = await this.#asked(() => store.write(renewClaims, claimIds, leaseUntil));
      if (held === undefined) return;
      const kept = new Set(held);
      for (const id of claimIds) {
        const flight = this.#inFlight.get(id);
        if (!kept.has(id)) this.#lose(id);
        else if (flight !== undefined) flight.leaseUntil = leaseUntil;
      }
    }
    if (isTime) this.#renewLater();
    await this.#followClock(now, elapsed);
    if (elapsed >= this.#nextExpiry) await this.#takeBack(elapsed, now);
    if (elapsed < this.#nextPaused) return;
    this.#nextPaused = elapsed + PAUSED_MS;
    const failed = await this.#asked(() => store.write(failPaused, { now, newId }));
    if (failed === undefined || failed === 0) return;
    // There may be more of them than a store does at once; others have their turn in between.
    this.#nextPaused = elapsed;
    this.#wakeUp();
  }

  /** What was due by a clock that was set back since would wait for as long as the step is. */
  async #followClock(now: number, elapsed: number): Promise<void> {
    const ahead = now - elapsed;
    if (ahead < this.#ahead - STEP_MS) this.#isSetBack = true;
    // By the new time all leases may be over, and others have not seen it yet.
    if (ahead > this.#ahead + STEP_MS) this.#nextExpiry = elapsed + FORWARD_MS;
    this.#ahead = ahead;
    if (!this.#isSetBack) return;
    const changed = await this.#asked(() => this.#options.store.write(clockSetBack, now));
    if (changed === undefined) return;
    this.#isSetBack = changed > 0;
    // There may be more of them than a store does at once.
    if (changed > 0) this.wake();
  }

  async #takeBack(elapsed: number, now: number): Promise<void> {
    const { store, keepOtherClaims = () => Promise.resolve(true) } = this.#options;
    this.#nextExpiry = elapsed + EXPIRE_MS;
    if (await this.#asked(keepOtherClaims) !== true) return;
    const count = await this.#asked(() => store.write(voidClaims, { now, which: "expired" }));
    if (count === undefined || count === 0) return;
    this.#counts.expiredClaims += count;
    this.#options.logger.warning("Claims ended before their attempts did", { count });
    this.wake();
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
      this.#rest();
      const elapsed = this.#options.clock.elapsed();
      this.#nextExpiry = Math.max(this.#nextExpiry, elapsed + RETURN_MS);
      return undefined;
    }
  }

  #storeFailed(error: unknown): void {
    const { clock, logger } = this.#options;
    this.#counts.storeErrors++;
    const elapsed = clock.elapsed();
    if (elapsed < this.#nextLog) return;
    this.#nextLog = elapsed + LOOK_MS;
    logger.error("Cannot use the store of deliveries", { error });
  }

  /** Work that cannot be written down would be claimed and given back without an end. */
  #rest(): void {
    this.#nextClaim = this.#options.clock.elapsed() + REST_MS;
    this.#wakeIn(REST_MS);
  }

  /** Wakes the loop after so long; an earlier timer stays, and what it wakes asks again. */
  #wakeIn(ms: number): void {
    const { clock } = this.#options;
    const at = clock.elapsed() + ms;
    if (this.#state !== "running" || this.#wakeAt <= at) return;
    this.#cancelWake();
    this.#wakeAt = at;
    this.#cancelWake = clock.after(ms, () => {
      this.#wakeAt = Infinity;
      this.#wakeUp();
    });
  }
}
