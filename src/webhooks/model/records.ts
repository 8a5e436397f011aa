import type { ATTEMPT_FIELDS, DELIVERY_FIELDS, STORED_DELIVERY } from "../resources/delivery.ts";
import type { ENDPOINT_FIELDS } from "../resources/endpoint.ts";
import type { AUTHENTICATION, ENDPOINT_TLS } from "../resources/endpoint_authentication.ts";
import type { EVENT_KEY_FIELDS } from "../resources/event.ts";
import type { EXECUTION_FIELDS, STEP_FIELDS, STORED_EXECUTION } from "../resources/execution.ts";
import type { Edited, Shown, Stored } from "../resources/field.ts";
import type { REPLAY_FIELDS } from "../resources/replay.ts";
import type { TRIGGER_FIELDS } from "../resources/trigger.ts";
import type {
  CUSTOM_ID,
  CUSTOM_SIGNATURE,
  CUSTOM_TIME,
  TRIGGER_VERIFICATION,
} from "../resources/trigger_verification.ts";

/** One of the choices of a field. */
type Choice<F extends { readonly choices: readonly string[] }> = F["choices"][number];

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

/** The authentication of deliveries to a receiver, without secrets. */
export type EndpointAuthentication = Shown<typeof AUTHENTICATION>;

/** The client certificate of deliveries and the authorities of the receiver, as answers show them. */
export type EndpointTls = Shown<typeof ENDPOINT_TLS>;

/** Credentials as they are stored: what answers show, and all of them, a JSON object. */
export interface Credentials<T> {
  readonly shown: T;
  readonly sealed: Sealed;
}

/** A receiver of events. */
export interface Endpoint extends Stored<typeof ENDPOINT_FIELDS> {
  readonly id: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Names of the static headers, in their order. */
  readonly headerNames: readonly string[];
  /** Their values, a JSON object by name; absent for none. */
  readonly headers?: Sealed | undefined;
  readonly authentication?: EndpointAuthentication | undefined;
  /** With its secrets, an `OpenedAuthentication`; absent without authentication. */
  readonly sealedAuthentication?: Sealed | undefined;
  readonly tls?: EndpointTls | undefined;
  /** With its texts in PEM, an `OpenedTls`; absent without them. */
  readonly sealedTls?: Sealed | undefined;
  /** Newest first. */
  readonly secrets: readonly EndpointSecret[];
  /** Absent while it is enabled, and where an older release has disabled it. */
  readonly disabledAt?: number | undefined;
  readonly disabledReason?: DisabledReason | undefined;
  /** When its rate limit allows the next attempt; absent, or in the past, where one may begin now. */
  readonly rateNextAt?: number | undefined;
}

/** Who disabled an endpoint: an administrator, or Weir because its attempts only failed. */
export type DisabledReason = Choice<typeof ENDPOINT_FIELDS.disabledReason>;

/** A key of which only the hash is stored. */
export interface StoredKey {
  readonly id: string;
  /** SHA-256 of the key, in lower-case hex. */
  readonly hash: string;
  readonly lastFour: string;
  readonly createdAt: number;
}

/** The signatures of a trigger's calls; all but scheme and tolerance belongs to some schemes. Headers are in lower case. */
export interface TriggerVerification extends Stored<typeof TRIGGER_VERIFICATION> {
  readonly signature?: Stored<typeof CUSTOM_SIGNATURE> | undefined;
  readonly time?: Stored<typeof CUSTOM_TIME> | undefined;
  readonly id?: Stored<typeof CUSTOM_ID> | undefined;
}

/** A secret that verifies calls of a trigger. */
export interface TriggerSecret {
  readonly id: string;
  readonly sealed: Sealed;
  readonly createdAt: number;
}

/** A trigger of a workflow, whose calls show a key or are signed. */
export interface Trigger extends Stored<typeof TRIGGER_FIELDS> {
  readonly id: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Live keys, newest first; at most two, and none where calls are signed. */
  readonly keys: readonly StoredKey[];
  /** SHA-256 of the token with which Meta checks the URL, in lower-case hex. */
  readonly challengeTokenHash?: string | undefined;
  /** Present where calls are signed. */
  readonly verify?: TriggerVerification | undefined;
  /** Live secrets where calls are signed, newest first; at most two. */
  readonly secrets?: readonly TriggerSecret[] | undefined;
}

/** A key for posting events. */
export interface EventKey extends StoredKey, Stored<typeof EVENT_KEY_FIELDS> {}

/** An event. */
export interface WebhookEvent {
  readonly id: string;
  readonly kind: string;
  /** The body of every delivery: `{"event":…,"data":…}`; absent once the payload was erased. */
  readonly body?: Uint8Array | undefined;
  readonly createdAt: number;
}

/** The state of a delivery. */
export type DeliveryState = Choice<typeof DELIVERY_FIELDS.state>;

/** Why a delivery failed for good. */
export type FailureReason = Choice<typeof DELIVERY_FIELDS.reason>;

/** An event to deliver to every endpoint that names its kind and whose filter matches, disabled ones included. */
export interface NewEvent {
  readonly id: string;
  readonly kind: string;
  readonly body: Uint8Array;
}

/** The delivery of one event to one endpoint. */
export interface Delivery extends Shown<typeof STORED_DELIVERY> {
  /** When the next attempt is due; absent in final states. */
  readonly dueAt?: number | undefined;
  /** Time that its retries have waited for the rate limit of its endpoint; absent for none. */
  readonly waitedMs?: number | undefined;
  /** When a manual attempt was requested that was not made yet. */
  readonly resendAt?: number | undefined;
  /** The claim of the worker on it; absent for none. */
  readonly claimId?: string | undefined;
  readonly leaseUntil?: number | undefined;
}

/** New deliveries of stored events to an endpoint, or the retry of deliveries. */
export type Replay = Shown<typeof REPLAY_FIELDS>;

/** The result of an attempt. */
export type AttemptResult = Choice<typeof ATTEMPT_FIELDS.result>;

/** The error of an attempt. */
export type AttemptErrorKind = Choice<typeof ATTEMPT_FIELDS.errorKind>;

/** An attempt of a delivery. Its error has no secret. */
export interface Attempt extends Shown<typeof ATTEMPT_FIELDS> {
  /** The headers of its request that nothing else tells; no credentials. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The status of an execution. */
export type ExecutionStatus = Choice<typeof EXECUTION_FIELDS.status>;

/** One run of a workflow. Until its end, `error` is that of the last attempt of the current step. */
export interface Execution extends Shown<typeof STORED_EXECUTION> {
  /** JSON object. */
  readonly input: string;
  /** The headers that its trigger passed, a JSON object; absent for none. */
  readonly headers?: string | undefined;
  /** When it fails if it still runs. Set when it starts. */
  readonly deadlineAt?: number | undefined;
  /** When it is worked on again; absent in final states. */
  readonly dueAt?: number | undefined;
  /** Attempts of the first step that is not committed. */
  readonly stepAttempts: number;
  readonly claimId?: string | undefined;
  readonly leaseUntil?: number | undefined;
}

/** A finished step, whose result later steps read as `steps.<name>`. Its error has no secret. */
export type ExecutionStep = Shown<typeof STEP_FIELDS>;

/**
 * An execution in a list. A page of whole ones could be hundreds of megabytes: the input is `{}`, an output of more than
 * `MAX_LISTED_OUTPUT_BYTES` is absent, and so are the results of the steps.
 */
export interface ListedExecution extends Execution {
  /** Finished steps, in their order. */
  readonly steps: readonly ExecutionStep[];
}

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
  /** `trigger:<id>`, `event-key:<id>`, `admin`, or `execution:<id>` of one that is run again. */
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

/** A change of an endpoint; `null` removes a value. */
export interface EndpointEdit extends Edited<typeof ENDPOINT_FIELDS> {
  readonly headers?: { readonly names: readonly string[]; readonly sealed: Sealed } | null | undefined;
  readonly authentication?: Credentials<EndpointAuthentication> | null | undefined;
  readonly tls?: Credentials<EndpointTls> | null | undefined;
}

/** A change of a trigger; `null` removes a value. */
export interface TriggerEdit extends Edited<typeof TRIGGER_FIELDS> {
  readonly challengeTokenHash?: string | undefined;
  readonly verify?: TriggerVerification | undefined;
}
