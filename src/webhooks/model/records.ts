/**
 * What the store keeps. Times are whole milliseconds of wall clock since the Unix epoch. Identifiers are
 * UUID v4. Texts that hold JSON are stored as they came, so that numbers keep every digit.
 */

/** A text or bytes under a key of `WEBHOOK_ENCRYPTION_KEY`. */
export interface Sealed {
  /** Which key opens it. */
  readonly keyId: string;
  /** Nonce and ciphertext. */
  readonly bytes: Uint8Array;
}

/** A signing secret of an endpoint. The newest one that is active signs. */
export interface EndpointSecret {
  readonly id: string;
  readonly sealed: Sealed;
  readonly createdAt: number;
  readonly activeAt: number;
}

/** How many signing secrets an endpoint may have. */
export const MAX_ENDPOINT_SECRETS = 8;

/** Where events are delivered. */
export interface Endpoint {
  readonly id: string;
  readonly url: string;
  /** Kinds, prefixes such as `workflow.*`, or `*`. */
  readonly events: readonly string[];
  readonly description: string;
  readonly enabled: boolean;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Names of the static headers, in their order. */
  readonly headerNames: readonly string[];
  /** Their values, a JSON object by name; absent for none. */
  readonly headers?: Sealed | undefined;
  /** How many attempts may run at once. */
  readonly concurrency: number;
  /** Of one attempt; `WEBHOOK_TIMEOUT` when absent. */
  readonly timeoutMs?: number | undefined;
  /** Whether the headers of Standard Webhooks are sent beside ours. */
  readonly standardWebhooks: boolean;
  /** Newest first. */
  readonly secrets: readonly EndpointSecret[];
}

/** A key that is known by its hash alone. */
export interface StoredKey {
  readonly id: string;
  /** SHA-256 of the key, in lower-case hex. */
  readonly hash: string;
  readonly lastFour: string;
  readonly createdAt: number;
}

/** What an accepted trigger asks of the decision service: texts may hold templates of `input`. */
export interface TriggerLimit {
  readonly domain: string;
  /** Each descriptor as keys and values, in their order. */
  readonly descriptors: readonly Readonly<Record<string, string>>[];
}

/** What starts a workflow. */
export interface Trigger {
  readonly id: string;
  readonly name: string;
  readonly workflow: string;
  readonly enabled: boolean;
  readonly requireIdempotencyKey: boolean;
  readonly onBodyMismatch: "replay" | "reject";
  readonly limit?: TriggerLimit | undefined;
  readonly onLimitError: "deny" | "allow";
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Those that are not revoked, newest first; at most two. */
  readonly keys: readonly StoredKey[];
}

/** Who may post events beside the administration. */
export interface EventKey extends StoredKey {
  readonly name: string;
  /** Kinds, prefixes, or `*`. */
  readonly kinds: readonly string[];
}

/** Something that happened. */
export interface WebhookEvent {
  readonly id: string;
  readonly kind: string;
  /** The body of every delivery: `{"event":…,"data":…}`; absent once its payload was erased. */
  readonly body?: Uint8Array | undefined;
  readonly createdAt: number;
}

/** Where a delivery stands. */
export type DeliveryState = "attempting" | "retrying" | "acknowledged" | "failed";

/** Why a delivery failed for good. */
export type FailureReason = "exhausted" | "endpoint_disabled" | "endpoint_deleted" | "payload_erased";

/** An event that is to be delivered to every endpoint that names its kind, disabled ones included. */
export interface NewEvent {
  readonly id: string;
  readonly kind: string;
  readonly body: Uint8Array;
}

/** One event on its way to one endpoint. */
export interface Delivery {
  /** The `X-Svc-Delivery` UUID. */
  readonly id: string;
  readonly endpointId: string;
  readonly eventId: string;
  /** The kind of the event. */
  readonly event: string;
  readonly state: DeliveryState;
  readonly createdAt: number;
  readonly firstFailureAt?: number | undefined;
  /** How many slots of the schedule have been used, the first attempt not counted. */
  readonly slot: number;
  /** When the next attempt is due; absent in final states. */
  readonly dueAt?: number | undefined;
  /** When someone asked for an attempt by hand that was not made yet. */
  readonly resendAt?: number | undefined;
  readonly finishedAt?: number | undefined;
  readonly reason?: FailureReason | undefined;
  /** Who works on it; absent for nobody. */
  readonly claimId?: string | undefined;
  readonly leaseUntil?: number | undefined;
}

/** How an attempt ended. */
export type AttemptResult = "acknowledged" | "failed" | "interrupted";

/** What kind of error an attempt ended with. */
export type AttemptErrorKind =
  | "status"
  | "redirect"
  | "timeout"
  | "dns"
  | "connect"
  | "tls"
  | "reset"
  | "protocol"
  | "blocked_address"
  /** The request could not be made, for example because its secret cannot be opened. */
  | "unsendable"
  | "interrupted";

/** One request that was sent, or tried to be. */
export interface Attempt {
  /** From 1. */
  readonly number: number;
  readonly startedAt: number;
  readonly finishedAt?: number | undefined;
  /** The URL at that time. */
  readonly url: string;
  /** Whether it was asked for by hand. */
  readonly manual: boolean;
  /** Absent while it runs. */
  readonly result?: AttemptResult | undefined;
  readonly status?: number | undefined;
  readonly errorKind?: AttemptErrorKind | undefined;
  /** For people; holds no secret. */
  readonly error?: string | undefined;
  /** The beginning of the response's body, at most 16 KiB, as text. */
  readonly response?: string | undefined;
}

/** Where an execution stands. */
export type ExecutionStatus = "queued" | "running" | "succeeded" | "failed" | "cancelled";

/** One run of a workflow. */
export interface Execution {
  readonly id: string;
  readonly workflow: string;
  /** Which text of the workflow it began with; see `WorkflowVersion`. */
  readonly versionId: string;
  readonly triggerId: string;
  readonly status: ExecutionStatus;
  /** JSON object. */
  readonly input: string;
  readonly createdAt: number;
  readonly startedAt?: number | undefined;
  readonly finishedAt?: number | undefined;
  /** When it is ended as failed if it still runs. Set when it starts. */
  readonly deadlineAt?: number | undefined;
  /** When there is something to do; absent in final states. */
  readonly dueAt?: number | undefined;
  /** How many attempts the first step that is not committed has had. */
  readonly stepAttempts: number;
  readonly cancelRequested: boolean;
  /** JSON. */
  readonly output?: string | undefined;
  /** For people; holds no secret. Until it ends: of the last attempt of its current step. */
  readonly error?: string | undefined;
  readonly claimId?: string | undefined;
  readonly leaseUntil?: number | undefined;
}

/** A step that is over, well or not. */
export interface ExecutionStep {
  /** From 0. */
  readonly index: number;
  readonly name: string;
  readonly kind: "request" | "limit" | "set";
  readonly status: "succeeded" | "failed";
  readonly attempts: number;
  readonly startedAt: number;
  readonly finishedAt: number;
  /** JSON; what later steps read as `steps.<name>`. */
  readonly result?: string | undefined;
  /** For people; holds no secret. */
  readonly error?: string | undefined;
}

/**
 * An execution in a list. A page of whole ones could be hundreds of megabytes: the input is `{}`, an output of more than
 * `MAX_LISTED_OUTPUT_BYTES` is absent, and so are the results of the steps.
 */
export interface ListedExecution extends Execution {
  /** The steps that are over, in their order. */
  readonly steps: readonly ExecutionStep[];
}

/** How much of an output a list shows. */
export const MAX_LISTED_OUTPUT_BYTES = 16_384;

/** The text of a workflow at some time, kept for the executions that began with it. */
export interface WorkflowVersion {
  /** SHA-256 of the text, in lower-case hex. */
  readonly id: string;
  readonly workflow: string;
  /** As in the file. */
  readonly text: string;
}

/** An answer that is given again for the same key. */
export interface IdempotencyRow {
  /** `trigger:<id>`, `event-key:<id>` or `admin`. */
  readonly scope: string;
  readonly key: string;
  readonly acceptedAt: number;
  /** SHA-256 of the canonical JSON of the body, in lower-case hex. */
  readonly bodyHash: string;
  /** The execution or event. */
  readonly resultId: string;
  /** Of an event: how many endpoints it goes to. */
  readonly deliveries?: number | undefined;
}

/** Something that is to be known later. */
export interface AuditEntry {
  readonly id: string;
  readonly at: number;
  /** `admin`, `system`, `trigger:<name>`, `event-key:<name>` or `cli`. */
  readonly actor: string;
  /** Such as `delivery.failed`. */
  readonly action: string;
  /** Such as `delivery:<id>`. */
  readonly object: string;
  /** Holds no secret. */
  readonly details: Readonly<Record<string, unknown>>;
}

/** A change of some fields; `undefined` leaves a field as it is. */
type Edit<T> = { readonly [Name in keyof T]?: T[Name] | undefined };

/** A change of an endpoint; `null` removes a value. */
export interface EndpointEdit extends
  Edit<
    Pick<Endpoint, "url" | "events" | "description" | "enabled" | "concurrency" | "standardWebhooks">
  > {
  readonly headers?: { readonly names: readonly string[]; readonly sealed: Sealed } | null | undefined;
  readonly timeoutMs?: number | null | undefined;
}

/** A change of a trigger; `null` removes a value. */
export interface TriggerEdit extends
  Edit<
    Pick<Trigger, "workflow" | "enabled" | "requireIdempotencyKey" | "onBodyMismatch" | "onLimitError">
  > {
  readonly limit?: TriggerLimit | null | undefined;
}
