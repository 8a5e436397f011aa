import type { Administrator } from "./administrator.ts";

/** Longest `Idempotency-Key`. */
export const MAX_KEY_LENGTH = 255;

// deno-lint-ignore no-control-regex
const CONTROLS = /[\0-\x1f\x7f]/;

/** An answer over HTTP. */
export interface WebhookAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Empty for none. */
  readonly body: string;
  /** Of a refusal. */
  readonly code?: string | undefined;
  /** True if the call was a check of the URL by a provider, which starts nothing. */
  readonly isChallenge?: boolean | undefined;
  /** True if something was accepted, whatever its status. */
  readonly isAccepted?: boolean | undefined;
}

/** The content of a call. Without a body its caller is checked: the answer is a refusal, else `refusal`, else `CONTINUE`. */
export interface CallContent {
  /** Of good syntax; absent for none. */
  readonly idempotencyKey?: string | undefined;
  /** As it came. */
  readonly body?: string | undefined;
  /** The answer for a known caller whose body cannot be used. */
  readonly refusal?: WebhookAnswer | undefined;
}

/** A call of a trigger. */
export interface TriggerCall extends CallContent {
  /** The media type of its body; JSON when absent. */
  readonly contentType?: string | undefined;
  /** Without credentials; names in lower case. */
  readonly headers?: readonly (readonly [name: string, value: string])[] | undefined;
  readonly requestId: string;
  /** The part of the path behind `triggers/`, as it came. */
  readonly name: string;
  /** SHA-256 of the key of the caller, in lower-case hex. */
  readonly keyHash: string;
}

/** A call of a trigger without a bearer token, whose signature decides. */
export interface SignedTriggerCall {
  readonly requestId: string;
  /** The path and the query, as they came. */
  readonly target: string;
  /** The part of the path behind `triggers/`, as it came. */
  readonly name: string;
  /** Names in lower case; repeated headers are joined by a comma and a space. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Names of headers, in lower case, that were sent several times with different values; none when absent. */
  readonly repeated?: readonly string[];
  /** The raw body. */
  readonly body: Uint8Array;
  /** Of the decoded body. */
  readonly maxBodyBytes: number;
}

/** A call of a trigger with another method than `POST`, with which a provider may check the URL. */
export interface TriggerCheck {
  readonly requestId: string;
  /** The part of the path behind `triggers/`, as it came. */
  readonly name: string;
  readonly method: "GET" | "HEAD";
  /** Without the question mark. */
  readonly query: string;
}

/** A posted event. */
export interface EventCall extends CallContent {
  readonly requestId: string;
  /** SHA-256 of the event key of the caller; absent for an administrator. */
  readonly keyHash?: string | undefined;
  /** The name of the administrator; `admin` when absent. */
  readonly administrator?: string | undefined;
}

/** A call of the administration with a right token. */
export interface AdministrationCall {
  readonly requestId: string;
  readonly administrator: Administrator;
  readonly method: string;
  /** Behind `/api/v1`, such as `/endpoints`. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  /** As it came; absent for none. */
  readonly idempotencyKey?: string | undefined;
  /** Absent where none came. */
  readonly body?: string | undefined;
}

/**
 * The webhook service as the HTTP port sees it: plain calls and answers, so that they can be posted to a worker. Every
 * call is answered in bounded time and never throws.
 */
export interface WebhookCalls {
  acceptTrigger(call: TriggerCall): Promise<WebhookAnswer>;
  acceptSignedTrigger(call: SignedTriggerCall): Promise<WebhookAnswer>;
  checkTrigger(call: TriggerCheck): Promise<WebhookAnswer>;
  acceptEvent(call: EventCall): Promise<WebhookAnswer>;
  administer(call: AdministrationCall): Promise<WebhookAnswer>;
}

/** The caller is known: its body may be read. */
export const CONTINUE: WebhookAnswer = { status: 100, headers: {}, body: "" };

/** The problem of a key for deduplication, which the text calls `name`; undefined if it is valid. */
export function idempotencyKeyProblem(key: string, name = "Idempotency-Key"): string | undefined {
  const expected = `expected 1 to ${MAX_KEY_LENGTH} characters`;
  if (key === "") return `the ${name} is empty; ${expected}`;
  if (key.length > MAX_KEY_LENGTH) return `the ${name} has ${key.length} characters; ${expected}`;
  if (CONTROLS.test(key)) return `the ${name} has a control character; ${expected} without any`;
  return undefined;
}
