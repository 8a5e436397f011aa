/** How long an `Idempotency-Key` may be. */
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
}

/** Who calls a trigger. */
export interface TriggerCaller {
  readonly requestId: string;
  /** The part of the path behind `triggers/`, as it came. */
  readonly name: string;
  /** SHA-256 of the key that was shown, in lower-case hex. */
  readonly keyHash: string;
}

/** A call of a trigger with all that it brings. */
export interface TriggerCall extends TriggerCaller, CallBody {}

/** Who posts an event. */
export interface EventCaller {
  readonly requestId: string;
  /** SHA-256 of the event key that was shown; absent for the administration. */
  readonly keyHash?: string | undefined;
}

/** An event that is posted. */
export interface EventCall extends EventCaller, CallBody {}

/** What comes behind the header of a call. */
export interface CallBody {
  /** Of good syntax; absent for none. */
  readonly idempotencyKey?: string | undefined;
  /** As it came. */
  readonly body: string;
}

/** A call of the administration, whose token was right. */
export interface AdministrationCall {
  readonly requestId: string;
  readonly method: string;
  /** Behind `/api/v1`, such as `/endpoints`. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  /** Absent where none came. */
  readonly body?: string | undefined;
}

/**
 * The webhook service as the HTTP port sees it: plain calls and answers, so that they can be posted to a worker. Every
 * call is answered in bounded time and never throws.
 */
export interface WebhookCalls {
  /** Why a caller of a trigger is refused before the body is read; nothing when it is not. */
  admitTrigger(caller: TriggerCaller): Promise<WebhookAnswer | undefined>;
  acceptTrigger(call: TriggerCall): Promise<WebhookAnswer>;
  /** Why whoever posts an event is refused before the body is read; nothing when it is not. */
  admitEvent(caller: EventCaller): Promise<WebhookAnswer | undefined>;
  acceptEvent(call: EventCall): Promise<WebhookAnswer>;
  administer(call: AdministrationCall): Promise<WebhookAnswer>;
}

/** What is wrong with the value of an `Idempotency-Key`; nothing when it may be used. */
export function idempotencyKeyProblem(key: string): string | undefined {
  const wanted = `1 to ${MAX_KEY_LENGTH} characters would be right`;
  if (key === "") return `the Idempotency-Key is empty; ${wanted}`;
  if (key.length > MAX_KEY_LENGTH) return `the Idempotency-Key has ${key.length} characters; ${wanted}`;
  if (CONTROLS.test(key)) return `the Idempotency-Key holds a control character; ${wanted}, without any`;
  return undefined;
}
