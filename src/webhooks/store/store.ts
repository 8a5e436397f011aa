import type { AttemptOutcome, DeliveryChange } from "../model/delivery.ts";
import type {
  Attempt,
  AuditEntry,
  Delivery,
  DeliveryState,
  Endpoint,
  EndpointEdit,
  EventKey,
  Execution,
  ExecutionStatus,
  ExecutionStep,
  IdempotencyRow,
  ListedExecution,
  NewEvent,
  Trigger,
  TriggerEdit,
  WebhookEvent,
} from "../model/records.ts";
import type { ExecutionStore } from "./execution_store.ts";

export type { NewEvent } from "../model/records.ts";
export { type ClaimedExecution, type ExecutionStore, SUSPECT_VOIDS } from "./execution_store.ts";
export { type ExecutionChange } from "../model/completion_event.ts";

/**
 * Keeps everything of the webhook service. Every operation is one transaction: it happens whole or not at all, and
 * what it answers is durable. Operations may run at the same time, in one process and in several that share the
 * store; each then sees the others before or after itself. What cannot be done at the moment (locked, full,
 * read-only, closed) throws a `StoreError`, and nothing has changed.
 */
export interface WebhookStore extends AcceptStore, DeliveryStore, ExecutionStore, AdministrationStore {
  /** Lets go of everything; later calls throw. */
  close(): Promise<void>;
}

/** A store that cannot do something at the moment. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  /** Whether it may be tried again soon. */
  readonly code: "busy" | "full" | "read_only" | "replaced" | "closed" | "failed";

  constructor(code: StoreError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The key under which a request is accepted once. */
export interface NewIdempotency {
  readonly scope: string;
  readonly key: string;
  readonly bodyHash: string;
}

/** What became of a request that was to be accepted. */
export type Acceptance<T> =
  | { readonly kind: "new"; readonly value: T }
  /** The key is younger than 24 hours: nothing was changed. */
  | { readonly kind: "replayed"; readonly row: IdempotencyRow };

/** An execution that is to begin; it is due at once. */
export interface NewExecution {
  readonly id: string;
  readonly workflow: string;
  readonly versionId: string;
  /** The text of that version, which is kept unless it is there; absent where it was kept before. */
  readonly text?: string | undefined;
  readonly triggerId: string;
  readonly input: string;
}

/** Taking in what others bring. */
export interface AcceptStore {
  /** The trigger that a key belongs to, and the key; nothing for a hash that is unknown or revoked. */
  findTriggerKey(hash: string): Promise<{ readonly trigger: Trigger; readonly keyId: string } | undefined>;
  findEventKey(hash: string): Promise<EventKey | undefined>;
  /** The row of a key that was accepted less than 24 hours before `now`. */
  findIdempotency(scope: string, key: string, now: number): Promise<IdempotencyRow | undefined>;
  /** Creates the execution unless the key was accepted less than 24 hours before; the version has to be saved. */
  acceptExecution(
    execution: NewExecution,
    options: { readonly now: number; readonly idempotency?: NewIdempotency | undefined },
  ): Promise<Acceptance<Execution>>;
  /**
   * Creates the event and its deliveries unless the key was accepted less than 24 hours before; answers the endpoints
   * that it goes to.
   */
  acceptEvent(
    event: NewEvent,
    options: { readonly now: number; readonly idempotency?: NewIdempotency | undefined },
  ): Promise<Acceptance<{ readonly endpointIds: readonly string[] }>>;
}

/** A delivery to be attempted now, with everything that the request is made of. */
export interface ClaimedDelivery {
  readonly delivery: Delivery;
  readonly claimId: string;
  /** The number of the attempt that comes. */
  readonly attempt: number;
  /** Whether it is claimed because someone asked for it by hand, and its own schedule stands still. */
  readonly manual: boolean;
  /** The body of the event. */
  readonly body: Uint8Array;
  readonly endpoint: Endpoint;
}

/** An endpoint for which something is due. */
export type DueEndpoint = Pick<Endpoint, "id" | "concurrency" | "timeoutMs">;

/** Getting events to their endpoints. */
export interface DeliveryStore {
  /** The enabled endpoints for which something is due that nobody has, in a stable order; idle ones cost nothing. */
  dueEndpoints(now: number): Promise<readonly DueEndpoint[]>;
  /**
   * Claims deliveries that are due, or asked for by hand, and that nobody else has, those due longest first, at
   * most `max` for each endpoint that is named and enabled; where several work on the store, no more than the
   * endpoint's concurrency over all of them. Each claim lasts until `leaseUntil`. One whose event has lost its payload
   * fails instead.
   */
  claimDeliveries(options: {
    readonly now: number;
    readonly leaseUntil: number;
    readonly newClaimId: () => string;
    readonly wants: readonly { readonly endpointId: string; readonly max: number }[];
  }): Promise<readonly ClaimedDelivery[]>;
  /** Prolongs claims; answers those that are still held. */
  renewClaims(claimIds: readonly string[], leaseUntil: number): Promise<readonly string[]>;
  /** Writes the row of an attempt that is about to be made; false when the claim is no longer held. */
  beginAttempt(options: {
    readonly deliveryId: string;
    readonly claimId: string;
    readonly attempt: Pick<Attempt, "number" | "startedAt" | "url" | "manual">;
  }): Promise<boolean>;
  /**
   * Closes the row of an attempt, changes the delivery, writes the audit entries and gives up the claim; false, and
   * nothing is changed, when the claim is no longer held. Without `change` the schedule stays as it is, with
   * `resendAt` taken off.
   */
  finishAttempt(options: {
    readonly deliveryId: string;
    readonly claimId: string;
    readonly number: number;
    readonly outcome: AttemptOutcome;
    readonly change?: DeliveryChange | undefined;
    readonly audit?: readonly AuditEntry[] | undefined;
  }): Promise<boolean>;
  /**
   * Takes back claims: all of them, or those whose lease ended before `now`. Their open attempts are closed as
   * `interrupted`, and the deliveries are due at once, with no slot used. Answers how many there were. The same is done
   * to claims of executions, which go on at their first step that is not committed.
   */
  voidClaims(options: { readonly now: number; readonly which: "all" | "expired" }): Promise<number>;
  /**
   * After the clock was set back: what was due by then, and nobody has, is due now, and what has failed since goes on
   * with its schedule from now, as if it had failed now. Answers how many there were, at most 500: ask again until
   * there are none.
   */
  clockSetBack(now: number): Promise<number>;
  /** Takes back claims of one's own, as `voidClaims` does. */
  releaseClaims(claimIds: readonly string[], now: number): Promise<void>;
  /**
   * Fails deliveries of disabled endpoints whose first failure is 24 hours back, audited; answers how many. There may
   * be more than are failed at once: ask again until there are none.
   */
  failPaused(options: { readonly now: number; readonly newId: () => string }): Promise<number>;
}

/** A page of a list, newest first. */
export interface Page<T> {
  readonly items: readonly T[];
  /** Where the next page begins; absent at the end. Rows that arrive meanwhile change no later page. */
  readonly nextCursor?: string | undefined;
}

/** What a list holds. Filters that a list does not know are absent. */
export interface ListOptions {
  readonly limit: number;
  /** From a page; throws a `RangeError` when it is none. */
  readonly cursor?: string | undefined;
  readonly endpointId?: string | undefined;
  /** A state of deliveries, or a status of executions. */
  readonly state?: string | undefined;
  /** A kind of event, of deliveries; an action, of the audit log. */
  readonly event?: string | undefined;
  /** Created at or after. */
  readonly since?: number | undefined;
  /** Created before. */
  readonly until?: number | undefined;
}

/** What is asked of the store now and then. */
export interface StoreFigures {
  /** Deliveries of enabled endpoints that are due and that nobody has. */
  readonly dueNow: number;
  /** When the oldest of them was due; absent for none. */
  readonly oldestDueAt?: number | undefined;
  /** Of the database and its files beside; 0 where the database does not tell. */
  readonly bytes: number;
  readonly deliveries: Readonly<Record<DeliveryState, number>>;
  readonly executions: Readonly<Record<ExecutionStatus, number>>;
}

/** Everything about records. Each change takes the audit entry that is written with it. */
export interface AdministrationStore {
  createEndpoint(endpoint: Endpoint, audit: AuditEntry): Promise<void>;
  findEndpoint(id: string): Promise<Endpoint | undefined>;
  listEndpoints(options: ListOptions): Promise<Page<Endpoint>>;
  /** The endpoint after the change; nothing when there is none. */
  editEndpoint(
    id: string,
    edit: EndpointEdit,
    options: { now: number; audit: AuditEntry },
  ): Promise<Endpoint | undefined>;
  /** Adds a secret; those that no longer sign go when 24 hours old, or too many. Nothing when there is no endpoint. */
  addEndpointSecret(
    id: string,
    secret: Endpoint["secrets"][number],
    audit: AuditEntry,
  ): Promise<Endpoint | "too_many" | undefined>;
  /**
   * Removes it: nothing is claimed for it any more, and attempts under way lose their claims. Its open deliveries fail
   * with `endpoint_deleted`, each audited; where they are many, `clearRemoved` goes on with that. False when there is
   * none.
   */
  deleteEndpoint(
    id: string,
    options: { now: number; audit: AuditEntry; newId: () => string },
  ): Promise<boolean>;
  /** False when the name is taken. */
  createTrigger(trigger: Trigger, audit: AuditEntry): Promise<boolean>;
  findTrigger(id: string): Promise<Trigger | undefined>;
  findTriggerByName(name: string): Promise<Trigger | undefined>;
  listTriggers(options: ListOptions): Promise<Page<Trigger>>;
  editTrigger(
    id: string,
    edit: TriggerEdit,
    options: { now: number; audit: AuditEntry },
  ): Promise<Trigger | undefined>;
  /** Adds a key; of three the oldest goes. Nothing when there is no such trigger. */
  addTriggerKey(id: string, key: Trigger["keys"][number], audit: AuditEntry): Promise<Trigger | undefined>;
  /** Revokes a key at once; false when there is none. */
  deleteTriggerKey(id: string, keyId: string, audit: AuditEntry): Promise<boolean>;
  /**
   * Removes it with its keys and idempotency keys, of which `clearRemoved` removes those that are too many to go at
   * once; its executions stay. False when there is none.
   */
  deleteTrigger(id: string, audit: AuditEntry): Promise<boolean>;
  createEventKey(key: EventKey, audit: AuditEntry): Promise<void>;
  listEventKeys(options: ListOptions): Promise<Page<EventKey>>;
  deleteEventKey(id: string, audit: AuditEntry): Promise<boolean>;
  findEvent(id: string): Promise<WebhookEvent | undefined>;
  /** Without their payloads: the body of one that was not erased is empty. */
  listEvents(options: ListOptions): Promise<Page<WebhookEvent>>;
  /**
   * Erases the payload of an event; its open deliveries fail with `payload_erased`, each audited; where they are many,
   * `clearRemoved` goes on with that. False when there is no such event; erasing twice is fine.
   */
  erasePayload(
    id: string,
    options: { now: number; audit: AuditEntry; newId: () => string },
  ): Promise<boolean>;
  listDeliveries(options: ListOptions): Promise<Page<Delivery>>;
  /** With its attempts, oldest first; without what was answered to them when `responses` is false. */
  findDelivery(
    id: string,
    options?: { readonly responses?: boolean | undefined },
  ): Promise<{ readonly delivery: Delivery; readonly attempts: readonly Attempt[] } | undefined>;
  /** Asks for one attempt now. `erased` where the payload is gone; nothing when there is no such delivery or endpoint. */
  resendDelivery(
    id: string,
    options: { now: number; audit: AuditEntry },
  ): Promise<"asked" | "erased" | undefined>;
  /**
   * Makes failed deliveries of an endpoint, created from `since` to before `until`, open again with a new schedule;
   * at most `max` at once, the oldest first. With `dryRun` only counts them. Nothing when there is no such endpoint.
   */
  recoverDeliveries(options: {
    readonly endpointId: string;
    readonly since: number;
    readonly until: number;
    readonly dryRun: boolean;
    readonly max: number;
    readonly now: number;
    readonly audit: AuditEntry;
  }): Promise<number | undefined>;
  listExecutions(options: ListOptions): Promise<Page<ListedExecution>>;
  findExecution(
    id: string,
  ): Promise<{ readonly execution: Execution; readonly steps: readonly ExecutionStep[] } | undefined>;
  listAudit(options: ListOptions): Promise<Page<AuditEntry>>;
  addAudit(entry: AuditEntry): Promise<void>;
  figures(now: number): Promise<StoreFigures>;
  /**
   * Removes finished work that ended before `before`, and texts of workflows with the last execution, in portions of at most `max` rows; answers how many went. Open
   * work and idempotency keys younger than 24 hours stay.
   */
  removeFinished(
    options: { readonly before: number; readonly now: number; readonly max: number },
  ): Promise<number>;
  /**
   * Goes on with what the removal of endpoints, triggers and payloads has left to do, at most 500 rows or `max` at
   * once; true while there is more.
   */
  clearRemoved(
    options: { readonly now: number; readonly newId: () => string; readonly max?: number | undefined },
  ): Promise<boolean>;
}
