import { shownText } from "../base/byte_text.ts";
import { type Entry, shownEntry } from "../ratelimit/request.ts";
import type { Bucket } from "./bucket_table.ts";
import type { HubClient } from "./hub_client.ts";
import type { Member, Quotable } from "./member.ts";
import type { QuotaLimit } from "./quota_limit.ts";

/** The most buckets, clients of a bucket, and clients in all that are shown. */
export const MAX_SHOWN = { buckets: 1_000, clientsOfBucket: 100, clients: 5_000 } as const;

/** The buckets to show. */
export interface QuotaFilter {
  /** Undefined for all. */
  readonly domain: string | undefined;
  /** One bucket, whose pairs have no order; undefined for all. */
  readonly pairs: readonly Entry[] | undefined;
}

/** The buckets of clients; serializable as JSON. */
export interface QuotaView {
  /** Those that match, with those that are not shown. */
  readonly buckets: number;
  readonly quotas: readonly ShownBucket[];
}

/** A bucket and its clients. */
interface ShownBucket {
  readonly domain: string;
  readonly bucket: readonly Entry[];
  /** The full key of the rule; absent without one. */
  readonly rule?: string;
  /** Over all clients, and over all buckets with the same quota. */
  readonly limit: QuotaLimit;
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
  readonly secondsSinceReport: number;
}

/** True if a filter selects the bucket. */
export function isSelected({ domain, pairs }: Bucket, filter: QuotaFilter): boolean {
  if (filter.domain !== undefined && filter.domain !== domain) return false;
  const { pairs: asked } = filter;
  if (asked === undefined) return true;
  const isInBucket = ({ key, value }: Entry) =>
    pairs.some((pair) => pair.key === key && pair.value === value);
  return asked.length === pairs.length && asked.every(isInBucket);
}

/** A bucket with its clients, at most so many. */
export function shownBucket(
  { domain, pairs, match, leased }: Bucket,
  clients: readonly (readonly [HubClient, Member])[],
  { now, most }: { readonly now: number; readonly most: number },
): ShownBucket {
  const shown = {
    domain: shownText(domain),
    bucket: (match?.entries ?? pairs).map(shownEntry),
    limit: leased.quota.limit,
    clientCount: clients.length,
    clients: clients.slice(0, Math.max(0, most)).map(([client, member]) => shownClient(client, member, now)),
  };
  const rule = match?.limit.rule?.fullKey;
  return rule === undefined ? shown : { ...shown, rule };
}

function shownClient({ name, isOpen }: HubClient, member: Member, now: number): ShownClient {
  // An assignment that is over no longer counts.
  member.held(now);
  const { demand = 0, share, reportedAt, assignment } = member;
  return {
    ...(name === undefined ? {} : { name: shownText(name) }),
    isConnected: isOpen,
    demand,
    assignment: assignment?.kind ?? "none",
    ...(share === Infinity ? {} : { share }),
    secondsSinceReport: Math.max(0, (now - reportedAt) / 1_000),
  };
}
