import type { AuditEntry, Delivery, DeliveryState, Endpoint, ExecutionStatus } from "../model/records.ts";
import type { BodyForm } from "../model/delivery_body.ts";
import type { DeliveryPause } from "./pause.ts";
import type { Work } from "./work.ts";

/**
 * The store of the webhook service. Operations are the functions of this folder, and each runs as one transaction:
 * entirely or not at all, and its result is durable. Operations may run concurrently, in one process and in several
 * that share the store. One that cannot run now (locked, full, read-only, closed) throws a `StoreError`, and nothing
 * has changed.
 */
export interface WebhookStore {
  /** Runs an operation that changes nothing; all its statements see the same state. */
  read<A extends readonly unknown[], T>(operation: Operation<A, T>, ...args: A): Promise<T>;
  /** Runs an operation that writes. */
  write<A extends readonly unknown[], T>(operation: Operation<A, T>, ...args: A): Promise<T>;
  /**
   * Claims unclaimed deliveries that are due or resent by hand, unless deliveries are paused, longest due first, at most `max` for each enabled
   * endpoint; with several processes, no more than the endpoint's concurrency over all of them. It takes from the rate of
   * the endpoint, which is that of all processes. A claim begins its
   * attempt, which is written before its request can leave. A delivery whose event has no payload fails instead.
   */
  claimDeliveries(options: ClaimOptions): Promise<readonly ClaimedDelivery[]>;
  /**
   * Continues the removal of endpoints, triggers and payloads, at most 500 rows or `max` per call; true while more
   * remains.
   */
  clearRemoved(options: RemovalOptions): Promise<boolean>;
  /** Bytes that `WEBHOOK_STORE_MAX_BYTES` bounds: without the free pages of a file; 0 where they are not reported. */
  usedBytes(): Promise<number>;
  /** The store's metrics at this time. */
  metrics(now: number): Promise<StoreMetrics>;
  /** Closes the store; later calls throw. */
  close(): Promise<void>;
}

/** A function that begins an operation; it is called again when a conflict repeats the transaction. */
export type Operation<A extends readonly unknown[], T> = (...args: A) => Work<T>;

/** A store that cannot run an operation now. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  /** `busy` may be tried again soon. */
  readonly code: "busy" | "full" | "read_only" | "replaced" | "closed" | "failed";

  constructor(code: StoreError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A change of a record by an administrator, written with its audit entry. */
export interface ChangeOptions {
  readonly now: number;
  readonly audit: AuditEntry;
}

/** For the removal of what belongs to a record. */
export interface RemovalOptions {
  readonly now: number;
  readonly newId: () => string;
  /** Most rows per call; 500 when absent. */
  readonly max?: number | undefined;
}

/** A request for claims of deliveries; each claim lasts until `leaseUntil`. */
export interface ClaimOptions {
  readonly now: number;
  readonly leaseUntil: number;
  readonly newClaimId: () => string;
  readonly requests: readonly { readonly endpointId: string; readonly max: number }[];
  /** Called for each of the endpoints whose rate limit allows no further attempt for so long. */
  readonly onRateLimited?: ((endpointId: string, waitMs: number) => void) | undefined;
}

/** A delivery to be attempted now, with everything that its request is made of. */
export interface ClaimedDelivery {
  readonly delivery: Delivery;
  readonly claimId: string;
  /** The number of the attempt that the claim has begun. */
  readonly attempt: number;
  readonly startedAt: number;
  /** True if it was resent by hand, which leaves its schedule unchanged. */
  readonly manual: boolean;
  /** As it is sent; empty where it cannot be rendered. */
  readonly body: Uint8Array;
  /** The form of the body, if it is not that of its event. */
  readonly form?: BodyForm | undefined;
  /** Why the body cannot be rendered. */
  readonly problem?: string | undefined;
  readonly endpoint: Endpoint;
}

/** A page of a list, newest first. */
export interface Page<T> {
  readonly items: readonly T[];
  /** The beginning of the next page; absent at the end. Rows that arrive meanwhile change no later page. */
  readonly nextCursor?: string | undefined;
}

/** Which rows a list has; a list ignores the filters that do not apply to it. */
export interface ListOptions {
  readonly limit: number;
  /** From a page; any other text throws a `RangeError`. */
  readonly cursor?: string | undefined;
  readonly endpointId?: string | undefined;
  readonly eventId?: string | undefined;
  readonly replayId?: string | undefined;
  /** A state of deliveries or replays, or a status of executions. */
  readonly state?: string | undefined;
  /** A kind of event, of deliveries; an action, of the audit log. */
  readonly event?: string | undefined;
  /** Created at or after. */
  readonly since?: number | undefined;
  /** Created before. */
  readonly until?: number | undefined;
}

/** Metrics of the store. */
export interface StoreMetrics {
  /** Unclaimed deliveries that are due, of enabled endpoints that are not failing and do not wait for their rate. */
  readonly dueNow: number;
  /** When the oldest of them was due; absent for none. */
  readonly oldestDueAt?: number | undefined;
  /** Size of the database with its log; 0 where the database does not report it. */
  readonly bytes: number;
  readonly deliveries: Readonly<Record<DeliveryState, number>>;
  readonly executions: Readonly<Record<ExecutionStatus, number>>;
  readonly endpoints: Readonly<Record<EndpointState, number>>;
  /** Replays that run. */
  readonly replays: number;
  /** Enabled endpoints whose rate allows no attempt now. */
  readonly rateLimited: number;
  /** Absent unless deliveries are paused. */
  readonly pause?: DeliveryPause | undefined;
}

/** The state of an endpoint: it works, fails, or was disabled, and by whom. */
export type EndpointState = "healthy" | "failing" | "disabled_by_admin" | "disabled_by_weir";
