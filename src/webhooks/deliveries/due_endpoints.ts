import type { Clock } from "../../base/clock.ts";
import { type DueEndpoint, dueEndpoints } from "../store/operations/delivery_claims.ts";
import type { ClaimedDelivery, WebhookStore } from "../store/store.ts";
import type { ClaimRequest } from "./endpoint_shares.ts";

/** The next look is put off by this many times the duration of the last one, up to a bound. */
const LOOK_SHARE = 20;
const MAX_PAUSE_MS = 500;

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
    for (const id of this.#hot) {
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
    for (const { id } of due) this.#hot.add(id);
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
}
