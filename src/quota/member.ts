import type { Assignment, TokenAssignment } from "./quota_stream.ts";
import type { Fill } from "./shares.ts";
import { rateOfFill } from "./shares.ts";

/** The time to live of assignments. */
export const ASSIGNMENT_SECONDS = 15;
/** A message is assumed to arrive within this time. */
export const MESSAGE_DELAY_MS = 1_000;
/** An assignment is over this long after it was last sent. */
export const OVER_MS = ASSIGNMENT_SECONDS * 1_000 + MESSAGE_DELAY_MS;
/**
 * A report that arrives this long after an assignment was sent shows that it is in force: its client sent the report after
 * the assignment had arrived, or else the stream had broken before.
 */
const CONFIRM_MS = 2 * MESSAGE_DELAY_MS;
/** Counts of a shorter time make no rate. */
const MIN_COUNT_MS = 1_000;

/** An assignment that limits. */
export type Quotable = Exclude<Assignment, { readonly kind: "abandon" }>;

/** The client of members: one name, or one stream. */
export interface Recipient {
  readonly name: string | undefined;
  /** False after its stream ended. */
  readonly isOpen: boolean;
  /** Sends an assignment; `toConfirm` is marked when it has arrived, if the client confirms that. */
  send(id: string, assignment: Assignment, toConfirm?: Sent): void;
}

/** A rate that may be in force at a client. */
export interface Sent {
  readonly rate: number;
  /** When it is in force for certain, because its arrival is confirmed; infinite before. */
  inForceAt: number;
  /** The first and the last time that it was sent; never, for a confirmation, if that was on an earlier stream. */
  firstAt: number;
  lastAt: number;
}

/** One bucket of one client. */
export class Member {
  readonly id: string;
  readonly client: Recipient;
  /** Requests per second, as last reported; undefined before the first report of a time that is long enough. */
  demand: number | undefined;
  /** The last report, and the last one with requests. */
  reportedAt: number;
  usedAt: number;
  #counted: { hits: number; since: number; isAnswered: boolean };
  /** Assignments that may be in force, oldest first. */
  #sent: Sent[] = [];
  #assignment: Quotable | undefined;

  constructor(id: string, client: Recipient, now: number) {
    this.id = id;
    this.client = client;
    this.reportedAt = this.usedAt = now;
    this.#counted = { hits: 0, since: now, isAnswered: false };
  }

  /** The assignment that was last sent, if it may be in force. */
  get assignment(): Quotable | undefined {
    return this.#sent.length === 0 ? undefined : this.#assignment;
  }

  /** The rate of the assignment that was last sent; 0 if it is over. */
  get share(): number {
    return this.#sent.at(-1)?.rate ?? 0;
  }

  /** True if an assignment was sent since the last report. */
  get isAnswered(): boolean {
    return this.#counted.isAnswered;
  }

  /** The rate that may be in force; infinite with an assignment that allows everything. */
  held(now: number): number {
    let most = 0;
    let isOver = false;
    this.#dropBefore(({ inForceAt }) => inForceAt <= now);
    for (const { rate, lastAt } of this.#sent) {
      if (lastAt + OVER_MS <= now) isOver = true;
      else if (rate > most) most = rate;
    }
    if (isOver) this.#sent = this.#sent.filter(({ lastAt }) => lastAt + OVER_MS > now);
    return most;
  }

  /** True if its client reports it. */
  isActive(now: number): boolean {
    return this.client.isOpen && now - this.reportedAt < OVER_MS;
  }

  /** True if more is needed than is sure to suffice. */
  isStarving(): boolean {
    return this.demand === undefined || this.demand > this.share * 0.95 || this.share === 0;
  }

  /** Takes a report, and the confirmation in it. */
  reported(hits: number, elapsedSeconds: number, now: number): void {
    this.reportedAt = now;
    if (hits > 0) this.usedAt = now;
    this.#dropBefore(({ firstAt }) => firstAt + CONFIRM_MS <= now);
    const counted = this.#counted;
    counted.hits += hits;
    counted.isAnswered = false;
    if (now - counted.since < MIN_COUNT_MS) return;
    let seconds = (now - counted.since) / 1_000;
    // The time between two arrivals varies more than that between two reports.
    if (elapsedSeconds > 0) seconds = Math.max(elapsedSeconds, Math.min(seconds, elapsedSeconds + 1));
    this.demand = counted.hits / seconds;
    counted.hits = 0;
    counted.since = now;
  }

  /** Sends an assignment, or sends it again. */
  send(assignment: Quotable, now: number): void {
    const rate = rateOfAssignment(assignment);
    let last = this.#sent.at(-1);
    if (last !== undefined && last.rate === rate) {
      last.lastAt = now;
      last.firstAt = Math.min(last.firstAt, now);
    } else {
      last = { rate, firstAt: now, lastAt: now, inForceAt: Infinity };
      this.#sent.push(last);
    }
    this.#assignment = assignment;
    this.#counted.isAnswered = true;
    const isSmaller = this.#sent.some((earlier) => earlier.rate > rate);
    this.client.send(this.id, assignment, isSmaller && last.inForceAt === Infinity ? last : undefined);
  }

  /** Its stream has ended: what was sent on it may be lost. */
  streamEnded(): void {
    for (const sent of this.#sent) sent.firstAt = Infinity;
  }

  /** Forgets the assignments before the last one that must be in force. */
  #dropBefore(isInForce: (sent: Sent) => boolean): void {
    if (this.#sent.length < 2) return;
    const last = this.#sent.findLastIndex(isInForce);
    if (last > 0) this.#sent.splice(0, last);
  }
}

/** The tokens per second of an assignment. */
function rateOfAssignment(assignment: Quotable): number {
  if (assignment.kind === "tokens") {
    return rateOfFill({ tokens: assignment.tokens, seconds: assignment.fillSeconds });
  }
  return assignment.kind === "allow" ? Infinity : 0;
}

/** The assignment of a fill, with at most the tokens of a second after a pause, but one. */
export function tokensOf({ tokens, seconds }: Fill, burst: number): TokenAssignment {
  return {
    kind: "tokens",
    maxTokens: Math.min(tokens, Math.max(1, Math.floor(tokens / seconds)), Math.max(1, burst)),
    tokens,
    fillSeconds: seconds,
    fillNanos: seconds - 1,
    seconds: ASSIGNMENT_SECONDS,
  };
}
