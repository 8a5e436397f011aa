import { ASSIGNMENT_SECONDS, type Member, OVER_MS, type Quotable, tokensOf } from "./member.ts";
import type { QuotaLimit } from "./quota_limit.ts";
import { divideFills, type Fill, fillOf, NO_FILL, rateOfFill } from "./shares.ts";

/** A smaller change of a share is not worth a message. */
const MIN_CHANGE = 0.02;
/** Rates are sums of quotients. */
const TOLERANCE = 1e-6;

/** Passes everything, for the time of an assignment. */
export const ALLOW_ALL: Quotable = { kind: "allow", seconds: ASSIGNMENT_SECONDS };
/** Refuses everything, for the time of an assignment. */
export const DENY_ALL: Quotable = { kind: "deny", seconds: ASSIGNMENT_SECONDS };

/** The most that may be handed out. */
interface Allowance {
  /** The part of this instance in the limit. */
  readonly granted: number;
  /** With this much held, nothing more is handed out, while it is not sure that it is granted. */
  readonly mostHeld: number;
}

/** Before the first exchange and the first sum; shared, because there may be a million quotas. */
const WHOLE: Allowance = { granted: Infinity, mostHeld: Infinity };
const NO_SUM = { at: -Infinity, demand: 0 };

/** One limit over all clients. */
export class Quota {
  readonly key: string;
  readonly members = new Set<Member>();
  limit: QuotaLimit;
  allowance = WHOLE;
  /** Until then, clients may hold assignments that this instance does not know. */
  unknownUntil: number;
  /** True if a share waits for what others hold. */
  isWaiting = false;
  /** The buckets of this quota; each may have members. */
  buckets = 0;
  /** Rates that clients have shown in their first reports, and the sure ones of two, while the rest is unknown. */
  readonly #firstShown = new Map<Member, number>();
  readonly #shown = new Map<Member, number>();
  #sum = NO_SUM;

  constructor(key: string, limit: QuotaLimit, unknownUntil: number) {
    this.key = key;
    this.limit = limit;
    this.unknownUntil = unknownUntil;
  }

  /** Requests per second of all clients, or those of a moment ago if there are many. */
  demand(now: number): number {
    if (now - this.#sum.at < Math.min(1_000, this.members.size)) return this.#sum.demand;
    let demand = 0;
    const equal = this.limit.kind === "rate" ? this.limit.perSecond / this.members.size : 0;
    for (const member of this.members) {
      if (member.isActive(now)) demand += member.demand ?? equal;
    }
    this.#sum = { at: now, demand };
    return demand;
  }

  /** The part of the requests that would have been refused, were it not for shadow mode. */
  shadowPart(now: number): number {
    const { limit } = this;
    if (limit.kind !== "allow" || limit.shadowPerSecond === undefined) return 0;
    return Math.max(0, 1 - limit.shadowPerSecond / Math.max(this.demand(now), limit.shadowPerSecond, 1e-9));
  }

  /** The rates that may be in force. */
  held(now: number): number {
    let sum = 0;
    for (const member of this.members) sum += member.held(now);
    return sum;
  }

  /** The first report of a client shows this rate, with an assignment that this instance did not send. */
  showHeld(member: Member, perSecond: number, unknownUntil: number): void {
    this.unknownUntil = Math.max(this.unknownUntil, unknownUntil);
    this.#firstShown.set(member, perSecond);
  }

  /**
   * Its next report shows this rate. The assignment may have become smaller in the time of the first one, or have expired in
   * the time of this one, but not both: the smaller rate is sure.
   */
  showAgain(member: Member, perSecond: number): void {
    const first = this.#firstShown.get(member);
    if (first !== undefined) this.#shown.set(member, Math.min(first, perSecond));
    this.#firstShown.delete(member);
  }

  /** Sends what has to change: smaller shares, and larger ones as far as it is sure that they are free. */
  rebalance(now: number): void {
    const { limit } = this;
    if (limit.kind !== "rate") return;
    this.isWaiting = false;
    const open = this.#openMembers(now);
    const cap = Math.min(limit.perSecond, this.allowance.granted);
    const fills = divideFills(cap, open.map(({ demand = cap / open.length }) => demand));
    const excess = open.reduce((sum, { share }) => sum + share, 0) - cap;
    const isOver = excess > cap * TOLERANCE;
    const hasNeed = open.some((member, index) =>
      member.assignment?.kind !== "tokens" ||
      member.isStarving() && rateOfFill(fills[index] ?? NO_FILL) > member.share * (1 + MIN_CHANGE)
    );
    if (!isOver && !hasNeed) return;
    for (const [index, member] of open.entries()) {
      const fill = fills[index] ?? NO_FILL;
      const most = isOver ? member.share : member.share * (1 - MIN_CHANGE);
      if (member.assignment !== undefined && rateOfFill(fill) < most) {
        member.send(tokensOf(fill, limit.burst), now);
      }
    }
    this.#raise(open, fills, { now, cap, burst: limit.burst });
  }

  /** Forgets members whose client has gone, once they hold nothing. */
  forgetOver(now: number): void {
    for (const member of this.members) {
      if (member.reportedAt + OVER_MS <= now && member.held(now) === 0) this.members.delete(member);
    }
  }

  /** Members with a client that reports; those of others are kept while they hold something. */
  #openMembers(now: number): Member[] {
    const open: Member[] = [];
    if (now >= this.unknownUntil) {
      this.#firstShown.clear();
      this.#shown.clear();
    }
    for (const member of this.members) {
      if (member.isActive(now)) {
        member.held(now);
        open.push(member);
      } else if (member.held(now) > 0) {
        this.isWaiting = true;
      } else {
        this.members.delete(member);
      }
    }
    return open;
  }

  /** Larger shares for those that starve, then for the others. */
  #raise(
    open: readonly Member[],
    fills: readonly Fill[],
    { now, cap, burst }: { readonly now: number; readonly cap: number; readonly burst: number },
  ): void {
    const isUnknown = now < this.unknownUntil;
    const most = Math.min(cap, this.allowance.mostHeld);
    let held = 0;
    let unbounded = 0;
    for (const member of this.members) {
      const upper = member.held(now);
      if (upper === Infinity) unbounded++;
      else held += upper;
    }
    for (const isFirst of [true, false]) {
      for (const [index, member] of open.entries()) {
        const fill = fills[index] ?? NO_FILL;
        const { share } = member;
        if (
          member.isStarving() !== isFirst || (rateOfFill(fill) <= share && member.assignment !== undefined)
        ) {
          continue;
        }
        const upper = member.held(now);
        const others = upper === Infinity ? unbounded - 1 : unbounded;
        const free = others > 0 ? 0 : most - held + (upper === Infinity ? 0 : upper);
        const sure = isUnknown ? Math.min(free, this.#shown.get(member) ?? 0) : free;
        const given = sure >= rateOfFill(fill) ? fill : fillOf(sure);
        const rate = rateOfFill(given);
        if (rate < rateOfFill(fill) && isFirst) this.isWaiting = true;
        // It may still use an earlier assignment, and otherwise does what its configuration says.
        if (isUnknown && rate === 0) {
          this.isWaiting = true;
          continue;
        }
        if (member.assignment !== undefined && rate <= share * (1 + MIN_CHANGE)) continue;
        member.send(tokensOf(given, burst), now);
        if (upper !== Infinity) held += Math.max(0, rate - upper);
      }
    }
  }
}
