import type { Member, Recipient, Sent } from "./member.ts";
import type { Clock } from "../base/clock.ts";
import type { Assignment, QuotaClient } from "./quota_stream.ts";

/** Options of a `HubClient`. */
interface HubClientOptions {
  readonly domain: string;
  /** False if another client has its name. */
  readonly isNamed: boolean;
  /** Called after each assignment, which is on its way when the client is flushed. */
  readonly sent: (client: HubClient) => void;
  readonly clock: Clock;
}

/** A client of a hub: a name, or a stream without one. */
export class HubClient implements Recipient {
  readonly name: string | undefined;
  readonly domain: string;
  /** By the id of their bucket. */
  readonly members = new Map<string, Member>();
  /** The end of its last stream; undefined while it has one. */
  closedAt: number | undefined;
  readonly #sent: (client: HubClient) => void;
  readonly #clock: Clock;
  #peer: QuotaClient;
  /** Sent since the last question for a confirmation. */
  #toConfirm: Sent[] = [];
  #isConfirming = false;

  constructor(peer: QuotaClient, { domain, isNamed, sent, clock }: HubClientOptions) {
    this.name = isNamed ? peer.name : undefined;
    this.domain = domain;
    this.#peer = peer;
    this.#sent = sent;
    this.#clock = clock;
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
      const now = this.#clock.elapsed();
      for (const sent of asked) sent.inForceAt = now;
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
    for (const member of this.members.values()) member.streamEnded();
  }

  /** It has a new stream, and the shares that it had. */
  reopen(peer: QuotaClient): this {
    this.#peer = peer;
    this.closedAt = undefined;
    return this;
  }
}
