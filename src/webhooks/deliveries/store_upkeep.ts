import type { Clock } from "../../base/clock.ts";
import { clockSetBack, voidClaims } from "../store/operations/claims.ts";
import { failPaused } from "../store/operations/delivery_claims.ts";
import type { WebhookStore } from "../store/store.ts";

/** Options of `StoreUpkeep`. */
interface StoreUpkeepOptions {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly newId: () => string;
  /** Renews every claim of this process; false when the store cannot. */
  readonly renewOwn: () => Promise<boolean>;
  readonly onExpired: (count: number) => void;
  /** Deliveries became due, or there is more upkeep to do. */
  readonly wake: () => void;
}

/** Expired claims are taken back this often. */
const EXPIRE_MS = 5_000;
/** After a fault of the store expired claims are left alone for so long: others have results to write and claims to renew. */
const RETURN_MS = 10_000;
/** The same after the clock was set forward: others notice later, and then renew. */
const FORWARD_MS = 20_000;
/** Deliveries of disabled endpoints are checked this often. */
const PAUSED_MS = 60_000;
/** A wall clock was set when it moves against `elapsed` by more than this between two rounds. */
const STEP_MS = 1_000;

/** Repeated work for a whole store: expired claims, steps of the clock, deliveries of disabled endpoints. */
export class StoreUpkeep {
  readonly #options: StoreUpkeepOptions;
  /** By the clock's `elapsed`. */
  #nextExpiry = 0;
  #nextPaused = 0;
  /** Lead of the wall clock over `elapsed`; at first as if it had been set back before the start. */
  #aheadMs = Infinity;
  #isSetBack = false;

  constructor(options: StoreUpkeepOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    await this.#followClock();
    await this.#expireClaims();
    await this.#failPaused();
  }

  /** The store has failed. */
  delayExpiry(): void {
    this.#nextExpiry = Math.max(this.#nextExpiry, this.#options.clock.elapsed() + RETURN_MS);
  }

  /** Work that was due by a clock that was set back since would wait for as long as the step is. */
  async #followClock(): Promise<void> {
    const { store, clock, wake } = this.#options;
    const now = clock.now();
    const elapsed = clock.elapsed();
    const aheadMs = now - elapsed;
    if (aheadMs < this.#aheadMs - STEP_MS) this.#isSetBack = true;
    // By the new time all leases may be over, and others have not noticed yet.
    if (aheadMs > this.#aheadMs + STEP_MS) this.#nextExpiry = elapsed + FORWARD_MS;
    this.#aheadMs = aheadMs;
    if (!this.#isSetBack) return;
    // A store changes a limited number per call: repeat until none are left.
    this.#isSetBack = await store.write(clockSetBack, now) > 0;
    if (this.#isSetBack) wake();
  }

  /** Renews first: a process that was suspended would find its own claims among the expired ones. */
  async #expireClaims(): Promise<void> {
    const { store, clock, renewOwn, onExpired } = this.#options;
    const now = clock.now();
    const elapsed = clock.elapsed();
    if (elapsed < this.#nextExpiry) return;
    this.#nextExpiry = elapsed + EXPIRE_MS;
    if (!await renewOwn()) return;
    const count = await store.write(voidClaims, { now, which: "expired" });
    if (count > 0) onExpired(count);
  }

  async #failPaused(): Promise<void> {
    const { store, clock, newId, wake } = this.#options;
    const elapsed = clock.elapsed();
    if (elapsed < this.#nextPaused) return;
    this.#nextPaused = elapsed + PAUSED_MS;
    if (await store.write(failPaused, { now: clock.now(), newId }) === 0) return;
    // There may be more than a store fails per call; deliveries have their turn in between.
    this.#nextPaused = elapsed;
    wake();
  }
}
