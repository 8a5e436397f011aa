import { ASSIGNMENT_SECONDS, type Member, type Quotable, tokensOf } from "./member.ts";
import { MemberList } from "./member_list.ts";
import type { QuotaLimit } from "./quota_limit.ts";
import { divide, type Fill, fillOf, type Level, rateOfDemand, rateOfFill, UNKNOWN_DEMAND } from "./shares.ts";

/** A smaller change of a share is not worth a message. */
const MIN_CHANGE = 0.02;
/** So many demands are in a typed array. */
const MANY_MEMBERS = 64;
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

/** Before the first exchange, and of one instance; shared, because there may be a million quotas. */
export const WHOLE: Allowance = { granted: Infinity, mostHeld: Infinity };

/** The last division among several members. */
interface Division {
  readonly level: Level;
  /** The largest demand has what the others lose to whole tokens. */
  largest: Member | undefined;
  rest: number;
}

/** One limit over all clients. What is held never exceeds it, since each larger share is compared with the sum. */
export class Quota {
  readonly key: string;
  readonly members = new MemberList();
  limit: QuotaLimit;
  allowance = WHOLE;
  /** Until then, clients may hold assignments that this instance does not know. */
  unknownUntil: number;
  /** True if a share waits for what others hold, or a member for its end. */
  isWaiting = false;
  #division: Division | undefined;

  constructor(key: string, limit: QuotaLimit, unknownUntil: number) {
    this.key = key;
    this.limit = limit;
    this.unknownUntil = unknownUntil;
  }

  /** Requests per second of all clients; one that is unknown is assumed to need an equal part. */
  get demand(): number {
    return this.members.demandOf(this.limit.kind === "rate" ? this.limit.perSecond : 0);
  }

  /** The part of the requests that would have been refused, were it not for shadow mode. */
  get shadowPart(): number {
    const { limit, members } = this;
    if (limit.kind !== "allow" || limit.shadowPerSecond === undefined) return 0;
    return Math.max(0, 1 - limit.shadowPerSecond / Math.max(members.demand, limit.shadowPerSecond, 1e-9));
  }

  /** The first report of a client shows this rate, with an assignment that this instance did not send. */
  showHeld(member: Member, perSecond: number, unknownUntil: number): void {
    member.show(perSecond);
    this.unknownUntil = Math.max(this.unknownUntil, unknownUntil);
  }

  /**
   * Forgets members that have left, and sends what has to change, if it is sure that this may be sent: smaller shares, and
   * larger ones as far as they are free. Other work may go on between two steps.
   */
  *divide(clock: () => number, isSure: () => boolean): Generator<void> {
    this.isWaiting = false;
    const excess = yield* this.#measure(clock());
    if (this.limit.kind !== "rate" || !isSure()) return;
    const isOver = excess > this.#cap * TOLERANCE;
    const hasNeed = yield* this.#fit(clock());
    if (!isOver && !hasNeed) return;
    const { members } = this;
    for (let member = members.first; member !== undefined; member = members.after(member)) {
      if (member.isActive(clock())) this.#lower(member, isOver, clock());
      yield;
    }
    for (const isFirst of [true, false]) {
      for (let member = members.first; member !== undefined; member = members.after(member)) {
        if (member.isStarving() === isFirst && member.isActive(clock()) && isSure()) {
          this.raise(member, clock());
        }
        yield;
      }
    }
  }

  /** True if a share has to change, as far as one member shows. */
  needsChange(member: Member): boolean {
    return this.limit.kind === "rate" &&
      (member.assignment?.kind !== "tokens" || member.isStarving() || this.isWaiting);
  }

  /** A first or larger share by the last division, as far as it is free. */
  raise(member: Member, now: number): void {
    const { limit, members } = this;
    if (limit.kind !== "rate" || members.size > 1 && this.#division === undefined) return;
    const { share, assignment } = member;
    const target = this.#fillFor(member);
    const wanted = rateOfFill(target);
    if (wanted <= share && assignment !== undefined) return;
    const isUnknown = now < this.unknownUntil;
    const free = Math.min(this.#cap, this.allowance.mostHeld) - members.heldByOthers(member);
    const sure = isUnknown ? Math.min(free, member.shown) : free;
    const given = sure >= wanted ? target : fillOf(sure);
    const rate = rateOfFill(given);
    if (rate < wanted && wanted > share * (1 + MIN_CHANGE) && member.isStarving()) this.isWaiting = true;
    // It may still use an earlier assignment, and otherwise does what its configuration says.
    const mayHoldOther = !isUnknown && assignment === undefined && member.mayHoldOther(now, rate);
    if (isUnknown && rate === 0 || mayHoldOther) this.isWaiting = true;
    else if (assignment === undefined || rate > share * (1 + MIN_CHANGE)) {
      members.send(member, tokensOf(given, limit.burst), now);
    }
  }

  get #cap(): number {
    return this.limit.kind === "rate" ? Math.min(this.limit.perSecond, this.allowance.granted) : 0;
  }

  /** Sums what active members may use, above the limit, and divides it by their demands. */
  *#measure(now: number): Generator<void, number> {
    const { members, limit } = this;
    const isAlone = members.size === 1;
    const demands = members.size < MANY_MEMBERS ? [] : new Float64Array(members.size);
    let count = 0;
    let shares = 0;
    for (let member = members.first; member !== undefined; member = members.after(member)) {
      const held = members.look(member, now);
      if (member.isActive(now)) {
        shares += member.share;
        demands[count++] = member.demand ?? UNKNOWN_DEMAND;
      } else {
        members.forgetDemand(member);
        if (held > 0) this.isWaiting = true;
        else if (member.hasLeft) members.remove(member);
      }
      yield;
    }
    const all = demands instanceof Float64Array ? demands.subarray(0, count) : demands;
    this.#division = isAlone || limit.kind !== "rate"
      ? undefined
      : { level: yield* divide(this.#cap, all), largest: undefined, rest: 0 };
    return shares - this.#cap;
  }

  /** Finds what whole tokens leave over. True if a member needs a first or larger share that it can have. */
  *#fit(now: number): Generator<void, boolean> {
    const { members } = this;
    const division = this.#division;
    let left = this.#cap;
    let largest: Member | undefined;
    let hasNeed = false;
    for (let member = members.first; member !== undefined; member = members.after(member)) {
      yield;
      if (!member.isActive(now)) continue;
      left -= rateOfFill(this.#fillFor(member));
      if (largest === undefined || (member.demand ?? 0) > (largest.demand ?? 0)) largest = member;
      hasNeed ||= this.#isInNeed(member);
    }
    if (division !== undefined) [division.largest, division.rest] = [largest, left];
    return hasNeed || largest !== undefined && this.#isInNeed(largest);
  }

  #isInNeed(member: Member): boolean {
    return member.assignment?.kind !== "tokens" ||
      member.isStarving() && rateOfFill(this.#fillFor(member)) > member.share * (1 + MIN_CHANGE);
  }

  #lower(member: Member, isOver: boolean, now: number): void {
    if (this.limit.kind !== "rate" || member.assignment === undefined) return;
    const most = isOver ? member.share : member.share * (1 - MIN_CHANGE);
    const fill = this.#fillFor(member);
    if (rateOfFill(fill) < most) this.members.send(member, tokensOf(fill, this.limit.burst), now);
  }

  /** The whole tokens of a member. */
  #fillFor(member: Member): Fill {
    if (this.#division === undefined) return fillOf(this.#cap);
    const { level, largest, rest } = this.#division;
    const fill = fillOf(rateOfDemand(level, member.demand ?? UNKNOWN_DEMAND));
    return member === largest ? fillOf(Math.max(0, rateOfFill(fill) + rest)) : fill;
  }
}
