import type { Member, Quotable } from "./member.ts";

/** The members of a quota, with their sums. A list, since a set of a million stops the thread for 0.3 s when it grows. */
export class MemberList {
  /** Before it is the last one. */
  #first: Member | undefined;
  #size = 0;
  /** Of those whose demand is known, and the number of the others. */
  #demand = 0;
  #unknown = 0;
  /** The rates that may be in force, and the number of members with an infinite one. */
  #held = 0;
  #unbounded = 0;

  get first(): Member | undefined {
    return this.#first;
  }

  get size(): number {
    return this.#size;
  }

  /** Requests per second of all, as far as they are known. */
  get demand(): number {
    return this.#demand;
  }

  /** Requests per second of all, with an equal part of a limit where they are unknown. */
  demandOf(limit: number): number {
    return this.#demand + this.#unknown * limit / Math.max(1, this.#size);
  }

  /** The rates that may be in force; some of them may be over since they were counted. */
  get held(): number {
    return this.#unbounded > 0 ? Infinity : this.#held;
  }

  /** The rates that others than a member may use. */
  heldByOthers({ counted }: Member): number {
    if (counted !== Infinity) return this.held - counted;
    return this.#unbounded > 1 ? Infinity : this.#held;
  }

  /** The next one behind a member, which may have left since it was reached; undefined if it has gone to another list. */
  after(member: Member): Member | undefined {
    if (member.owner !== undefined && member.owner !== this) return undefined;
    let { next } = member;
    while (next !== undefined && next.owner === undefined) next = next.next;
    return next?.owner === this ? next : undefined;
  }

  add(member: Member): void {
    const last = this.#first?.previous;
    member.owner = this;
    member.next = undefined;
    member.previous = last ?? member;
    if (last !== undefined) last.next = member;
    this.#first ??= member;
    this.#first.previous = member;
    this.#size++;
    this.#ask(member, 1);
    this.#count(member.counted, 1);
  }

  /** Its own neighbours stay known to it. */
  remove(member: Member): void {
    const { next, previous } = member;
    if (this.#first === member) this.#first = next;
    else if (previous !== undefined) previous.next = next;
    const behind = next ?? this.#first;
    if (behind !== undefined) behind.previous = previous;
    member.owner = undefined;
    this.#ask(member, -1);
    this.#count(member.counted, -1);
    if (--this.#size === 0) this.#demand = this.#held = 0;
  }

  /** Takes a report of a member. */
  report(
    member: Member,
    { hits, elapsedSeconds }: { readonly hits: number; readonly elapsedSeconds: number },
    now: number,
    arrivedAt = now,
  ): void {
    this.#ask(member, -1);
    member.report(hits, elapsedSeconds, now, arrivedAt);
    member.isAsking = true;
    this.#ask(member, 1);
    this.look(member, now);
  }

  /** Sends a member an assignment. */
  send(member: Member, assignment: Quotable, now: number): void {
    member.send(assignment, now);
    this.look(member, now);
  }

  /** The demand of a member no longer counts, until its next report. */
  forgetDemand(member: Member): void {
    this.#ask(member, -1);
    member.isAsking = false;
  }

  /** Counts what a member holds now, and returns it. */
  look(member: Member, now: number): number {
    const held = member.held(now);
    if (held !== member.counted) {
      this.#count(member.counted, -1);
      this.#count(held, 1);
      member.counted = held;
    }
    return held;
  }

  #ask({ demand, isAsking }: Member, sign: 1 | -1): void {
    if (!isAsking) return;
    if (demand === undefined) this.#unknown += sign;
    else this.#demand += sign * demand;
  }

  #count(rate: number, sign: 1 | -1): void {
    if (rate === Infinity) this.#unbounded += sign;
    else this.#held += sign * rate;
  }
}
