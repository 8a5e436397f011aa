import { shownText } from "../base/byte_text.ts";
import { type Entry, shownEntry } from "../ratelimit/request.ts";
import type { Bucket, LeasedQuota } from "./bucket_table.ts";
import type { BucketMember, HubClient } from "./hub_client.ts";
import type { Member, Quotable } from "./member.ts";
import type { QuotaLimit } from "./quota_limit.ts";

/** The most buckets, clients of a bucket, and clients in all that are shown. */
export const MAX_SHOWN = { buckets: 1_000, clientsOfBucket: 100, clients: 5_000 } as const;

/** The buckets to show; all when empty. */
export interface QuotaFilter {
  readonly domain?: string | undefined;
  /** One bucket, whose pairs have no order. */
  readonly pairs?: readonly Entry[] | undefined;
  /** Part of the rule, or of a pair as `key=value`, in lower or upper case. */
  readonly text?: string | undefined;
  /** The most buckets; `MAX_SHOWN.buckets` when absent. */
  readonly limit?: number | undefined;
}

/** The buckets of clients; serializable as JSON. */
export interface QuotaView {
  /** Those that match, with those that are not shown. */
  readonly buckets: number;
  /** Those with the most demand for their limit first. */
  readonly quotas: readonly ShownBucket[];
}

/** A bucket and its clients. */
export interface ShownBucket {
  readonly domain: string;
  readonly bucket: readonly Entry[];
  /** The full key of the rule; absent without one. */
  readonly rule?: string;
  /** Over all clients, and over all buckets with the same quota. */
  readonly limit: QuotaLimit;
  /** Of that limit; absent if this instance has all of it. */
  readonly part?: number;
  /** Requests per second of all clients and buckets with the same quota. */
  readonly demand: number;
  /** Requests per second that the assignments of all of them may let pass; absent if all may pass. */
  readonly inForce?: number;
  /** With those that are not shown. */
  readonly clientCount: number;
  readonly clients: readonly ShownClient[];
}

/** The part of a client in a quota. */
interface ShownClient {
  /** Absent without one. */
  readonly name?: string;
  /** False if its stream has ended. */
  readonly isConnected: boolean;
  /** Requests per second, as last reported. */
  readonly demand: number;
  /** The last one, unless it is over. */
  readonly assignment: Quotable["kind"] | "none";
  /** Requests per second; absent if all are allowed. */
  readonly share?: number;
  /** The largest share that it may still use; absent if all may pass. */
  readonly inForce?: number;
  readonly secondsSinceReport: number;
  /** The fate of its requests, and the reason. */
  readonly why: string;
}

/** Sources of a view. */
interface ViewedHub {
  readonly buckets: Iterable<Bucket>;
  readonly clients: Iterable<HubClient>;
  readonly now: () => number;
}

interface Candidate {
  readonly bucket: Bucket;
  readonly pressure: number;
}

/** Collects the buckets that a filter selects, in steps. */
export function* viewSteps(
  { buckets, clients, now }: ViewedHub,
  filter: QuotaFilter,
  view: { buckets: number; readonly quotas: ShownBucket[] },
): Generator<void> {
  const { limit = MAX_SHOWN.buckets } = filter;
  let candidates: Candidate[] = [];
  for (const bucket of buckets) {
    yield;
    if (!isSelected(bucket, filter)) continue;
    view.buckets++;
    const { quota } = bucket.leased;
    candidates.push({ bucket, pressure: pressureOf({ limit: quota.limit, demand: quota.demand }) });
    if (candidates.length >= 2 * limit) candidates = highest(candidates, limit);
  }
  let clientsLeft: number = MAX_SHOWN.clients;
  for (const { bucket } of highest(candidates, limit)) {
    yield;
    const members: [HubClient, BucketMember][] = [];
    for (const client of clients) {
      const member = client.domain === bucket.domain ? client.members.get(bucket.id) : undefined;
      if (member !== undefined) members.push([client, member]);
    }
    const most = Math.min(MAX_SHOWN.clientsOfBucket, clientsLeft);
    const shown = shownBucket(bucket, members, { now: now(), most });
    clientsLeft -= shown.clients.length;
    view.quotas.push(shown);
  }
}

/** The view of several hubs whose clients differ. A bucket that is not shown is counted in each of them. */
export function mergedViews(views: readonly QuotaView[], limit: number = MAX_SHOWN.buckets): QuotaView {
  const shown = new Map<string, ShownBucket>();
  let buckets = 0;
  for (const view of views) {
    buckets += view.buckets;
    for (const one of view.quotas) {
      const id = JSON.stringify([one.domain, one.bucket]);
      const same = shown.get(id);
      if (same !== undefined) buckets--;
      shown.set(id, same === undefined ? one : mergedBucket(same, one));
    }
  }
  const pressed = [...shown.values()].map((bucket) => ({ bucket, pressure: pressureOf(bucket) }));
  let clientsLeft: number = MAX_SHOWN.clients;
  const quotas = highest(pressed, limit).map(({ bucket }) => {
    const clients = bucket.clients.slice(0, Math.min(MAX_SHOWN.clientsOfBucket, clientsLeft));
    clientsLeft -= clients.length;
    return { ...bucket, clients };
  });
  return { buckets, quotas };
}

function isSelected({ domain, pairs, match }: Bucket, filter: QuotaFilter): boolean {
  if (filter.domain !== undefined && filter.domain !== domain) return false;
  const text = filter.text?.toLowerCase();
  if (text !== undefined) {
    const names = [match?.limit.rule?.fullKey ?? "", ...pairs.map(({ key, value }) => `${key}=${value}`)];
    if (!names.some((name) => name.toLowerCase().includes(text))) return false;
  }
  const { pairs: asked } = filter;
  if (asked === undefined) return true;
  const isInBucket = ({ key, value }: Entry) =>
    pairs.some((pair) => pair.key === key && pair.value === value);
  return asked.length === pairs.length && asked.every(isInBucket);
}

/** The demand as a part of the limit. */
function pressureOf({ limit, demand }: Pick<ShownBucket, "limit" | "demand">): number {
  if (limit.kind === "rate") return demand / limit.perSecond;
  return limit.kind === "allow" || demand === 0 ? 0 : Infinity;
}

/** Those with the highest pressure. */
function highest<T extends { readonly pressure: number }>(candidates: readonly T[], count: number): T[] {
  return candidates.toSorted((a, b) => a.pressure < b.pressure ? 1 : a.pressure > b.pressure ? -1 : 0)
    .slice(0, count);
}

function shownBucket(
  { domain, pairs, match, leased }: Bucket,
  members: readonly (readonly [HubClient, BucketMember])[],
  { now, most }: { readonly now: number; readonly most: number },
): ShownBucket {
  const { limit, allowance: { granted } } = leased.quota;
  const rule = match?.limit.rule?.fullKey;
  return {
    domain: shownText(domain),
    bucket: (match?.entries ?? pairs).map(shownEntry),
    ...(rule === undefined ? {} : { rule }),
    limit,
    ...(limit.kind === "rate" ? optionalRate("part", granted) : {}),
    // Without what is assumed of clients that have not reported long enough.
    demand: rounded(leased.quota.members.demand),
    ...optionalRate("inForce", leased.quota.members.held),
    clientCount: members.length,
    clients: members.slice(0, Math.max(0, most)).map(([client, member]) => shownClient(client, member, now)),
  };
}

function mergedBucket(one: ShownBucket, other: ShownBucket): ShownBucket {
  const { part: _part, inForce: _inForce, ...merged } = one;
  return {
    ...merged,
    ...optionalRate("part", (one.part ?? Infinity) + (other.part ?? Infinity)),
    demand: one.demand + other.demand,
    ...optionalRate("inForce", (one.inForce ?? Infinity) + (other.inForce ?? Infinity)),
    clientCount: one.clientCount + other.clientCount,
    clients: [...one.clients, ...other.clients],
  };
}

/** A field with a rate; none for an infinite one, which JSON cannot have. */
function optionalRate(name: "part" | "share" | "inForce", rate: number): RateField {
  return rate === Infinity ? {} : { [name]: rounded(rate) };
}

/** Rates are quotients of counts that are not exact. */
function rounded(rate: number): number {
  return Number(rate.toPrecision(6));
}

type RateField = { readonly part?: number; readonly share?: number; readonly inForce?: number };

function shownClient(
  { name, isOpen }: HubClient,
  member: BucketMember,
  now: number,
): ShownClient {
  const { leased } = member;
  // An assignment that is over no longer counts.
  const held = leased.quota.members.look(member, now);
  const { demand = 0, share, reported, assignment } = member;
  return {
    ...(name === undefined ? {} : { name: shownText(name) }),
    isConnected: isOpen,
    demand: rounded(demand),
    assignment: assignment?.kind ?? "none",
    ...optionalRate("share", share),
    ...optionalRate("inForce", held),
    secondsSinceReport: Math.max(0, (now - reported.at) / 1_000),
    why: whyOf(member, leased, now),
  };
}

/** The fate of the requests of a client, and the reason. */
function whyOf(
  { assignment, demand = 0, share }: Member,
  { quota, lease }: LeasedQuota,
  now: number,
): string {
  const { limit, unknownUntil } = quota;
  switch (assignment?.kind) {
    case undefined:
      if (lease.hasFailed) return "no quota in force, because the cache fails: its own configuration decides";
      if (limit.kind === "rate" && now < unknownUntil) {
        return "no quota yet: after its start, the service waits for reports of clients that may have one";
      }
      return "no quota in force: its own configuration decides";
    case "tokens":
      if (share === 0) return "requests are refused: others may still use the whole limit";
      return demand > share ? "requests above its share are refused" : "within its share";
    case "allow":
      return `all requests pass: ${limit.kind === "allow" ? freedomOf(limit) : CAUSES[limit.kind]}`;
    case "deny":
      return `all requests are refused: ${limit.kind === "allow" ? freedomOf(limit) : CAUSES[limit.kind]}`;
  }
}

const CAUSES = {
  deny: "the limit is 0",
  rate: "the cache fails, and on_cache_failure decides",
  impossible: "a limit of requests in flight cannot be a quota, and on_cache_failure decides",
} as const;

function freedomOf({ shadowPerSecond }: Extract<QuotaLimit, { readonly kind: "allow" }>): string {
  return shadowPerSecond === undefined ? "there is no limit" : "shadow mode";
}
