/**
 * The receiver's side of webhooks: verifies that a request comes from the service that holds your endpoint's signing
 * secret. It uses Web Crypto only and runs on Deno, on Node 20 and later, and in browsers and workers.
 *
 * `X-Svc-Signature` covers the body only. The headers `X-Svc-Timestamp`, `X-Svc-Delivery` and `X-Svc-Event` are not
 * signed: an attacker who has a whole request can send it again with a later time, so remember the deliveries that you
 * have seen, and read the kind of the event from the body. Standard Webhooks headers sign identifier and time as well.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const seen = new Set<string>();
 * const handler = async (request: Request): Promise<Response> => {
 *   const body = new Uint8Array(await request.arrayBuffer());
 *   const result = await verify({ body, headers: request.headers, secrets: ["whsec_c2VjcmV0"] });
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
 * assertEquals(await response.text(), "the header x-svc-signature is missing");
 * ```
 *
 * @module
 */
import { constantTimeEqual, secondsBehind, signature } from "./model/signature.ts";

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

const SIGNATURE_HEADER = "x-svc-signature";
const TIMESTAMP_HEADER = "x-svc-timestamp";
const DELIVERY_HEADER = "x-svc-delivery";
const EVENT_HEADER = "x-svc-event";
const TOLERANCE_SECONDS = 300;
const SIGNATURE = /^sha256=[0-9a-f]{64}$/;

/**
 * Checks signature and timestamp of a request, in constant time over the signature. An invalid request is a result and
 * never an exception.
 *
 * @param options The request, the secrets and the clock.
 * @returns The values of the headers, or why the request is refused.
 *
 * @example A valid request, and the same one six minutes later
 * ```ts
 * import { assertEquals } from "@std/assert";
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
  const { body, now = Date.now(), toleranceSeconds = TOLERANCE_SECONDS } = options;
  const secrets = options.secrets.filter((secret) => secret !== "");
  if (secrets.length === 0) return refused("no_secret", "no secret was given");
  const headers = valuesOf(options.headers);
  for (const name of [SIGNATURE_HEADER, TIMESTAMP_HEADER]) {
    const values = headers.get(name) ?? [];
    if (values.length === 0) return refused("missing_header", `the header ${name} is missing`);
    if (values.length > 1) return refused("duplicate_header", `the header ${name} occurs more than once`);
  }
  const [given = ""] = headers.get(SIGNATURE_HEADER) ?? [];
  const [timestamp = ""] = headers.get(TIMESTAMP_HEADER) ?? [];
  const late = timeRefusal(timestamp, now, toleranceSeconds);
  if (late !== undefined) return late;
  if (!SIGNATURE.test(given)) {
    return refused(
      "malformed_signature",
      "the signature is not sha256= followed by 64 lower-case hexadecimal digits",
    );
  }
  if (!await isSigned(bytesOf(body), given, secrets)) {
    return refused("wrong_signature", "the signature matches no secret");
  }
  return {
    ...{ ok: true, timestamp: Number(timestamp) },
    ...only("delivery", headers.get(DELIVERY_HEADER)),
    ...only("event", headers.get(EVENT_HEADER)),
  };
}

function refused(reason: RefusalReason, message: string): VerifyResult {
  return { ok: false, reason, message };
}

/** All values by lower-case name. Joined values are split again: none of ours has a comma. */
function valuesOf(headers: WebhookHeaders): ReadonlyMap<string, readonly string[]> {
  const entries = Symbol.iterator in headers
    ? headers as Iterable<readonly [string, string]>
    : Object.entries(headers);
  const all = new Map<string, string[]>();
  for (const [name, value] of entries) {
    if (value === undefined) continue;
    const values = (typeof value === "string" ? [value] : value).flatMap((text) => text.split(","));
    const key = name.toLowerCase();
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
async function isSigned(body: Uint8Array, given: string, secrets: readonly string[]): Promise<boolean> {
  const expected = await Promise.all(secrets.map((secret) => signature(secret, body)));
  return expected.map((one) => constantTimeEqual(one, given)).includes(true);
}

function only(name: "delivery" | "event", values: readonly string[] = []): Record<string, string> {
  const [value] = values;
  return value === undefined || values.length > 1 ? {} : { [name]: value };
}
