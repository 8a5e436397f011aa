import { OVER_MS } from "./member.ts";
import { type Quota, WHOLE } from "./quota.ts";
import type { QuotaGrant, QuotaShares } from "./quota_shares.ts";

const EXCHANGE_MS = 2_000;
/** Pause after a failure, and while somebody waits for a larger share. */
const SOON_MS = 1_000;

/** Shared, because there may be a million quotas. */
const NEVER = { at: -Infinity, isWaiting: false, hasFailed: false };

/** The part of this instance in a quota, and the time that it is sure for. */
export class QuotaLease {
  readonly #shares: QuotaShares;
  readonly #quota: Quota;
  #until = -Infinity;
  #asked = NEVER;
  /** The limit of the last exchange. */
  #limit: number | undefined;

  constructor(shares: QuotaShares, quota: Quota) {
    this.#shares = shares;
    this.#quota = quota;
  }

  /** True if other instances have parts too, or may have. */
  get isShared(): boolean {
    return this.#until !== Infinity;
  }

  /** True while an answer is awaited. */
  get isBusy(): boolean {
    return this.#asked.isWaiting;
  }

  /** True if the last exchange failed. */
  get hasFailed(): boolean {
    return this.#asked.hasFailed;
  }

  /**
   * True if an assignment that is sent now is over before the part is lost. If it is lost since the cache fails, the
   * instance may decide alone with the part that it had, or all.
   */
  covers(now: number, isAlone: boolean): boolean {
    if (now + OVER_MS <= this.#until) return true;
    if (!isAlone || !this.hasFailed) return false;
    const { granted } = this.#quota.allowance;
    this.#quota.allowance = { granted, mostHeld: granted };
    return true;
  }

  /** Exchanges need and part, if it is time; `answered` is called after an answer that is not immediate. */
  renew(now: number, answered: () => void): void {
    const { limit, isWaiting, allowance: { granted } } = this.#quota;
    const pause = isWaiting || this.hasFailed ? SOON_MS : EXCHANGE_MS;
    if (limit.kind !== "rate" || this.#until === Infinity) return;
    const isNew = limit.perSecond !== this.#limit;
    if (this.#asked.isWaiting || !isNew && now - this.#asked.at < pause) return;
    this.#limit = limit.perSecond;
    const held = Math.min(this.#quota.members.held, limit.perSecond);
    this.#quota.allowance = { granted, mostHeld: held };
    const [demand, isPerSecond] = [this.#quota.demand, limit.isPerSecond];
    const grant = this.#shares.exchange({
      key: this.#quota.key,
      isPerSecond,
      limit: limit.perSecond,
      demand,
      held,
    });
    const take = ({ perSecond, leaseMs }: QuotaGrant) => {
      const isWhole = leaseMs === Infinity;
      this.#quota.allowance = isWhole ? WHOLE : { granted: perSecond, mostHeld: Infinity };
      this.#until = now + leaseMs;
      // Others wait until less is held.
      const at = held > perSecond ? now - SOON_MS : now;
      this.#asked = isWhole ? NEVER : { at, isWaiting: false, hasFailed: false };
    };
    if (!("then" in grant)) return take(grant);
    this.#asked = { at: now, isWaiting: true, hasFailed: this.hasFailed };
    grant.then(take, () => this.#asked = { at: now, isWaiting: false, hasFailed: true }).then(answered);
  }

  /** Gives the part back, once nothing is held. */
  leave(): void {
    const { key, limit } = this.#quota;
    if (!this.isShared || this.#until === -Infinity || this.#asked.isWaiting) return;
    this.#until = -Infinity;
    this.#quota.allowance = { granted: 0, mostHeld: 0 };
    this.#asked = { at: -Infinity, isWaiting: true, hasFailed: false };
    const done = () => this.#asked = { at: -Infinity, isWaiting: false, hasFailed: false };
    this.#shares.leave(key, limit.kind === "rate" && limit.isPerSecond).then(done, done);
  }
}
