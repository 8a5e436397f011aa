import { type Clock } from "../base/clock.ts";
import { SlicedWork } from "../base/sliced_work.ts";
import type { CacheFailureMode } from "../ratelimit/rule_source.ts";
import { bucketProblem } from "../ratelimit/rules/match_bucket.ts";
import type { Rules } from "../ratelimit/rules/rules.ts";
import { type Bucket, BucketTable, type LeasedQuota } from "./bucket_table.ts";
import { HubClient } from "./hub_client.ts";
import { Member, MESSAGE_DELAY_MS, OVER_MS } from "./member.ts";
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
const SWEEP_MS = 60_000;
/** The most time between two divisions of a quota with many members: each member that joins, or asks for more, causes one. */
const MAX_PAUSE_MS = 1_000;
const MANY_MEMBERS = 20;

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
  /** Quotas in which a share may change without a report. */
  readonly #watched = new Set<LeasedQuota>();
  readonly #startedAt: number;
  #memberCount = 0;
  #streamCount = 0;
  #isClosed = false;
  #cancelTick: () => void;

  constructor(options: QuotaHubOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#startedAt = this.#clock.elapsed();
    const { shares, shadowMode } = options;
    const unknownUntil = this.#startedAt + SETTLING_MS;
    this.#table = new BucketTable(options.rules, { shares, shadowMode, unknownUntil });
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
      return { report: () => Promise.resolve(), end: () => {} };
    }
    this.#streamCount++;
    let opened: HubClient | undefined;
    let hasEnded = false;
    const end = () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#streamCount--;
      opened?.close(this.#clock.elapsed());
    };
    const report = async (one: QuotaReport): Promise<void> => {
      if (hasEnded || this.#isClosed) return;
      if (opened === undefined && one.domain === "") {
        end();
        client.end({ code: "INVALID_ARGUMENT", message: "a domain is required in the first message" });
        return;
      }
      opened ??= this.#client(client, one.domain);
      await new SlicedWork(this.#take(opened, one), this.#clock).ended;
    };
    return { report, end };
  }

  /** Applies rules: sends new assignments where they differ, smaller ones first. Settles when all are sent. */
  async setRules(rules: Rules): Promise<void> {
    this.#table.setRules(rules);
    await new SlicedWork(this.#applyRules(), this.#clock).ended;
  }

  /** The buckets that a filter selects, with their clients. */
  async snapshot(filter: QuotaFilter): Promise<QuotaView> {
    const view = { buckets: 0, quotas: [] };
    const hub = {
      buckets: this.#table.buckets,
      clients: this.#clients,
      now: () => this.#clock.elapsed(),
    };
    await new SlicedWork(viewSteps(hub, filter, view), this.#clock).ended;
    return view;
  }

  /** Sends nothing more and ends all streams. */
  close(): void {
    this.#isClosed = true;
    this.#cancelTick();
    for (const client of this.#clients) client.end();
  }

  /** The client of a stream; the one with its name, if that one has no stream. */
  #client(peer: QuotaClient, domain: string): HubClient {
    let isKnown = false;
    for (const client of peer.name === undefined ? [] : this.#clients) {
      if (client.name !== peer.name || client.domain !== domain) continue;
      isKnown = true;
      if (!client.isOpen) return client.reopen(peer);
    }
    const client = new HubClient(peer, {
      domain,
      isNamed: !isKnown,
      sent: (one) => this.#toFlush.add(one),
      clock: this.#clock,
    });
    this.#clients.add(client);
    return client;
  }

  *#take(client: HubClient, { usages }: QuotaReport): Generator<void> {
    const taken: [Member, Bucket][] = [];
    const changed = new Set<LeasedQuota>();
    for (const usage of usages) {
      const known = client.members.get(usage.id);
      const bucket = known === undefined
        ? this.#join(client, usage)
        : this.#table.find(client.domain, usage.id);
      const member = known ?? client.members.get(usage.id);
      if (bucket !== undefined && member !== undefined) {
        if (known !== undefined) bucket.leased.quota.showAgain(known, shownRate(usage));
        if (this.#count(member, bucket, usage)) changed.add(bucket.leased);
        taken.push([member, bucket]);
      }
      yield;
    }
    for (const leased of changed) {
      this.#rebalance(leased);
      yield;
    }
    for (const [member, bucket] of taken) {
      if (!member.isAnswered) this.#renew(client, member, bucket);
      yield;
    }
    this.#flush();
  }

  /** A bucket that the client did not have; undefined if it is not counted. */
  #join(client: HubClient, usage: BucketUsage): Bucket | undefined {
    const { maxBuckets, maxBucketsPerStream, overflow, usage: sink } = this.#options;
    const { id } = usage;
    const pairs = id.length > MAX_ID_BYTES ? undefined : usage.pairs();
    if (pairs === undefined || bucketProblem(pairs) !== undefined) {
      sink.refused("bad", client, undefined);
      return undefined;
    }
    if (client.members.size >= maxBucketsPerStream || this.#memberCount >= maxBuckets) {
      sink.refused("surplus", client, undefined);
      const isIdle = usage.elapsedSeconds > 0 && usage.allowed + usage.denied === 0;
      client.send(id, isIdle ? { kind: "abandon" } : overflow === "allow" ? ALLOW_ALL : DENY_ALL);
      return undefined;
    }
    const now = this.#clock.elapsed();
    const bucket = this.#table.join(client.domain, id, pairs);
    const member = new Member(id, client, now);
    client.members.set(id, member);
    this.#memberCount++;
    bucket.leased.quota.members.add(member);
    const unknownUntil = this.#startedAt + OVER_MS;
    if (usage.elapsedSeconds > 0 && now < unknownUntil) {
      bucket.leased.quota.showHeld(member, shownRate(usage), unknownUntil);
    }
    return bucket;
  }

  /** Counts a usage; true if shares have to change. */
  #count(member: Member, bucket: Bucket, { allowed, denied, elapsedSeconds }: BucketUsage): boolean {
    const now = this.#clock.elapsed();
    const { quota } = bucket.leased;
    quota.members.add(member);
    member.reported(allowed + denied, elapsedSeconds, now);
    if (allowed + denied > 0) {
      this.#options.usage.used(bucket, allowed, denied, quota.shadowPart(now) * allowed);
    }
    if (quota.limit.kind !== "rate") return false;
    return member.assignment?.kind !== "tokens" || member.isStarving() || quota.isWaiting;
  }

  /** Changes shares, unless that was done a moment ago for many members, or the part of this instance is not sure. */
  #rebalance(leased: LeasedQuota): void {
    const now = this.#clock.elapsed();
    const { quota, lease } = leased;
    if (quota.limit.kind !== "rate" || this.#isClosed) return;
    lease.renew(now, () => {
      this.#rebalance(leased);
      this.#flush();
    });
    leased.isDue = now < leased.nextAt;
    if (lease.isShared || leased.isDue) this.#watched.add(leased);
    if (leased.isDue || !lease.covers(now, this.#failureMode(leased) === "local")) return;
    const { size } = quota.members;
    leased.nextAt = size < MANY_MEMBERS ? now : now + Math.min(MAX_PAUSE_MS, size * size / 10);
    quota.rebalance(now);
    if (quota.isWaiting) this.#watched.add(leased);
  }

  /** Sends the assignment of a bucket again, or abandons it. */
  #renew(client: HubClient, member: Member, bucket: Bucket): void {
    const now = this.#clock.elapsed();
    const { quota: { limit }, lease } = bucket.leased;
    if (now - member.usedAt >= IDLE_MS) {
      client.send(member.id, { kind: "abandon" });
      this.#leave(client, member, bucket);
    } else if (limit.kind === "rate") {
      const mode = this.#failureMode(bucket.leased);
      const { assignment } = member;
      if (lease.covers(now, mode === "local")) {
        if (assignment !== undefined) member.send(assignment, now);
      } else if (lease.hasFailed && (mode === "allow" || mode === "deny")) {
        member.send(mode === "allow" ? ALLOW_ALL : DENY_ALL, now);
      }
    } else {
      const isImpossible = limit.kind === "impossible";
      if (isImpossible) this.#options.usage.refused("impossible", client, bucket);
      const isDenied = isImpossible ? this.#failureMode(bucket.leased) === "deny" : limit.kind === "deny";
      member.send(isDenied ? DENY_ALL : ALLOW_ALL, now);
    }
  }

  #failureMode({ onCacheFailure }: LeasedQuota): CacheFailureMode {
    return onCacheFailure ?? this.#options.onCacheFailure;
  }

  /** The client has the bucket no longer; the quota has the member until its assignment is over. */
  #leave(client: HubClient, member: Member, bucket: Bucket): void {
    member.reportedAt = -Infinity;
    client.members.delete(member.id);
    this.#memberCount--;
    this.#table.leave(bucket);
    this.#watched.add(bucket.leased);
  }

  #flush(): void {
    for (const client of this.#toFlush) client.flush();
    this.#toFlush.clear();
  }

  *#applyRules(): Generator<void> {
    const changed = new Set<LeasedQuota>();
    for (const client of this.#clients) {
      for (const member of client.members.values()) {
        yield;
        const bucket = this.#table.find(client.domain, member.id);
        if (bucket === undefined) continue;
        this.#table.refresh(bucket);
        const { leased } = bucket;
        bucket.previous?.quota.members.delete(member);
        leased.quota.members.add(member);
        if (leased.quota.limit.kind === "rate") changed.add(leased);
        else if (client.isOpen) this.#renew(client, member, bucket);
      }
    }
    for (const leased of changed) {
      leased.nextAt = 0;
      this.#rebalance(leased);
      yield;
    }
    this.#flush();
  }

  #tickLater(sweepAt = this.#clock.elapsed() + SWEEP_MS): () => void {
    return this.#clock.after(TICK_MS, () => {
      const now = this.#clock.elapsed();
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
        const bucket = this.#table.find(client.domain, member.id);
        if (bucket !== undefined && (isOver || now - member.reportedAt >= IDLE_MS)) {
          this.#leave(client, member, bucket);
        }
      }
    }
    for (const leased of [...this.#watched]) {
      yield;
      const { quota, lease } = leased;
      this.#watched.delete(leased);
      quota.forgetOver(now);
      if (quota.members.size === 0) lease.leave();
      else if (quota.isWaiting || leased.isDue || lease.isShared) this.#rebalance(leased);
    }
    for (const leased of isSweep ? this.#table.quotas : []) {
      yield;
      if (leased.quota.limit.kind !== "rate") leased.quota.forgetOver(now);
      this.#table.drop(leased);
    }
    this.#flush();
  }
}

/** The least rate of an assignment that let requests pass, which may have begun full, in seconds that were cut off. */
function shownRate({ allowed, elapsedSeconds }: BucketUsage): number {
  return Math.max(0, Math.min((allowed - 1) / (elapsedSeconds + 1), allowed / (elapsedSeconds + 2)));
}
