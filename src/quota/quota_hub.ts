import { type Clock } from "../base/clock.ts";
import { SlicedWork } from "../base/sliced_work.ts";
import type { CacheFailureMode } from "../ratelimit/rule_source.ts";
import { bucketProblem } from "../ratelimit/rules/match_bucket.ts";
import type { Rules } from "../ratelimit/rules/rules.ts";
import { type Bucket, BucketTable, type LeasedQuota } from "./bucket_table.ts";
import { BucketMember, HubClient } from "./hub_client.ts";
import { MESSAGE_DELAY_MS, OVER_MS, withBurst } from "./member.ts";
import { ALLOW_ALL, DENY_ALL } from "./quota.ts";
import { type QuotaFilter, type QuotaView, viewSteps } from "./quota_view.ts";
import type { BucketUsage, QuotaClient, QuotaReport, QuotaStream, QuotaStreams } from "./quota_stream.ts";
import type { QuotaShares } from "./quota_shares.ts";

const TICK_MS = 500;
/** A bucket without requests for this time is abandoned. */
const IDLE_MS = 600_000;
/** Envoy reports every five seconds: until then, some of its buckets may be unknown. */
const SETTLING_MS = 5_000 + MESSAGE_DELAY_MS;
const MAX_ID_BYTES = 1_024;
const MAX_DOMAIN_CHARS = 1_024;
/** Exchanges of parts that run at the same time; the others wait for the next tick. */
const MAX_EXCHANGES = 1_000;
const SWEEP_MS = 60_000;
/** In a quota of fewer members, each one that joins, or asks for more, causes a division. */
const MANY_MEMBERS = 20;
/** The time between two divisions of 100 members or more: at least this, and one millisecond for so many of them. */
const PAUSE_MS = 1_000;
const MEMBERS_PER_PAUSE_MS = 200;

/** Options of a hub. */
export interface QuotaHubOptions {
  readonly clock: Clock;
  readonly rules: Rules;
  readonly shares: QuotaShares;
  readonly maxStreams: number;
  readonly maxBucketsPerStream: number;
  /** Of all streams. */
  readonly maxBuckets: number;
  /** For buckets above the maximum. */
  readonly overflow: "allow" | "deny";
  /** True if all rules are in shadow mode. */
  readonly shadowMode: boolean;
  /** Of rules that do not set it. */
  readonly onCacheFailure: CacheFailureMode;
  readonly usage: QuotaUsageSink;
}

/** Receives what clients report. Methods neither wait nor throw. */
export interface QuotaUsageSink {
  /** Requests of a bucket; `shadow` of the allowed ones would have been refused, were its rule not in shadow mode. */
  used(bucket: Bucket, allowed: number, denied: number, shadow: number): void;
  /** A bucket that is skipped, has the assignment for surplus ones, or whose rule cannot be a quota. */
  refused(reason: "bad" | "surplus" | "impossible", client: HubClient, bucket: Bucket | undefined): void;
}

/** Assigns quotas to the clients of all streams. */
export class QuotaHub implements QuotaStreams {
  readonly #options: QuotaHubOptions;
  readonly #clock: Clock;
  readonly #table: BucketTable;
  readonly #clients = new Set<HubClient>();
  readonly #toFlush = new Set<HubClient>();
  /** Had their name together with another one: it is not known which of them comes back. */
  readonly #ambiguous = new WeakSet<HubClient>();
  /** Milliseconds since the start; whole ones, which take less memory. */
  readonly #now: () => number;
  /** The first of the quotas in which a share may change without a report. */
  #watched: LeasedQuota | undefined;
  #memberCount = 0;
  #streamCount = 0;
  #exchanges = 0;
  #isClosed = false;
  #cancelTick: () => void;

  constructor(options: QuotaHubOptions) {
    this.#options = options;
    this.#clock = options.clock;
    const startedAt = this.#clock.elapsed();
    this.#now = () => Math.floor(this.#clock.elapsed() - startedAt);
    const { shares, shadowMode } = options;
    this.#table = new BucketTable(options.rules, { shares, shadowMode, unknownUntil: SETTLING_MS });
    this.#cancelTick = this.#tickLater();
  }

  /** Buckets of all streams, and the streams. */
  get counts(): { readonly buckets: number; readonly streams: number } {
    return { buckets: this.#memberCount, streams: this.#streamCount };
  }

  open(client: QuotaClient): QuotaStream {
    const refusal = this.#isClosed
      ? { code: "UNAVAILABLE", message: "shutting down" } as const
      : this.#streamCount >= this.#options.maxStreams
      ? { code: "RESOURCE_EXHAUSTED", message: "too many streams of quotas" } as const
      : undefined;
    if (refusal !== undefined) {
      client.end(refusal);
      return { now: this.#now, report: () => Promise.resolve(), end: () => {} };
    }
    this.#streamCount++;
    let opened: HubClient | undefined;
    let hasEnded = false;
    const end = () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#streamCount--;
      opened?.close(this.#now());
    };
    const report = async (one: QuotaReport): Promise<void> => {
      if (hasEnded || this.#isClosed) return;
      const problem = opened === undefined ? domainProblem(one.domain) : undefined;
      if (problem !== undefined) {
        end();
        client.end({ code: "INVALID_ARGUMENT", message: problem });
        return;
      }
      opened ??= this.#client(client, one.domain);
      await new SlicedWork(this.#take(opened, one, () => hasEnded), this.#clock).ended;
    };
    return { now: this.#now, report, end };
  }

  /** Applies rules: sends new assignments where they differ, smaller ones first. Settles when all are sent. */
  async setRules(rules: Rules): Promise<void> {
    this.#table.setRules(rules);
    await new SlicedWork(this.#applyRules(), this.#clock).ended;
  }

  /** The buckets that a filter selects, with their clients. */
  async snapshot(filter: QuotaFilter): Promise<QuotaView> {
    const view = { buckets: 0, quotas: [] };
    const hub = { buckets: this.#table.buckets, clients: this.#clients, now: this.#now };
    await new SlicedWork(viewSteps(hub, filter, view), this.#clock).ended;
    return view;
  }

  /** Sends nothing more and ends all streams. */
  close(): void {
    this.#isClosed = true;
    this.#cancelTick();
    for (const client of this.#clients) client.end();
  }

  /** The client of a stream; the one with its name, if that one has no stream, and never shared the name. */
  #client(peer: QuotaClient, domain: string): HubClient {
    const named = peer.name === undefined
      ? []
      : [...this.#clients].filter((one) => one.name === peer.name && one.domain === domain);
    const open = named.filter(({ isOpen }) => isOpen);
    const closed = named.find((one) => !one.isOpen && !this.#ambiguous.has(one));
    if (open.length === 0 && closed !== undefined) return closed.reopen(peer, this.#now());
    const client = new HubClient(peer, { domain, now: this.#now, sent: (one) => this.#toFlush.add(one) });
    if (open.length > 0) { for (const one of [client, ...open]) this.#ambiguous.add(one); }
    this.#clients.add(client);
    return client;
  }

  /** Takes a report, as far as its stream has not ended: another one may have begun with the name of its client. */
  *#take(client: HubClient, report: QuotaReport, hasEnded: () => boolean): Generator<void> {
    const taken: BucketMember[] = [];
    const changed = new Set<LeasedQuota>();
    for (const usage of report.usages) {
      if (hasEnded()) return;
      const known = client.members.get(usage.id);
      if (known?.reported.showing === 1) known.show(shownRate(usage));
      const member = known ?? this.#join(client, usage);
      if (member !== undefined) {
        // Another client has brought its bucket into another quota since.
        if (member.leased !== member.bucket.leased) this.#watch(member.move());
        if (this.#count(member, usage, report.arrivedAt)) changed.add(member.leased);
        taken.push(member);
      }
      yield;
    }
    for (const leased of changed) {
      yield* this.#divide(leased);
      yield;
    }
    for (const member of taken) {
      if (hasEnded()) return;
      if (!member.isAnswered) this.#renew(client, member);
      yield;
    }
    this.#flush();
  }

  /** A bucket that the client did not have; undefined if it is not counted. */
  #join(client: HubClient, usage: BucketUsage): BucketMember | undefined {
    const { maxBuckets, maxBucketsPerStream, overflow, usage: sink } = this.#options;
    const { id } = usage;
    const pairs = usage.pairs();
    const isValid = pairs !== undefined && bucketProblem(pairs) === undefined;
    if (!isValid || id.length > MAX_ID_BYTES) {
      sink.refused("bad", client, undefined);
      // Otherwise the client reports a long one for ever, and its reports become too large.
      if (isValid) client.send(id, { kind: "abandon" });
      return undefined;
    }
    if (client.members.size >= maxBucketsPerStream || this.#memberCount >= maxBuckets) {
      sink.refused("surplus", client, undefined);
      const isIdle = usage.elapsedSeconds > 0 && usage.allowed + usage.denied === 0;
      client.send(id, isIdle ? { kind: "abandon" } : overflow === "allow" ? ALLOW_ALL : DENY_ALL);
      return undefined;
    }
    const now = this.#now();
    const member = new BucketMember(this.#table.join(client.domain, id, pairs), client, now);
    client.members.set(member.id, member);
    this.#memberCount++;
    if (usage.elapsedSeconds > 0) {
      if (now < OVER_MS) member.leased.quota.showHeld(member, shownRate(usage), OVER_MS);
      else member.show(shownRate(usage));
    }
    return member;
  }

  /** Counts a usage; true if shares have to change. */
  #count(
    member: BucketMember,
    { allowed, denied, elapsedSeconds }: BucketUsage,
    arrivedAt: number | undefined,
  ): boolean {
    const { quota } = member.leased;
    const hits = allowed + denied;
    quota.members.report(member, { hits, elapsedSeconds }, this.#now(), arrivedAt);
    if (hits > 0) {
      this.#options.usage.used(member.bucket, allowed, denied, quota.shadowPart * allowed);
    }
    return quota.needsChange(member);
  }

  /** Changes shares, unless that was done a moment ago for many members, or the part of this instance is not sure. */
  *#divide(leased: LeasedQuota): Generator<void> {
    const now = this.#now();
    const { quota, lease } = leased;
    if (this.#isClosed) return;
    const isShared = quota.members.size > 0 && this.#renewLease(leased, now);
    leased.isDue = now < leased.nextAt;
    if (isShared || leased.isDue) this.#watch(leased);
    if (leased.isDue) return;
    leased.nextAt = Infinity;
    const isAlone = this.#failureMode(leased) === "local";
    const { size } = quota.members;
    try {
      yield* quota.divide(this.#now, () => lease.covers(this.#now(), isAlone));
    } finally {
      leased.nextAt = size < MANY_MEMBERS
        ? now
        : this.#now() + Math.min(size * size / 10, Math.max(PAUSE_MS, size / MEMBERS_PER_PAUSE_MS));
    }
    if (quota.isWaiting) this.#watch(leased);
    if (quota.members.size > 0) return;
    lease.leave();
    if (lease.isBusy) this.#watch(leased);
    else this.#table.drop(leased);
  }

  /** Exchanges the part of this instance, if it is time; true if other instances may have parts. */
  #renewLease(leased: LeasedQuota, now: number): boolean {
    const { lease } = leased;
    if (!lease.isBusy && this.#exchanges < MAX_EXCHANGES) {
      lease.renew(now, () => {
        this.#exchanges--;
        void new SlicedWork(this.#divideAndFlush(leased), this.#clock);
      });
      if (lease.isBusy) this.#exchanges++;
    }
    return leased.quota.limit.kind === "rate" && leased.lease.isShared;
  }

  *#divideAndFlush(leased: LeasedQuota): Generator<void> {
    yield* this.#divide(leased);
    this.#flush();
  }

  /** Looks at a quota again when the clock ticks. */
  #watch(leased: LeasedQuota): void {
    if (leased.isWatched) return;
    leased.isWatched = true;
    leased.nextWatched = this.#watched;
    this.#watched = leased;
  }

  *#divideWatched(): Generator<void> {
    let leased = this.#watched;
    this.#watched = undefined;
    while (leased !== undefined) {
      const next: LeasedQuota | undefined = leased.nextWatched;
      leased.isWatched = false;
      leased.nextWatched = undefined;
      yield* this.#divide(leased);
      leased = next;
      yield;
    }
    this.#flush();
  }

  /** Sends the assignment of a bucket again, or abandons it. */
  #renew(client: HubClient, member: BucketMember): void {
    const now = this.#now();
    const { leased, bucket } = member;
    const { quota: { limit, members }, lease } = leased;
    if (now - member.reported.usedAt >= IDLE_MS) {
      client.send(member.id, { kind: "abandon" });
      this.#leave(client, member);
    } else if (limit.kind === "rate") {
      const mode = this.#failureMode(leased);
      if (lease.covers(now, mode === "local")) {
        if (leased.isDue && member.isStarving()) leased.quota.raise(member, now);
        const { assignment } = member;
        if (assignment !== undefined && !member.isAnswered) {
          members.send(member, withBurst(assignment, limit.burst), now);
        }
      } else if (lease.hasFailed && (mode === "allow" || mode === "deny")) {
        members.send(member, mode === "allow" ? ALLOW_ALL : DENY_ALL, now);
      }
    } else {
      const isImpossible = limit.kind === "impossible";
      if (isImpossible) this.#options.usage.refused("impossible", client, bucket);
      const isDenied = isImpossible ? this.#failureMode(leased) === "deny" : limit.kind === "deny";
      members.send(member, isDenied ? DENY_ALL : ALLOW_ALL, now);
    }
  }

  #failureMode({ onCacheFailure }: LeasedQuota): CacheFailureMode {
    return onCacheFailure ?? this.#options.onCacheFailure;
  }

  /** The client has the bucket no longer; the quota has the member until its assignment is over. */
  #leave(client: HubClient, member: BucketMember): void {
    if (member.hasLeft) return;
    member.leave();
    client.members.delete(member.id);
    this.#memberCount--;
    this.#table.leave(member.bucket);
    this.#watch(member.leased);
  }

  #flush(): void {
    for (const client of this.#toFlush) if (client.flush()) this.#toFlush.delete(client);
  }

  *#applyRules(): Generator<void> {
    for (const client of this.#clients) {
      for (const member of client.members.values()) {
        yield;
        this.#table.refresh(member.bucket);
        const { leased } = member.bucket;
        this.#watch(member.move());
        if (leased.quota.limit.kind !== "rate") {
          if (client.isOpen) this.#renew(client, member);
        } else {
          if (leased.nextAt !== Infinity) leased.nextAt = 0;
          this.#watch(leased);
        }
      }
    }
    yield* this.#divideWatched();
  }

  #tickLater(sweepAt = SWEEP_MS): () => void {
    return this.#clock.after(TICK_MS, () => {
      const now = this.#now();
      const work = new SlicedWork(this.#tick(now, now >= sweepAt), this.#clock);
      const next = now >= sweepAt ? now + SWEEP_MS : sweepAt;
      void work.ended.then(() => {
        if (!this.#isClosed) this.#cancelTick = this.#tickLater(next);
      });
    });
  }

  *#tick(now: number, isSweep: boolean): Generator<void> {
    for (const client of this.#clients) {
      const isOver = client.closedAt !== undefined && client.closedAt + OVER_MS <= now;
      if (isOver) this.#clients.delete(client);
      if (!isOver && !isSweep) continue;
      for (const member of client.members.values()) {
        yield;
        if (isOver || now - member.reported.at >= IDLE_MS) this.#leave(client, member);
      }
    }
    if (now >= SETTLING_MS) yield* this.#divideWatched();
    this.#flush();
  }
}

function domainProblem(domain: string): string | undefined {
  if (domain === "") return "a domain is required in the first message";
  return domain.length > MAX_DOMAIN_CHARS ? "the domain is too long" : undefined;
}

/** The least rate of an assignment that let requests pass, which may have begun full, in seconds that were cut off. */
function shownRate({ allowed, elapsedSeconds }: BucketUsage): number {
  return Math.max(0, Math.min((allowed - 1) / (elapsedSeconds + 1), allowed / (elapsedSeconds + 2)));
}
