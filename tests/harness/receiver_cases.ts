/** Requests that a receiver checks, and what is to come of it; run on every platform. No import but the kit. */
import { verify } from "../../src/webhooks/receiver.ts";
import type { VerifyOptions, VerifyResult } from "../../src/webhooks/receiver.ts";

/** A request by name, and what is to come of it. */
interface ReceiverCase {
  readonly name: string;
  readonly options: VerifyOptions;
  readonly expected: VerifyResult;
}

const SECRET = "whsec_c2VjcmV0";
const BODY = '{"event":"agent.reply.completed","data":{"text":"ü"}}';
// From `printf '%s' "$BODY" | openssl dgst -sha256 -hmac "$SECRET"`.
const HEX = "6ff02c73dc355de1ce274acd0d1cd28f7e526c9de5b3eb964185d4e9901b0486";
const SENT_AT = 1_700_000_000;
const DELIVERY = "3b241101-e2bb-4255-8caf-4136c566a962";

const HEADERS = {
  "content-type": "application/json",
  "x-svc-event": "agent.reply.completed",
  "x-svc-delivery": DELIVERY,
  "x-svc-timestamp": `${SENT_AT}`,
  "x-svc-signature": `sha256=${HEX}`,
} as const;
// From `printf '%s' "$ID.$TIME.$BODY" | openssl dgst -sha256 -hmac secret -binary | base64`.
const BASE64 = "jrxOBecIuToX2lFCKQaSHY+uS/p6qLETvimBMqRE8Xw=";
const STANDARD_HEADERS = {
  "x-svc-event": "agent.reply.completed",
  "webhook-id": DELIVERY,
  "webhook-timestamp": `${SENT_AT}`,
  "webhook-signature": `v1,${BASE64}`,
} as const;
const REQUEST = { body: BODY, headers: HEADERS, secrets: [SECRET], now: SENT_AT * 1_000 };

const OK: VerifyResult = {
  ok: true,
  timestamp: SENT_AT,
  delivery: DELIVERY,
  event: "agent.reply.completed",
};
const refused = (reason: Extract<VerifyResult, { ok: false }>["reason"], message: string): VerifyResult => ({
  ok: false,
  reason,
  message,
});
const NO_SECRET = refused("no_secret", "no secret was given");
const WRONG = refused("wrong_signature", "the signature matches no secret");
const MALFORMED = refused(
  "malformed_signature",
  "the signature is not sha256= followed by 64 lower-case hexadecimal digits",
);
const NO_TIME = refused("malformed_timestamp", "the timestamp is not a whole number of seconds");
const missing = (name: string) => refused("missing_header", `the header ${name} is missing`);
const duplicate = (name: string) => refused("duplicate_header", `the header ${name} occurs more than once`);

const bytes = new TextEncoder().encode(BODY);
const upper = (text: string) => text.toUpperCase();

/** The same request with one header changed; `undefined` takes it away. */
const withHeader = (name: keyof typeof HEADERS, value: string | readonly string[] | undefined) => ({
  ...REQUEST,
  headers: { ...HEADERS, [name]: value },
});
const signed = (value: string) => withHeader("x-svc-signature", value);
/** The same request with a first signature of another secret. */
const rotating = (other: string | readonly string[]) => ({
  ...REQUEST,
  headers: { ...HEADERS, "x-svc-signature": `sha256=${"0".repeat(64)}`, "x-svc-signature-other": other },
});
const at = (seconds: number, more: Partial<VerifyOptions> = {}) => ({
  ...REQUEST,
  now: (SENT_AT + seconds) * 1_000,
  ...more,
});
const far = (reason: "too_old" | "too_new", seconds: number, most = 300) =>
  refused(
    reason,
    `the timestamp ${SENT_AT} is ${seconds} seconds ${
      reason === "too_old" ? "behind" : "ahead of"
    } the clock; ` +
      `expected at most ${most}`,
  );

const BARE: VerifyResult = { ok: true, timestamp: SENT_AT };

/** The same request with the headers of Standard Webhooks, some of them changed; `undefined` takes one away. */
const standard = (
  changed: Readonly<Record<string, string | readonly string[] | undefined>> = {},
  more: Partial<VerifyOptions> = {},
): VerifyOptions => ({
  ...REQUEST,
  headers: { ...STANDARD_HEADERS, ...changed },
  standardWebhooks: true,
  ...more,
});
const NO_STANDARD_FORM = refused(
  "malformed_signature",
  "the signature is not v1, followed by base64 of 32 bytes",
);

const TABLE: readonly (readonly [name: string, options: VerifyOptions, expected: VerifyResult])[] = [
  ["a request that is right", REQUEST, OK],
  // Forms of the body.
  ["a body of bytes", { ...REQUEST, body: bytes }, OK],
  ["a body of a buffer", { ...REQUEST, body: bytes.slice().buffer }, OK],
  ["a body that is a part of a buffer", {
    ...REQUEST,
    body: new Uint8Array([0, ...bytes, 0]).subarray(1, -1),
  }, OK],
  ["another body", { ...REQUEST, body: BODY.replace("ü", "u") }, WRONG],
  ["a body that was parsed and written again", {
    ...REQUEST,
    body: JSON.stringify(JSON.parse(BODY), null, 1),
  }, WRONG],
  ["a line break behind the body", { ...REQUEST, body: `${BODY}\n` }, WRONG],
  ["no body", { ...REQUEST, body: "" }, WRONG],
  // Forms of the headers.
  ["headers of the web", { ...REQUEST, headers: new Headers(HEADERS) }, OK],
  ["headers as pairs", { ...REQUEST, headers: Object.entries(HEADERS) }, OK],
  ["headers as a map", { ...REQUEST, headers: new Map(Object.entries(HEADERS)) }, OK],
  [
    "headers in upper case",
    {
      ...REQUEST,
      headers: Object.fromEntries(Object.entries(HEADERS).map(([name, value]) => [upper(name), value])),
    },
    OK,
  ],
  ["a header in a list of one", withHeader("x-svc-signature", [`sha256=${HEX}`]), OK],
  ["spaces around a header", signed(` sha256=${HEX}\t`), OK],
  [
    "the two headers alone",
    { ...REQUEST, headers: { "X-Svc-Timestamp": `${SENT_AT}`, "X-Svc-Signature": `sha256=${HEX}` } },
    BARE,
  ],
  ["a delivery that came twice is not told", withHeader("x-svc-delivery", [DELIVERY, "b"]), {
    ...BARE,
    event: "agent.reply.completed",
  }],
  // Headers that are missing or too many.
  ["no headers", { ...REQUEST, headers: {} }, missing("x-svc-signature")],
  ["no signature", withHeader("x-svc-signature", undefined), missing("x-svc-signature")],
  ["no timestamp", withHeader("x-svc-timestamp", undefined), missing("x-svc-timestamp")],
  ["two signatures", withHeader("x-svc-signature", [`sha256=${HEX}`, "b"]), duplicate("x-svc-signature")],
  ["the same signature twice", signed(`sha256=${HEX}, sha256=${HEX}`), duplicate("x-svc-signature")],
  ["two timestamps", withHeader("x-svc-timestamp", `${SENT_AT}, ${SENT_AT}`), duplicate("x-svc-timestamp")],
  [
    "two signatures in two cases",
    { ...REQUEST, headers: { ...HEADERS, "X-Svc-Signature": HEADERS["x-svc-signature"] } },
    duplicate("x-svc-signature"),
  ],
  [
    "two signatures as pairs",
    { ...REQUEST, headers: [...Object.entries(HEADERS), ["X-Svc-Signature", "b"] as const] },
    duplicate("x-svc-signature"),
  ],
  // Signatures.
  ["an empty signature", signed(""), MALFORMED],
  ["no prefix", signed(HEX), MALFORMED],
  ["another prefix", signed(`sha1=${HEX}`), MALFORMED],
  ["a prefix in upper case", signed(`SHA256=${HEX}`), MALFORMED],
  ["hex in upper case", signed(`sha256=${upper(HEX)}`), MALFORMED],
  ["a signature too short", signed(`sha256=${HEX.slice(1)}`), MALFORMED],
  ["a signature too long", signed(`sha256=${HEX}0`), MALFORMED],
  ["base64", signed("sha256=K7gNU3sdo+OL0wNhqoVWhr3g6s1xYv72ol/pe/Unols="), MALFORMED],
  ["a form of Standard Webhooks", signed(`v1=${HEX}`), MALFORMED],
  ["another signature", signed(`sha256=${"0".repeat(64)}`), WRONG],
  ["the last digit differs", signed(`sha256=${HEX.slice(0, -1)}${HEX.endsWith("0") ? "1" : "0"}`), WRONG],
  // Secrets.
  ["another secret", { ...REQUEST, secrets: ["whsec_bmV3"] }, WRONG],
  ["the old secret of two", { ...REQUEST, secrets: ["whsec_bmV3", SECRET] }, OK],
  ["the new secret of two", { ...REQUEST, secrets: [SECRET, "whsec_b2xk"] }, OK],
  ["two secrets that are wrong", { ...REQUEST, secrets: ["whsec_bmV3", "whsec_b2xk"] }, WRONG],
  ["a secret without its prefix", { ...REQUEST, secrets: ["c2VjcmV0"] }, WRONG],
  ["a secret that was decoded", { ...REQUEST, secrets: ["secret"] }, WRONG],
  ["an empty secret among others", { ...REQUEST, secrets: ["", SECRET] }, OK],
  ["an empty secret", { ...REQUEST, secrets: [""] }, NO_SECRET],
  ["no secret", { ...REQUEST, secrets: [] }, NO_SECRET],
  // The second signature of a rotation.
  ["another secret signs first", rotating(`sha256=${HEX}`), OK],
  ["one of several other signatures", rotating(`sha256=${"1".repeat(64)}, sha256=${HEX}`), OK],
  ["other signatures in two headers", rotating([`sha256=${"1".repeat(64)}`, `sha256=${HEX}`]), OK],
  ["a wrong other signature", rotating(`sha256=${"1".repeat(64)}`), WRONG],
  ["a malformed other signature", rotating("none"), WRONG],
  ["an empty other signature", rotating(""), WRONG],
  ["an other signature alone", {
    ...REQUEST,
    headers: { "x-svc-timestamp": `${SENT_AT}`, "x-svc-signature-other": `sha256=${HEX}` },
  }, missing("x-svc-signature")],
  // Time, both edges included.
  ["300 seconds late", at(300), OK],
  ["300.999 seconds late", at(300.999), OK],
  ["301 seconds late", at(301), far("too_old", 301)],
  ["300 seconds early", at(-300), OK],
  ["300.001 seconds early", at(-300.001), far("too_new", 301)],
  ["301 seconds early", at(-301), far("too_new", 301)],
  ["a day late", at(86_400), far("too_old", 86_400)],
  ["a tolerance of none", at(0.5, { toleranceSeconds: 0 }), OK],
  ["a tolerance of none, a second late", at(1, { toleranceSeconds: 0 }), far("too_old", 1, 0)],
  ["a tolerance of an hour", at(3_600, { toleranceSeconds: 3_600 }), OK],
  ["a tolerance of an hour, late", at(3_601, { toleranceSeconds: 3_600 }), far("too_old", 3_601, 3_600)],
  ["milliseconds", withHeader("x-svc-timestamp", `${SENT_AT * 1_000}`), {
    ok: false,
    reason: "too_new",
    message: `the timestamp ${SENT_AT * 1_000} is ${
      SENT_AT * 999
    } seconds ahead of the clock; expected at most 300`,
  }],
  ...[
    "",
    "now",
    "-1",
    "1.7e9",
    `${SENT_AT}.5`,
    `0${SENT_AT}`,
    `+${SENT_AT}`,
    "0x10",
    "2023-11-14T22:13:20Z",
    "9".repeat(16),
  ]
    .map((text) =>
      [`the timestamp ${JSON.stringify(text)}`, withHeader("x-svc-timestamp", text), NO_TIME] as const
    ),
  // Two things wrong at the same time: time goes before signature.
  ["late, and wrong", { ...at(301), body: "" }, far("too_old", 301)],
];

/** The headers of Standard Webhooks. */
const STANDARD_TABLE: typeof TABLE = [
  ["a standard signature", standard(), OK],
  [
    "a standard signature in headers of the web",
    standard({}, { headers: new Headers(STANDARD_HEADERS) }),
    OK,
  ],
  ["a standard signature and none of ours", standard({ "x-svc-event": undefined }), {
    ok: true,
    timestamp: SENT_AT,
    delivery: DELIVERY,
  }],
  [
    "ours where the standard one is expected",
    standard({}, { headers: HEADERS }),
    missing("webhook-signature"),
  ],
  [
    "the standard one where ours is expected",
    standard({}, { standardWebhooks: false }),
    missing("x-svc-signature"),
  ],
  ["no standard time", standard({ "webhook-timestamp": undefined }), missing("webhook-timestamp")],
  ["no standard identifier", standard({ "webhook-id": undefined }), missing("webhook-id")],
  ["two standard identifiers", standard({ "webhook-id": [DELIVERY, DELIVERY] }), duplicate("webhook-id")],
  [
    "two headers with standard signatures",
    standard({ "webhook-signature": [`v1,${BASE64}`, `v1,${BASE64}`] }),
    duplicate("webhook-signature"),
  ],
  ["another standard identifier", standard({ "webhook-id": "b" }), WRONG],
  ["a replay with a later time", standard({ "webhook-timestamp": `${SENT_AT + 9}` }), WRONG],
  ["a standard signature of another body", standard({}, { body: `${BODY} ` }), WRONG],
  [
    "several standard signatures",
    standard({ "webhook-signature": `v2,x v1,${"A".repeat(43)}= v1,${BASE64}` }),
    OK,
  ],
  ["a standard signature of another secret", standard({}, { secrets: ["whsec_bmV3"] }), WRONG],
  [
    "the second of two secrets signs in the standard way",
    standard({}, { secrets: ["whsec_bmV3", SECRET] }),
    OK,
  ],
  ["a secret that is no base64 matches nothing", standard({}, { secrets: ["whsec_%", "", SECRET] }), OK],
  ["a standard signature without its version", standard({ "webhook-signature": BASE64 }), NO_STANDARD_FORM],
  [
    "a standard signature of another version",
    standard({ "webhook-signature": `v2,${BASE64}` }),
    NO_STANDARD_FORM,
  ],
  [
    "a standard signature too short",
    standard({ "webhook-signature": `v1,${BASE64.slice(1)}` }),
    NO_STANDARD_FORM,
  ],
  ["hex as a standard signature", standard({ "webhook-signature": `v1,${HEX}` }), NO_STANDARD_FORM],
  ["a standard signature that is late", standard({}, { now: (SENT_AT + 301) * 1_000 }), far("too_old", 301)],
];

/** All of them. */
export const RECEIVER_CASES: readonly ReceiverCase[] = [...TABLE, ...STANDARD_TABLE].map((
  [name, options, expected],
) => ({
  name,
  options,
  expected,
}));

/** The results of all requests, in order. */
export async function receiverResults(): Promise<readonly VerifyResult[]> {
  return await Promise.all(RECEIVER_CASES.map(({ options }) => verify(options)));
}
