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
/** The last report of a member that has left. */
const LEFT = -OVER_MS;
const UNKNOWN = -1;
/** Assignments that are kept to be shared. */
const MAX_KNOWN = 10_000;

/** An assignment that limits. */
export type Quotable = Exclude<Assignment, { readonly kind: "abandon" }>;

/** The client of members: one name, or one stream. */
export interface Recipient {
  readonly name: string | undefined;
  /** False after its stream ended. */
  readonly isOpen: boolean;
  /** The begin of its stream, if that is not its first one: what was sent before may be lost. */
  readonly reopenedAt: number;
  /** The time at which the assignments sent before had left; infinite while some of them wait. */
  readonly delayedUntil: number;
  /** Sends an assignment; `toConfirm` is marked when it has arrived, if the client confirms that. */
  send(id: string, assignment: Assignment, toConfirm?: Sent): void;
}

/** An assignment that may be in force at a client. */
export interface Sent {
  assignment: Quotable;
  /** The first time that it was sent on this stream, and the last time. */
  firstAt: number;
  lastAt: number;
  /** True if its arrival is confirmed. */
  isInForce: boolean;
  /** An earlier one of another rate that may be in force too. */
  earlier: Sent | undefined;
}

/** The reports of a member. */
interface Reported {
  /** Requests per second, as last reported; `UNKNOWN` before the first report of a time that is long enough. */
  demand: number;
  /** Requests since the demand was known, and that time. */
  hits: number;
  since: number;
  /** The last report, and the last one with requests. */
  at: number;
  usedAt: number;
  /** A rate that its client has shown when this instance had sent nothing, and how many of its reports showed it. */
  shown: number;
  showing: 0 | 1 | 2;
}

/** One bucket of one client. Its list changes it, and knows the sums. */
export class Member {
  readonly id: string;
  readonly client: Recipient;
  readonly reported: Reported;
  readonly joinedAt: number;
  /** The last assignment that was sent, if it may be in force. */
  sent: Sent | undefined;
  /** Its list's sums count its demand, and this rate. */
  isAsking = true;
  counted = 0;
  /** Its list, and its neighbours there. */
  owner: object | undefined;
  next: Member | undefined;
  previous: Member | undefined;

  constructor(id: string, client: Recipient, now: number) {
    this.id = id;
    this.client = client;
    this.joinedAt = now;
    this.reported = { demand: UNKNOWN, hits: 0, since: now, at: now, usedAt: now, shown: 0, showing: 0 };
  }

  /** Requests per second; undefined while it is unknown. */
  get demand(): number | undefined {
    const { demand } = this.reported;
    return demand === UNKNOWN ? undefined : demand;
  }

  /** A rate that its client is sure to hold of an assignment that this instance did not send. */
  get shown(): number {
    return this.reported.showing === 2 ? this.reported.shown : 0;
  }

  /** The assignment that was last sent, if it may be in force. */
  get assignment(): Quotable | undefined {
    return this.sent?.assignment;
  }

  /** The rate of the assignment that was last sent; 0 if it is over. */
  get share(): number {
    return this.sent === undefined ? 0 : rateOfAssignment(this.sent.assignment);
  }

  /** True if an assignment was sent since the last report, on this stream. */
  get isAnswered(): boolean {
    const at = this.sent?.lastAt ?? -1;
    return at >= this.reported.at && at > this.client.reopenedAt;
  }

  /** True if its client has the bucket no longer. */
  get hasLeft(): boolean {
    return this.reported.at === LEFT;
  }

  /** The rate that may be in force; infinite with an assignment that allows everything. Forgets those that are over. */
  held(now: number): number {
    let most = 0;
    let later: Sent | undefined;
    if (this.sent?.earlier !== undefined) this.#dropBefore(({ isInForce }) => isInForce);
    for (let sent = this.sent; sent !== undefined; sent = sent.earlier) {
      if (Math.max(sent.lastAt, this.client.delayedUntil) + OVER_MS > now) {
        most = Math.max(most, rateOfAssignment(sent.assignment));
        later = sent;
      } else if (later === undefined) this.sent = sent.earlier;
      else later.earlier = sent.earlier;
    }
    return most;
  }

  /** True if its client reports it. */
  isActive(now: number): boolean {
    return this.client.isOpen && now - this.reported.at < OVER_MS;
  }

  /** True if more is needed than is sure to suffice. */
  isStarving(): boolean {
    const { share, demand } = this;
    return demand === undefined || demand > share * 0.95 || share === 0;
  }

  /** Takes a report, and the confirmation in it, by the time at which it arrived. */
  report(hits: number, elapsedSeconds: number, now: number, arrivedAt = now): void {
    const { reported } = this;
    reported.at = now;
    if (hits > 0) reported.usedAt = now;
    const { reopenedAt, delayedUntil } = this.client;
    if (this.sent?.earlier !== undefined) {
      this.#dropBefore(({ firstAt }) => {
        return firstAt > reopenedAt && Math.max(firstAt, delayedUntil) + CONFIRM_MS <= arrivedAt;
      });
    }
    reported.hits += hits;
    const since = now - reported.since;
    if (since < MIN_COUNT_MS) return;
    let seconds = since / 1_000;
    // The time between two arrivals varies more than that between two reports.
    if (elapsedSeconds > 0) seconds = Math.max(elapsedSeconds, Math.min(seconds, elapsedSeconds + 1));
    reported.demand = reported.hits / seconds;
    reported.hits = 0;
    reported.since = now;
  }

  /** Sends an assignment, or sends it again. */
  send(assignment: Quotable, now: number): void {
    const rate = rateOfAssignment(assignment);
    let last = this.sent;
    if (last !== undefined && rateOfAssignment(last.assignment) === rate) {
      if (last.firstAt <= this.client.reopenedAt) last.firstAt = now;
      last.assignment = assignment;
      last.lastAt = now;
    } else {
      last = this.sent = { assignment, firstAt: now, lastAt: now, isInForce: false, earlier: last };
    }
    let isSmaller = false;
    for (let { earlier } = last; earlier !== undefined; earlier = earlier.earlier) {
      isSmaller ||= rateOfAssignment(earlier.assignment) > rate;
    }
    this.client.send(this.id, assignment, isSmaller && !last.isInForce ? last : undefined);
  }

  /** A report of its client shows this rate, with an assignment that this instance did not send. */
  show(perSecond: number): void {
    const { reported } = this;
    // It may have become smaller in the time of the first report, or have expired in the time of the next one, but not both.
    reported.shown = reported.showing === 0 ? perSecond : Math.min(reported.shown, perSecond);
    reported.showing = reported.showing === 0 ? 1 : 2;
  }

  /** True if its client may have a larger assignment that this stream did not send, as its first report showed. */
  mayHoldOther(now: number, perSecond: number): boolean {
    const { showing, shown } = this.reported;
    return showing > 0 && now - this.joinedAt < OVER_MS && (perSecond === 0 || perSecond < shown);
  }

  /** Its client has the bucket no longer, and may use the assignment until it is over. */
  leave(): void {
    this.reported.at = LEFT;
  }

  /** Forgets the assignments before the last one that must be in force. */
  #dropBefore(isInForce: (sent: Sent) => boolean): void {
    for (let { sent } = this; sent !== undefined; sent = sent.earlier) {
      if (isInForce(sent)) sent.earlier = undefined;
    }
  }
}

/** The tokens per second of an assignment. */
function rateOfAssignment(assignment: Quotable): number {
  if (assignment.kind === "tokens") {
    return rateOfFill({ tokens: assignment.tokens, seconds: assignment.fillSeconds });
  }
  return assignment.kind === "allow" ? Infinity : 0;
}

function mostTokens({ tokens, seconds }: Fill, burst: number): number {
  return Math.min(tokens, Math.max(1, Math.floor(tokens / seconds)), Math.max(1, burst));
}

/** An assignment with the burst of its rule, which may have changed. */
export function withBurst(assignment: Quotable, burst: number): Quotable {
  if (assignment.kind !== "tokens") return assignment;
  const fill = { tokens: assignment.tokens, seconds: assignment.fillSeconds };
  return assignment.maxTokens === mostTokens(fill, burst) ? assignment : tokensOf(fill, burst);
}

/** Assignments by tokens, seconds and the most tokens. */
const known = new Map<string, TokenAssignment>();

/** The assignment of a fill, with at most the tokens of a second after a pause, but one. Equal ones are mostly the same object. */
export function tokensOf({ tokens, seconds }: Fill, burst: number): TokenAssignment {
  const maxTokens = mostTokens({ tokens, seconds }, burst);
  const key = `${tokens}/${seconds}/${maxTokens}`;
  let assignment = known.get(key);
  if (assignment === undefined) {
    assignment = {
      kind: "tokens",
      maxTokens,
      tokens,
      fillSeconds: seconds,
      fillNanos: seconds - 1,
      seconds: ASSIGNMENT_SECONDS,
    };
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(key, assignment);
  }
  return assignment;
}
