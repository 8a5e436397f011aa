/**
 * Headers of a request: those of a `Request`, those of an `IncomingMessage` of Node, or names and values. Names may be
 * written in upper and lower case.
 */
export type WebhookHeaders =
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** A received request, and what it is checked against. */
export interface VerifyOptions {
  /** The raw body: bytes, or their text. A body that was parsed and serialized again differs. */
  readonly body: Uint8Array | ArrayBuffer | string;
  /** All headers of the request. */
  readonly headers: WebhookHeaders;
  /** The signing secrets with their prefix: one, or the old and the new one during a rotation. */
  readonly secrets: readonly string[];
  /** Milliseconds since the Unix epoch; the system clock when absent. */
  readonly now?: number | undefined;
  /** How far `X-Svc-Timestamp` may be from `now`, before or after it, inclusive; 300 when absent. */
  readonly toleranceSeconds?: number | undefined;
}

/**
 * Why a request is refused.
 *
 * - `no_secret`: there are no secrets; empty ones do not count
 * - `missing_header`: `X-Svc-Signature` or `X-Svc-Timestamp` is missing
 * - `duplicate_header`: one of them occurs more than once
 * - `malformed_timestamp`: it is not a whole number of seconds
 * - `malformed_signature`: it is not `sha256=` and 64 digits of lower-case hex; upper case is refused
 * - `too_old`, `too_new`: the timestamp is further from the clock than the tolerance
 * - `wrong_signature`: no secret gives this signature of this body
 */
export type RefusalReason =
  | "no_secret"
  | "missing_header"
  | "duplicate_header"
  | "malformed_timestamp"
  | "malformed_signature"
  | "too_old"
  | "too_new"
  | "wrong_signature";

/** The result of `verify`. */
export type VerifyResult =
  | {
    /** The body was signed with one of the secrets, and the timestamp is near the clock. */
    readonly ok: true;
    /** `X-Svc-Timestamp`: when this attempt was sent, in seconds since the Unix epoch. Not signed. */
    readonly timestamp: number;
    /** `X-Svc-Delivery`: the same on every attempt of a delivery. Not signed. */
    readonly delivery?: string;
    /** `X-Svc-Event`: the kind of the event, which the body holds too. Not signed. */
    readonly event?: string;
  }
  | {
    /** The request must not be trusted. */
    readonly ok: false;
    /** For programs. */
    readonly reason: RefusalReason;
    /** For people; has neither a secret nor the expected signature. */
    readonly message: string;
  };
