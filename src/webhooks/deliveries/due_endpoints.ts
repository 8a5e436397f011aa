import type { Clock } from "../../base/clock.ts";
import { type DueEndpoint, dueEndpoints } from "../store/operations/delivery_claims.ts";
import type { ClaimedDelivery, WebhookStore } from "../store/store.ts";
import type { ClaimRequest } from "./endpoint_shares.ts";

/** The next look is put off by this many times the duration of the last one, up to a bound. */
const LOOK_SHARE = 20;
const MAX_PAUSE_MS = 500;
/** Endpoints that wait for their rates are claimed for together, this often. */
const RATE_MS = 50;
/** A longer wait ends with a look, in which endpoints that may be attempted are found. */
const LONG_WAIT_MS = 1_000;
/** A claim that a rate refuses is not repeated for so long, unless a look finds the endpoint. */
const MAX_WAIT_MS = 10_000;

/** A wait for the rate of an endpoint. */
interface RateWait {
  /** By the clock's `elapsed`. */
  readonly until: number;
  readonly isLong: boolean;
}

/** Options of `DueEndpoints`. */
interface DueEndpointsOptions {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly isBusy: (endpointId: string) => boolean;
  /** True if the endpoint is failing, and its next attempt has to wait: until a later look, it is not hot. */
  readonly isPaused: (endpointId: string) => boolean;
}

/** The endpoints for which something is due, as far as this process knows. */
export class DueEndpoints {
  readonly #options: DueEndpointsOptions;
  /** Endpoints for which more may be due, those waiting longest first. */
  readonly #hot = new Set<string>();
  /** Endpoints whose rate allows no attempt now: they are not hot, whatever becomes due. */
  readonly #waits = new Map<string, RateWait>();
  /** Those of the last look, and those in flight; of others one delivery is claimed until they are known. */
  #known = new Map<string, DueEndpoint>();
  #isLookDue = true;
  /** By the clock's `elapsed`. */
  #nextLook = 0;
  #longestMs: number;

  constructor(options: DueEndpointsOptions) {
    this.#options = options;
    this.#longestMs = options.timeoutMs;
  }

  get longestMs(): number {
    return this.#longestMs;
  }

  /** True if there may be more to claim. */
  get isHot(): boolean {
    return this.#hot.size > 0;
  }

  /** The hot endpoints in order of waiting, longest first. */
  *waiting(): Iterable<DueEndpoint> {
    this.#endWaits();
    for (const id of this.#hot) {
      if (this.#waits.has(id)) {
        this.#hot.delete(id);
        continue;
      }
      const endpoint = this.#known.get(id) ?? { id, concurrency: 1 };
      // A last attempt does not wait: its delivery fails then.
      if (endpoint.isEnding !== true && this.#options.isPaused(id)) this.#hot.delete(id);
      else yield endpoint;
    }
  }

  /** Something is due for an endpoint; with `isLatest` it comes after all others, even if it waits already. */
  add(id: string, isLatest: boolean): void {
    if (isLatest) this.#hot.delete(id);
    this.#hot.add(id);
  }

  /** The rate of an endpoint allows no attempt for so long. */
  waitFor(id: string, ms: number): void {
    const elapsed = this.#options.clock.elapsed();
    const end = Math.ceil((elapsed + Math.min(ms, MAX_WAIT_MS)) / RATE_MS) * RATE_MS;
    this.#waits.set(id, { until: end, isLong: ms > LONG_WAIT_MS });
  }

  /** An endpoint may have another rate now. */
  endWait(id: string): void {
    this.#waits.delete(id);
  }

  /** Milliseconds until the next short wait ends; absent without any. */
  get waitMs(): number | undefined {
    const elapsed = this.#options.clock.elapsed();
    let next = Infinity;
    for (const { until, isLong } of this.#waits.values()) if (!isLong) next = Math.min(next, until);
    return next === Infinity ? undefined : Math.max(0, next - elapsed);
  }

  /** Something is due for endpoints that are not known: the next `look` asks the store. */
  requestLook(): void {
    this.#isLookDue = true;
  }

  /** Looks the endpoints up where that is due; answers in how many milliseconds to ask again when it is too soon. */
  async look(): Promise<number | undefined> {
    if (!this.#isLookDue) return undefined;
    const { store, clock, timeoutMs, isBusy } = this.#options;
    const elapsed = clock.elapsed();
    if (elapsed < this.#nextLook) return this.#nextLook - elapsed;
    this.#isLookDue = false;
    let due: readonly DueEndpoint[];
    try {
      due = await store.read(dueEndpoints, clock.now());
    } catch (error) {
      this.#isLookDue = true;
      throw error;
    }
    const end = clock.elapsed();
    this.#nextLook = end + Math.min(LOOK_SHARE * (end - elapsed), MAX_PAUSE_MS);
    const busy = [...this.#known.values()].filter(({ id }) => isBusy(id));
    this.#known = new Map([...busy, ...due].map((endpoint) => [endpoint.id, endpoint]));
    for (const { id } of due) {
      this.#waits.delete(id);
      this.#hot.add(id);
    }
    this.#longestMs = this.#known.values().reduce(
      (most, { timeoutMs: ms = 0 }) => Math.max(most, ms),
      timeoutMs,
    );
    return undefined;
  }

  /** Records the result of a claim; answers whether an endpoint has a longer timeout than any before. */
  learn(requests: readonly ClaimRequest[], claimed: readonly ClaimedDelivery[]): boolean {
    const longestBefore = this.#longestMs;
    for (const { endpoint: { id, concurrency, timeoutMs = 0 } } of claimed) {
      this.#known.set(id, { id, concurrency, timeoutMs, isEnding: this.#known.get(id)?.isEnding });
      this.#longestMs = Math.max(this.#longestMs, timeoutMs);
    }
    const got = Map.groupBy(claimed, ({ endpoint }) => endpoint.id);
    for (const { endpointId, max } of requests) {
      this.#hot.delete(endpointId);
      // Behind all others, so that it is their turn before.
      if (got.get(endpointId)?.length === max) this.#hot.add(endpointId);
    }
    return this.#longestMs > longestBefore;
  }

  #endWaits(): void {
    const elapsed = this.#options.clock.elapsed();
    for (const [id, { until, isLong }] of this.#waits) {
      if (until > elapsed) continue;
      this.#waits.delete(id);
      if (!isLong) this.#hot.add(id);
    }
  }
}
