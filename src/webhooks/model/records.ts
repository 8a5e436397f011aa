/**
 * The records of the store. Times are whole milliseconds of wall clock since the Unix epoch. Identifiers are UUID v4.
 * JSON texts are stored as they came, so that numbers keep every digit.
 */

/** A text or bytes, encrypted with a key of `WEBHOOK_ENCRYPTION_KEY`. */
export interface Sealed {
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

/** A receiver of events. */
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
  /** How many attempts may be in flight. */
  readonly concurrency: number;
  /** Of one attempt; `WEBHOOK_TIMEOUT` when absent. */
  readonly timeoutMs?: number | undefined;
  /** Whether the headers of Standard Webhooks are sent in addition to ours. */
  readonly standardWebhooks: boolean;
  /** A filter by fields of `data`, as JSON; absent for none. */
  readonly filter?: string | undefined;
  /** Newest first. */
  readonly secrets: readonly EndpointSecret[];
  /** Absent while it is enabled, and where an older release has disabled it. */
  readonly disabledAt?: number | undefined;
  readonly disabledReason?: DisabledReason | undefined;
}

/** Who disabled an endpoint: an administrator, or Weir because its attempts only failed. */
export type DisabledReason = "admin" | "failing";

/** A key of which only the hash is stored. */
export interface StoredKey {
  readonly id: string;
  /** SHA-256 of the key, in lower-case hex. */
  readonly hash: string;
  readonly lastFour: string;
  readonly createdAt: number;
}

/** Who signs the calls of a trigger, or that the record describes how. */
export type SignatureScheme = "github" | "stripe" | "shopify" | "standard-webhooks" | "hmac-sha256";

/** How calls of a trigger are signed; all but scheme and tolerance belongs to `hmac-sha256`. */
export interface TriggerVerification {
  readonly scheme: SignatureScheme;
  /** The header of the signature, in lower case, like the other two. */
  readonly header?: string | undefined;
  /** What precedes the signature in the header. */
  readonly prefix?: string | undefined;
  readonly encoding?: "hex" | "base64" | undefined;
  /** The header of the time, which is signed in front of the body. */
  readonly timestampHeader?: string | undefined;
  /** How far a signed time may be from the clock; absent where none is signed. */
  readonly toleranceSeconds?: number | undefined;
  /** The header whose value is the idempotency key. */
  readonly idempotencyHeader?: string | undefined;
}

/** A secret that verifies calls of a trigger. */
export interface TriggerSecret {
  readonly id: string;
  readonly sealed: Sealed;
  readonly createdAt: number;
}

/** A trigger of a workflow, whose calls show a key or are signed. */
export interface Trigger {
  readonly id: string;
  readonly name: string;
  readonly workflow: string;
  readonly enabled: boolean;
  readonly requireIdempotencyKey: boolean;
  readonly onBodyMismatch: "replay" | "reject";
  /** The JSON of its `TriggerLimit`. */
  readonly limit?: string | undefined;
  readonly onLimitError: "deny" | "allow";
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Live keys, newest first; at most two, and none where calls are signed. */
  readonly keys: readonly StoredKey[];
  /** Present where calls are signed. */
  readonly verify?: TriggerVerification | undefined;
  /** Live secrets where calls are signed, newest first; at most two. */
  readonly secrets?: readonly TriggerSecret[] | undefined;
}

/** A key for posting events. */
export interface EventKey extends StoredKey {
  readonly name: string;
  /** Kinds, prefixes, or `*`. */
  readonly kinds: readonly string[];
}

/** An event. */
export interface WebhookEvent {
  readonly id: string;
  readonly kind: string;
  /** The body of every delivery: `{"event":…,"data":…}`; absent once the payload was erased. */
  readonly body?: Uint8Array | undefined;
  readonly createdAt: number;
}

/** The state of a delivery. */
export type DeliveryState = "attempting" | "retrying" | "acknowledged" | "failed";

/** Why a delivery failed for good. */
export type FailureReason =
  | "exhausted"
  | "endpoint_disabled"
  | "endpoint_deleted"
  | "payload_erased"
  | "backlog_full";

/** An event to deliver to every endpoint that names its kind and whose filter matches, disabled ones included. */
export interface NewEvent {
  readonly id: string;
  readonly kind: string;
  readonly body: Uint8Array;
}

/** The delivery of one event to one endpoint. */
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
  /** How many slots of the schedule have been used; the first attempt uses none. */
  readonly slot: number;
  /** When the next attempt is due; absent in final states. */
  readonly dueAt?: number | undefined;
  /** When a manual attempt was requested that was not made yet. */
  readonly resendAt?: number | undefined;
  readonly finishedAt?: number | undefined;
  readonly reason?: FailureReason | undefined;
  /** The claim of the worker on it; absent for none. */
  readonly claimId?: string | undefined;
  readonly leaseUntil?: number | undefined;
}

/** How an attempt ended. */
export type AttemptResult = "acknowledged" | "failed" | "interrupted";

/** The error of an attempt. */
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
  /** The request could not be created, for example because its secret cannot be decrypted. */
  | "unsendable"
  | "interrupted";

/** An attempt of a delivery. */
export interface Attempt {
  /** From 1. */
  readonly number: number;
  readonly startedAt: number;
  readonly finishedAt?: number | undefined;
  /** The URL at that time. */
  readonly url: string;
  readonly manual: boolean;
  /** Absent while it runs. */
  readonly result?: AttemptResult | undefined;
  readonly status?: number | undefined;
  readonly errorKind?: AttemptErrorKind | undefined;
  /** For people; has no secret. */
  readonly error?: string | undefined;
  /** The start of the response's body, at most 16 KiB, as text. */
  readonly response?: string | undefined;
}

/** The status of an execution. */
export type ExecutionStatus = "queued" | "running" | "succeeded" | "failed" | "cancelled";

/** One run of a workflow. */
export interface Execution {
  readonly id: string;
  readonly workflow: string;
  /** The `WorkflowVersion` that it began with. */
  readonly versionId: string;
  readonly triggerId: string;
  /** The kind of event that the provider named in a header of its signed call. */
  readonly event?: string | undefined;
  readonly status: ExecutionStatus;
  /** JSON object. */
  readonly input: string;
  readonly createdAt: number;
  readonly startedAt?: number | undefined;
  readonly finishedAt?: number | undefined;
  /** When it fails if it still runs. Set when it starts. */
  readonly deadlineAt?: number | undefined;
  /** When it is worked on again; absent in final states. */
  readonly dueAt?: number | undefined;
  /** Attempts of the first step that is not committed. */
  readonly stepAttempts: number;
  readonly cancelRequested: boolean;
  /** JSON. */
  readonly output?: string | undefined;
  /** For people; has no secret. Until the end it is the error of the current step's last attempt. */
  readonly error?: string | undefined;
  readonly claimId?: string | undefined;
  readonly leaseUntil?: number | undefined;
}

/** A finished step. */
export interface ExecutionStep {
  /** From 0. */
  readonly index: number;
  readonly name: string;
  readonly kind: "request" | "limit" | "set";
  readonly status: "succeeded" | "failed";
  readonly attempts: number;
  readonly startedAt: number;
  readonly finishedAt: number;
  /** JSON; later steps read it as `steps.<name>`. */
  readonly result?: string | undefined;
  /** For people; has no secret. */
  readonly error?: string | undefined;
}

/**
 * An execution in a list. A page of whole ones could be hundreds of megabytes: the input is `{}`, an output of more than
 * `MAX_LISTED_OUTPUT_BYTES` is absent, and so are the results of the steps.
 */
export interface ListedExecution extends Execution {
  /** Finished steps, in their order. */
  readonly steps: readonly ExecutionStep[];
}

/** Larger outputs are not listed. */
export const MAX_LISTED_OUTPUT_BYTES = 16_384;

/** A text of a workflow, kept for the executions that began with it. */
export interface WorkflowVersion {
  /** SHA-256 of the text, in lower-case hex. */
  readonly id: string;
  readonly workflow: string;
  /** As in the file. */
  readonly text: string;
}

/** The result of a call, which is repeated for the same key. */
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

/** An entry of the audit log. */
export interface AuditEntry {
  readonly id: string;
  readonly at: number;
  /** `admin`, `system`, `trigger:<name>`, `event-key:<name>` or `cli`. */
  readonly actor: string;
  /** One of `AUDIT_ACTIONS`. */
  readonly action: string;
  /** Such as `delivery:<id>`. */
  readonly object: string;
  /** Has no secret. */
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
  readonly filter?: string | null | undefined;
}

/** A change of a trigger; `null` removes a value. */
export interface TriggerEdit extends
  Edit<
    Pick<
      Trigger,
      "workflow" | "enabled" | "requireIdempotencyKey" | "onBodyMismatch" | "onLimitError" | "verify"
    >
  > {
  readonly limit?: string | null | undefined;
}
