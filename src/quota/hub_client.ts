import type { Bucket, LeasedQuota } from "./bucket_table.ts";
import { Member, type Recipient, type Sent } from "./member.ts";
import type { Assignment, QuotaClient } from "./quota_stream.ts";

/** Options of a `HubClient`. */
interface HubClientOptions {
  readonly domain: string;
  /** Milliseconds since the start of the hub. */
  readonly now: () => number;
  /** Called after each assignment, which is on its way when the client is flushed. */
  readonly sent: (client: HubClient) => void;
}

/** A bucket of a client of a hub. */
export class BucketMember extends Member {
  readonly bucket: Bucket;
  /** The quota that it is in: that of the bucket, but for a moment after the rules have changed. */
  leased: LeasedQuota;

  constructor(bucket: Bucket, client: Recipient, now: number) {
    super(bucket.id, client, now);
    this.bucket = bucket;
    this.leased = bucket.leased;
    this.leased.quota.members.add(this);
  }

  /** Goes to the quota of its bucket; returns the one that it was in. */
  move(): LeasedQuota {
    const { leased, bucket } = this;
    if (leased === bucket.leased) return leased;
    leased.quota.members.remove(this);
    this.leased = bucket.leased;
    this.leased.quota.members.add(this);
    return leased;
  }
}

/** Confirmations that are awaited for each bucket, at most. */
const MAX_TO_CONFIRM = 2;

/** A client of a hub: a name, or a stream without one. */
export class HubClient implements Recipient {
  readonly name: string | undefined;
  readonly domain: string;
  /** By the id of their bucket. */
  readonly members = new Map<string, BucketMember>();
  /** The end of its last stream; undefined while it has one. */
  closedAt: number | undefined;
  reopenedAt = -1;
  delayedUntil = -1;
  readonly #now: () => number;
  readonly #sent: (client: HubClient) => void;
  #peer: QuotaClient;
  /** Sent since the last question for a confirmation. */
  #toConfirm: Sent[] = [];
  #isConfirming = false;

  constructor(peer: QuotaClient, { domain, now, sent }: HubClientOptions) {
    this.name = peer.name;
    this.domain = domain;
    this.#now = now;
    this.#peer = peer;
    this.#sent = sent;
  }

  get isOpen(): boolean {
    return this.closedAt === undefined;
  }

  send(id: string, assignment: Assignment, toConfirm?: Sent): void {
    if (!this.isOpen) return;
    this.#peer.actions.send(id, assignment);
    if (toConfirm !== undefined && this.#toConfirm.length < MAX_TO_CONFIRM * this.members.size) {
      this.#toConfirm.push(toConfirm);
    }
    this.#sent(this);
  }

  /** Sends what waits; false if some of it has to wait longer. */
  flush(): boolean {
    if (!this.isOpen) return true;
    if (!this.#peer.actions.flush()) {
      this.delayedUntil = Infinity;
      return false;
    }
    if (this.delayedUntil === Infinity) this.delayedUntil = this.#now();
    this.#confirm();
    return true;
  }

  #confirm(): void {
    if (this.#toConfirm.length === 0 || this.#isConfirming) return;
    const asked = this.#toConfirm;
    const peer = this.#peer;
    this.#toConfirm = [];
    this.#isConfirming = peer.actions.confirm(() => {
      if (this.#peer !== peer || !this.isOpen) return;
      this.#isConfirming = false;
      for (const sent of asked) sent.isInForce = true;
      this.#confirm();
    });
  }

  /** Ends its stream in order. */
  end(): void {
    if (this.isOpen) this.#peer.end();
  }

  /** Its stream has ended. */
  close(now: number): void {
    this.closedAt = now;
    if (this.delayedUntil === Infinity) this.delayedUntil = now;
    this.#toConfirm = [];
    this.#isConfirming = false;
  }

  /** It has a new stream, and the shares that it had. */
  reopen(peer: QuotaClient, now: number): this {
    this.#peer = peer;
    this.closedAt = undefined;
    this.reopenedAt = now;
    return this;
  }
}
