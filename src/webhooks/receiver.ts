/**
 * The receiver's side of webhooks: verifies that a request comes from the service that holds your endpoint's signing
 * secret. It uses Web Crypto only and runs on Deno, on Node 20 and later, and in browsers and workers.
 *
 * With `standardWebhooks`, it verifies the headers of Standard Webhooks, whose signature covers the identifier and the
 * time as well. `X-Svc-Signature` covers the body only: an attacker who has a whole request can send it again with a later
 * time. In both cases, remember the deliveries that you have seen, and read the kind of the event from the body.
 *
 * @example
 * ```ts
 * import { assertEquals } from "#assert";
 *
 * const seen = new Set<string>();
 * const handler = async (request: Request): Promise<Response> => {
 *   const body = new Uint8Array(await request.arrayBuffer());
 *   const result = await verify({ body, headers: request.headers, secrets: ["whsec_c2VjcmV0"], standardWebhooks: true });
 *   if (!result.ok) return new Response(result.message, { status: 401 });
 *   // Deliveries come at least once: acknowledge a repeated one without processing it again.
 *   if (result.delivery !== undefined && seen.has(result.delivery)) return new Response();
 *   const { event, data } = JSON.parse(new TextDecoder().decode(body));
 *   console.log(event, data);
 *   if (result.delivery !== undefined) seen.add(result.delivery);
 *   return new Response();
 * };
 *
 * const response = await handler(new Request("https://receiver.example/", { method: "POST", body: "{}" }));
 * assertEquals(response.status, 401);
 * assertEquals(await response.text(), "the header webhook-signature is missing");
 * ```
 *
 * @module
 */
import {
  constantTimeEqual,
  secondsBehind,
  signature,
  standardWebhooksHeaders,
  type StandardWebhooksOptions,
} from "./model/signature.ts";

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
  /**
   * True to verify `webhook-id`, `webhook-timestamp` and `webhook-signature` instead of the headers of Weir; `false` when
   * absent. Deliveries have them unless their endpoint has `standardWebhooks: false`.
   */
  readonly standardWebhooks?: boolean | undefined;
  /** Largest difference of the timestamp from `now` in seconds, before or after it, inclusive; 300 when absent. */
  readonly toleranceSeconds?: number | undefined;
}

/**
 * Why a request is refused.
 *
 * - `no_secret`: there are no secrets; empty ones do not count
 * - `missing_header`: a header that is verified is missing
 * - `duplicate_header`: one of them occurs more than once
 * - `malformed_timestamp`: it is not a whole number of seconds
 * - `malformed_signature`: it is not `sha256=` and 64 digits of lower-case hex; upper case is refused. In
 *   `webhook-signature`, no signature is `v1,` and base64 of 32 bytes
 * - `too_old`, `too_new`: the timestamp is further from the clock than the tolerance
 * - `wrong_signature`: no secret gives this signature, and none one of `X-Svc-Signature-Other`
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
    /** When this attempt was sent, in seconds since the Unix epoch. Signed with `standardWebhooks` only. */
    readonly timestamp: number;
    /** The same on every attempt of a delivery. Signed with `standardWebhooks` only. */
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

/** The names of the headers of a scheme, those that it verifies first. */
interface Scheme {
  readonly verified: readonly string[];
  readonly signature: string;
  readonly timestamp: string;
  readonly delivery: string;
  readonly form: RegExp;
  readonly expectedForm: string;
}

const SVC: Scheme = {
  verified: ["x-svc-signature", "x-svc-timestamp"],
  signature: "x-svc-signature",
  timestamp: "x-svc-timestamp",
  delivery: "x-svc-delivery",
  form: /^sha256=[0-9a-f]{64}$/,
  expectedForm: "sha256= followed by 64 lower-case hexadecimal digits",
};
const STANDARD: Scheme = {
  verified: ["webhook-signature", "webhook-timestamp", "webhook-id"],
  signature: "webhook-signature",
  timestamp: "webhook-timestamp",
  delivery: "webhook-id",
  form: /(?:^| )v1,[A-Za-z0-9+/]{43}=(?: |$)/,
  expectedForm: "v1, followed by base64 of 32 bytes",
};
/** Signatures with the other secrets of a rotation. */
const OTHER_SIGNATURES = "x-svc-signature-other";
const EVENT_HEADER = "x-svc-event";
const TOLERANCE_SECONDS = 300;

/**
 * Checks signature and timestamp of a request, in constant time over the signature. An invalid request is a result and
 * never an exception.
 *
 * @param options The request, the secrets and the clock.
 * @returns The values of the headers, or why the request is refused.
 *
 * @example A valid request, and the same one six minutes later
 * ```ts
 * import { assertEquals } from "#assert";
 *
 * const request = {
 *   body: '{"event":"agent.reply.completed","data":{}}',
 *   headers: {
 *     "x-svc-event": "agent.reply.completed",
 *     "x-svc-delivery": "3b241101-e2bb-4255-8caf-4136c566a962",
 *     "x-svc-timestamp": "1700000000",
 *     "x-svc-signature": "sha256=2e5b4e08497b89bf7f980a626f21507bb74b48b242847c4dcb5e80dbcf56e7c8",
 *   },
 *   secrets: ["whsec_bmV3", "whsec_c2VjcmV0"],
 * };
 * assertEquals(await verify({ ...request, now: 1_700_000_010_000 }), {
 *   ok: true,
 *   timestamp: 1_700_000_000,
 *   delivery: "3b241101-e2bb-4255-8caf-4136c566a962",
 *   event: "agent.reply.completed",
 * });
 * assertEquals(await verify({ ...request, now: 1_700_000_360_000 }), {
 *   ok: false,
 *   reason: "too_old",
 *   message: "the timestamp 1700000000 is 360 seconds behind the clock; expected at most 300",
 * });
 * ```
 */
export async function verify(options: VerifyOptions): Promise<VerifyResult> {
  const { body, now = Date.now(), toleranceSeconds = TOLERANCE_SECONDS, standardWebhooks = false } = options;
  const scheme = standardWebhooks ? STANDARD : SVC;
  const secrets = options.secrets.filter((secret) => secret !== "");
  if (secrets.length === 0) return refused("no_secret", "no secret was given");
  const headers = valuesOf(options.headers);
  for (const name of scheme.verified) {
    const values = headers.get(name) ?? [];
    if (values.length === 0) return refused("missing_header", `the header ${name} is missing`);
    if (values.length > 1) return refused("duplicate_header", `the header ${name} occurs more than once`);
  }
  const [given = ""] = headers.get(scheme.signature) ?? [];
  const [timestamp = ""] = headers.get(scheme.timestamp) ?? [];
  const [id = ""] = headers.get(scheme.delivery) ?? [];
  const late = timeRefusal(timestamp, now, toleranceSeconds);
  if (late !== undefined) return late;
  if (!scheme.form.test(given)) {
    return refused("malformed_signature", `the signature is not ${scheme.expectedForm}`);
  }
  const bytes = bytesOf(body);
  const isValid = standardWebhooks
    ? await isStandardSigned({ id, timestampSeconds: Number(timestamp), body: bytes }, given, secrets)
    : await isSigned(bytes, [given, ...headers.get(OTHER_SIGNATURES) ?? []], secrets);
  if (!isValid) {
    return refused("wrong_signature", "the signature matches no secret");
  }
  return {
    ok: true,
    timestamp: Number(timestamp),
    ...only("delivery", headers.get(scheme.delivery)),
    ...only("event", headers.get(EVENT_HEADER)),
  };
}

function refused(reason: RefusalReason, message: string): VerifyResult {
  return { ok: false, reason, message };
}

/** All values by lower-case name. Joined values are split again: of those that are verified, only one has its own commas. */
function valuesOf(headers: WebhookHeaders): ReadonlyMap<string, readonly string[]> {
  const entries = Symbol.iterator in headers
    ? headers as Iterable<readonly [string, string]>
    : Object.entries(headers);
  const all = new Map<string, string[]>();
  for (const [name, value] of entries) {
    if (value === undefined) continue;
    const key = name.toLowerCase();
    const texts = typeof value === "string" ? [value] : value;
    const values = key === STANDARD.signature ? texts : texts.flatMap((text) => text.split(","));
    all.set(key, [...all.get(key) ?? [], ...values.map((text) => text.trim())]);
  }
  return all;
}

function timeRefusal(timestamp: string, now: number, toleranceSeconds: number): VerifyResult | undefined {
  const behind = secondsBehind(timestamp, now);
  if (behind === undefined) {
    return refused("malformed_timestamp", "the timestamp is not a whole number of seconds");
  }
  if (Math.abs(behind) <= toleranceSeconds) return undefined;
  const [reason, side] = behind > 0 ? ["too_old", "behind"] as const : ["too_new", "ahead of"] as const;
  const seconds = `${Math.abs(behind)} seconds`;
  return refused(
    reason,
    `the timestamp ${timestamp} is ${seconds} ${side} the clock; expected at most ${toleranceSeconds}`,
  );
}

function bytesOf(body: VerifyOptions["body"]): Uint8Array {
  if (typeof body === "string") return new TextEncoder().encode(body);
  return body instanceof Uint8Array ? body : new Uint8Array(body);
}

/** Tries every secret, even after a match, so that the time does not reveal which one it was. */
async function isSigned(
  body: Uint8Array,
  given: readonly string[],
  secrets: readonly string[],
): Promise<boolean> {
  const expected = await Promise.all(secrets.map((secret) => signature(secret, body)));
  return isAnyEqual(expected, given);
}

/** As `isSigned`; the header may have several signatures. A secret that is not base64 matches none. */
async function isStandardSigned(
  signed: Omit<StandardWebhooksOptions, "secrets">,
  given: string,
  secrets: readonly string[],
): Promise<boolean> {
  const expected = await Promise.all(secrets.map(async (secret) => {
    const headers = await standardWebhooksHeaders({ ...signed, secrets: [secret] }).catch(() => undefined);
    return headers?.["webhook-signature"];
  }));
  return isAnyEqual(expected.filter((one) => one !== undefined), given.split(" "));
}

/** Compares all of them, even after a match. */
function isAnyEqual(expected: readonly string[], given: readonly string[]): boolean {
  return expected.flatMap((one) => given.map((word) => constantTimeEqual(one, word))).includes(true);
}

function only(name: "delivery" | "event", values: readonly string[] = []): Record<string, string> {
  const [value] = values;
  return value === undefined || values.length > 1 ? {} : { [name]: value };
}
