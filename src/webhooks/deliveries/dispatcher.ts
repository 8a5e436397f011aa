import { Leases } from "../../threads/leases.ts";
import type { LogFields } from "../../base/log.ts";
import { ThrottledLog } from "../../base/throttled_log.ts";
import { WakeLoop } from "../../threads/wake_loop.ts";
import { releaseClaims } from "../store/operations/claims.ts";
import { renewClaims } from "../store/operations/delivery_claims.ts";
import type { ClaimedDelivery } from "../store/store.ts";
import { type AttemptParts, makeAttempt } from "./attempt.ts";
import { DueEndpoints } from "./due_endpoints.ts";
import { EndpointShares, type Flight } from "./endpoint_shares.ts";
import { DispatcherMetrics } from "./metrics.ts";
import { OpenedTexts } from "./request.ts";
import { StoreUpkeep } from "./store_upkeep.ts";

/** Options of a `Dispatcher`. */
export interface DispatcherOptions extends AttemptParts {
  /** Attempts that run concurrently, over all endpoints. */
  readonly maxInFlight: number;
  /** Renews the other claims of this process; expired claims are left alone when it answers false. */
  readonly keepOtherClaims?: (() => Promise<boolean>) | undefined;
}

/** Due deliveries are looked up at least this often. */
const LOOK_MS = 1_000;
/** A lease outlasts its attempt by this much. */
const LEASE_MARGIN_MS = 15_000;
const RENEW_MS = LEASE_MARGIN_MS / 2;
/** Most claims of one round, whose events are read from the store together. */
const MOST_CLAIMED = 200;
/** Nothing is claimed for so long after the store has failed. */
const REST_MS = LOOK_MS / 4;

/**
 * Brings deliveries to their endpoints: claims what is due, endpoint by endpoint in turn, and makes the attempts. Several
 * dispatchers may share a store: it then counts the attempts of an endpoint over all of them, and may answer with fewer
 * claims than were requested.
 */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #shares: EndpointShares;
  /** Since the start. */
  readonly metrics = new DispatcherMetrics();
  readonly #leases: Leases<Flight>;
  readonly #due: DueEndpoints;
  readonly #upkeep: StoreUpkeep;
  readonly #loop: WakeLoop;
  /** Attempts by endpoint. */
  readonly #inFlight = new Map<string, number>();
  /** By the clock's `elapsed`. */
  #nextClaim = 0;
  readonly #log: ThrottledLog;

  constructor(options: DispatcherOptions) {
    const { store, clock, newId, keepOtherClaims, secretBox, maxInFlight, timeoutMs } = options;
    this.#log = new ThrottledLog(options.logger, { clock });
    this.#options = {
      ...options,
      secretBox: new OpenedTexts(secretBox),
      onAttempt: (report) => {
        this.metrics.count(report);
        // Otherwise events that its template cannot render would hold up those that it can.
        if (report.isUnrenderable !== true) this.#shares.learn(report, clock.elapsed());
        options.onAttempt?.(report);
      },
    };
    this.#shares = new EndpointShares(maxInFlight);
    this.#due = new DueEndpoints({
      store,
      clock,
      timeoutMs,
      isBusy: (id) => this.inFlight(id) > 0,
      isPaused: (id) => this.#shares.isPaused(id, clock.elapsed()),
    });
    this.#leases = new Leases({
      clock,
      newId,
      renewMs: RENEW_MS,
      lengthMs: () => this.#due.longestMs + LEASE_MARGIN_MS,
      renew: (claimIds, leaseUntil) => store.write(renewClaims, claimIds, leaseUntil),
      release: (claimIds, now) => store.write(releaseClaims, claimIds, now),
      onError: (error) => this.#fail(error),
      onLost: () => this.metrics.lostClaims++,
      onEnd: ({ claimed: { endpoint } }) => {
        this.#countFlight(endpoint.id, -1);
        // A place is free, and what failed may be due again immediately.
        this.wake([endpoint.id]);
      },
    });
    this.#upkeep = new StoreUpkeep({
      store,
      clock,
      newId,
      wake: () => this.wake(),
      renewOwn: async () => await this.#leases.renew() && await keepOtherClaims?.() !== false,
      onExpired: (count) => {
        this.metrics.expiredClaims += count;
        options.logger.warning("Claims expired before their attempts ended", { count });
        this.wake();
      },
    });
    this.#loop = new WakeLoop({
      clock,
      pollMs: LOOK_MS,
      round: () => this.#round(),
      onPoll: () => this.#due.requestLook(),
    });
  }

  get running(): number {
    return this.#leases.size;
  }

  inFlight(endpointId: string): number {
    return this.#inFlight.get(endpointId) ?? 0;
  }

  /** Begins. Its owner has voided the claims of earlier processes. */
  start(): void {
    this.#leases.start();
    this.#loop.start();
  }

  /** Something became due, for these endpoints, or for any, which are then looked up. */
  wake(endpointIds?: readonly string[]): void {
    if (endpointIds === undefined) this.#due.requestLook();
    // Among new endpoints the latest is tried first.
    for (const id of endpointIds ?? []) this.#due.add(id, this.#shares.isNew(id));
    this.#loop.wake();
  }

  /** Something is due for an endpoint that is attempted now, even if it is failing. */
  retryNow(endpointId: string): void {
    this.#shares.endPause(endpointId);
    this.#due.endWait(endpointId);
    this.wake();
  }

  /** Claims nothing more, lets attempts run for so long, and releases what is left. */
  async stop(graceMs: number): Promise<void> {
    await this.#loop.stop();
    await this.#leases.stop(graceMs).catch((error) => this.#logFault(error));
  }

  /** Answers whether more may be claimed immediately. */
  async #round(): Promise<boolean> {
    try {
      await this.#upkeep.run();
      return await this.#claim();
    } catch (error) {
      this.#fail(error);
      return false;
    }
  }

  async #claim(): Promise<boolean> {
    const { store, clock, atAttempt = () => {} } = this.#options;
    const elapsed = clock.elapsed();
    if (elapsed < this.#nextClaim) {
      this.#loop.wakeIn(this.#nextClaim - elapsed);
      return false;
    }
    if (await this.#leases.releaseUnused()) this.#due.requestLook();
    const tooSoonMs = await this.#due.look();
    if (tooSoonMs !== undefined) this.#loop.wakeIn(tooSoonMs);
    const running = { flights: this.#leases.work(), of: (id: string) => this.inFlight(id) };
    const requests = this.#shares.claimRequests(this.#due.waiting(), running, MOST_CLAIMED, elapsed);
    if (requests.length === 0) return this.#wakeForRates();
    await atAttempt("before", "claim");
    const onRateLimited = (id: string, waitMs: number) => this.#due.waitFor(id, waitMs);
    const claimed = await this.#leases.claim((terms) =>
      store.claimDeliveries({ ...terms, requests, onRateLimited })
    );
    const isLonger = this.#due.learn(requests, claimed);
    for (const one of claimed) this.#begin(one);
    // The first claims of an endpoint with a long timeout were made for a shorter one.
    if (isLonger) await this.#leases.renew();
    this.#wakeForRates();
    // Each round takes an endpoint from the hot ones or a free place, also when nothing was due, and so it ends.
    return this.#due.isHot;
  }

  #wakeForRates(): false {
    const waitMs = this.#due.waitMs;
    if (waitMs !== undefined) this.#loop.wakeIn(waitMs);
    return false;
  }

  #begin(claimed: ClaimedDelivery): void {
    const { claimId, endpoint, delivery: { leaseUntil = Infinity } } = claimed;
    this.#countFlight(endpoint.id, 1);
    const flight = { claimed, startedAt: this.#options.clock.elapsed() };
    this.#leases.run(claimId, flight, leaseUntil, async (lease) => {
      const options = {
        ...this.#options,
        onStoreError: (error: unknown) => this.#logFault(error),
        onFailed: (facts: LogFields) => this.#log.warning("failed", "Delivery failed", facts),
      };
      const end = await makeAttempt(claimed, lease, options);
      if (end === "lost" || end === "late") this.metrics.lostClaims++;
      // It would be claimed and released without an end.
      if (end === "faulty") this.#rest();
      return end === "late" || end === "faulty";
    });
  }

  #countFlight(endpointId: string, change: 1 | -1): void {
    const count = this.inFlight(endpointId) + change;
    if (count > 0) this.#inFlight.set(endpointId, count);
    else this.#inFlight.delete(endpointId);
  }

  #fail(error: unknown): void {
    this.#logFault(error);
    this.#rest();
    this.#upkeep.delayExpiry();
  }

  #logFault(error: unknown): void {
    this.metrics.storeErrors++;
    this.#log.error("store", "Cannot use the store of deliveries", { error });
  }

  #rest(): void {
    this.#nextClaim = this.#options.clock.elapsed() + REST_MS;
    this.#loop.wakeIn(REST_MS);
  }
}
