import type { Bucket, LeasedQuota } from "./bucket_table.ts";
import { Member, type Recipient, type Sent } from "./member.ts";
import type { Assignment, QuotaClient } from "./quota_stream.ts";

/** Options of a `HubClient`. */
interface HubClientOptions {
  readonly domain: string;
  /** False if another client has its name. */
  readonly isNamed: boolean;
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

/** A client of a hub: a name, or a stream without one. */
export class HubClient implements Recipient {
  readonly name: string | undefined;
  readonly domain: string;
  /** By the id of their bucket. */
  readonly members = new Map<string, BucketMember>();
  /** The end of its last stream; undefined while it has one. */
  closedAt: number | undefined;
  reopenedAt = -1;
  readonly #sent: (client: HubClient) => void;
  #peer: QuotaClient;
  /** Sent since the last question for a confirmation. */
  #toConfirm: Sent[] = [];
  #isConfirming = false;

  constructor(peer: QuotaClient, { domain, isNamed, sent }: HubClientOptions) {
    this.name = isNamed ? peer.name : undefined;
    this.domain = domain;
    this.#peer = peer;
    this.#sent = sent;
  }

  get isOpen(): boolean {
    return this.closedAt === undefined;
  }

  send(id: string, assignment: Assignment, toConfirm?: Sent): void {
    if (!this.isOpen) return;
    this.#peer.actions.send(id, assignment);
    if (toConfirm !== undefined) this.#toConfirm.push(toConfirm);
    this.#sent(this);
  }

  flush(): void {
    if (!this.isOpen) return;
    this.#peer.actions.flush();
    if (this.#toConfirm.length === 0 || this.#isConfirming) return;
    const asked = this.#toConfirm;
    const peer = this.#peer;
    this.#toConfirm = [];
    this.#isConfirming = peer.actions.confirm(() => {
      if (this.#peer !== peer || !this.isOpen) return;
      this.#isConfirming = false;
      for (const sent of asked) sent.isInForce = true;
      this.flush();
    });
  }

  /** Ends its stream in order. */
  end(): void {
    if (this.isOpen) this.#peer.end();
  }

  /** Its stream has ended. */
  close(now: number): void {
    this.closedAt = now;
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
