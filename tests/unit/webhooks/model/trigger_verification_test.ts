import { assert, assertEquals } from "#assert";
import { Webhook } from "standardwebhooks";
import type { TriggerVerification } from "../../../../src/webhooks/model/records.ts";
import { deliveryIdOf, eventOf, isPing } from "../../../../src/webhooks/model/signed_delivery.ts";
import {
  SIGNATURE_REFUSALS,
  type SignatureRefusal,
  signatureRefusal,
} from "../../../../src/webhooks/model/trigger_verification.ts";
import { hmacSignature, PROVIDER_HEADERS } from "../../../harness/provider_signatures.ts";

const NOW_SECONDS = 1_700_000_000;
const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY = '{"id":"evt_1","n":1}';

interface Given {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly secrets?: readonly string[];
  readonly nowSeconds?: number;
}

function refusalOf(verification: TriggerVerification, given: Given): Promise<SignatureRefusal | undefined> {
  const { headers, body = BODY, secrets = [SECRET], nowSeconds = NOW_SECONDS } = given;
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const call = { headers: new Map(Object.entries(headers)), body: bytes };
  return signatureRefusal(verification, call, { secrets, now: nowSeconds * 1_000 + 999 });
}

const GITHUB = { scheme: "github" } as const;
const SHOPIFY = { scheme: "shopify" } as const;
const STRIPE = { scheme: "stripe", toleranceSeconds: 300 } as const;
const STANDARD = { scheme: "standard-webhooks", toleranceSeconds: 300 } as const;
const PLAIN = { scheme: "hmac-sha256", header: "x-sign", prefix: "v1:", encoding: "base64" } as const;
const TIMED = {
  scheme: "hmac-sha256",
  header: "x-sign",
  encoding: "hex",
  timestampHeader: "x-time",
  toleranceSeconds: 60,
} as const;

Deno.test("signed triggers: the examples of the providers' documentation", async () => {
  const github = {
    headers: {
      "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    },
    body: "Hello, World!",
    secrets: ["It's a Secret to Everybody"],
  };
  assertEquals(await refusalOf(GITHUB, github), undefined);
  assertEquals(await refusalOf(GITHUB, { ...github, body: "Hello, World?" }), "wrong_signature");

  const specification = {
    headers: {
      "webhook-id": "msg_loFOjxBNrRLzqYUf",
      "webhook-timestamp": "1731705121",
      "webhook-signature": "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
    },
    body: '{"event_type":"ping","data":{"success":true}}',
    secrets: ["whsec_plJ3nmyCDGBKInavdOK15jsl"],
    nowSeconds: 1_731_705_121,
  };
  assertEquals(await refusalOf(STANDARD, specification), undefined);
  const svix = {
    headers: {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    body: '{"test": 2432232314}',
    secrets: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    nowSeconds: 1_614_265_330,
  };
  assertEquals(await refusalOf(STANDARD, svix), undefined);

  // Stripe documents the form of the header without the secret.
  const stripe = "t=1492774577,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd," +
    "v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39";
  const read = { headers: { "stripe-signature": stripe }, nowSeconds: 1_492_774_577 };
  assertEquals(await refusalOf(STRIPE, read), "wrong_signature");
});

Deno.test("signed triggers: what npm:standardwebhooks signs is accepted", async () => {
  const at = new Date(NOW_SECONDS * 1_000);
  const headers = {
    "webhook-id": "msg_1",
    "webhook-timestamp": `${NOW_SECONDS}`,
    "webhook-signature": new Webhook(SECRET).sign("msg_1", at, BODY),
  };
  assertEquals(await refusalOf(STANDARD, { headers }), undefined);
  assertEquals(
    await refusalOf(STANDARD, { headers: { ...headers, "webhook-id": "msg_2" } }),
    "wrong_signature",
  );
});

/** A call without any fault, by scheme. */
const GOOD: readonly (readonly [TriggerVerification, Record<string, string>])[] = [
  [GITHUB, PROVIDER_HEADERS.github({ secret: SECRET, body: BODY })],
  [SHOPIFY, PROVIDER_HEADERS.shopify({ secret: SECRET, body: BODY })],
  [STRIPE, PROVIDER_HEADERS.stripe({ secret: SECRET, body: BODY, timestamp: NOW_SECONDS })],
  [STANDARD, PROVIDER_HEADERS["standard-webhooks"]({ secret: SECRET, body: BODY, timestamp: NOW_SECONDS })],
  [PLAIN, { "x-sign": `v1:${hmacSignature({ secret: SECRET, body: BODY }, "base64")}` }],
  [TIMED, {
    "x-sign": hmacSignature({ secret: SECRET, body: BODY, timestamp: NOW_SECONDS }),
    "x-time": `${NOW_SECONDS}`,
  }],
];

Deno.test("signed triggers: every scheme accepts its own calls, and refuses each abuse of them", async () => {
  for (const [verification, headers] of GOOD) {
    const { scheme } = verification;
    const [name = "", value = ""] = Object.entries(headers).find(([, one]) => /[0-9a-f]{64}|=$/.test(one)) ??
      [];
    const digest = /[0-9a-f]{64}$|[A-Za-z0-9+/]{43}=$/.exec(value)?.[0] ?? "";
    const withValue = (text: string) => ({ ...headers, [name]: text });
    const replaced = (text: string) => withValue(value.replace(digest, () => text));
    const bytes = digest.length === 64 ? Uint8Array.fromHex(digest) : Uint8Array.fromBase64(digest);
    const other = digest.length === 64 ? bytes.toBase64() : bytes.toHex();
    const { [name]: _, ...unsigned } = headers;
    const table: readonly (readonly [string, Given, SignatureRefusal | undefined])[] = [
      ["a good call", { headers }, undefined],
      ["the second of two secrets", { headers, secrets: ["whsec_b3RoZXI=", SECRET] }, undefined],
      ["the first of two secrets", { headers, secrets: [SECRET, "whsec_b3RoZXI="] }, undefined],
      ["another secret", { headers, secrets: ["whsec_b3RoZXI="] }, "wrong_signature"],
      ["no secret", { headers, secrets: [] }, "no_secret"],
      ["a body that a proxy changed", { headers, body: `${BODY} ` }, "wrong_signature"],
      ["a body with a BOM in front", { headers, body: `\ufeff${BODY}` }, "wrong_signature"],
      ["an empty body", { headers, body: "" }, "wrong_signature"],
      ["no signature", { headers: unsigned }, "missing_header"],
      ["an empty signature", { headers: withValue("") }, "malformed_header"],
      ["a signature that is too short", { headers: replaced(digest.slice(0, -2)) }, "malformed_header"],
      ["a signature that is too long", { headers: replaced(`${digest}ab`) }, "malformed_header"],
      ["a signature in another encoding", { headers: replaced(other) }, "malformed_header"],
      ["the header twice", { headers: withValue(`${value}, ${value}`) }, "malformed_header"],
      ["the header twice, at first wrong", {
        headers: withValue(`${value.replace(digest, "x")}, ${value}`),
      }, "malformed_header"],
      ["a huge header", { headers: withValue(`${value},v2=${"x".repeat(60_000)}`) }, "malformed_header"],
    ];
    for (const [what, given, expected] of table) {
      assertEquals(await refusalOf(verification, given), expected, `${scheme}: ${what}`);
    }
    const flipped = bytes.map((byte, index) => index === 31 ? byte ^ 1 : byte);
    const text = digest.length === 64 ? flipped.toHex() : flipped.toBase64();
    assertEquals(await refusalOf(verification, { headers: replaced(text) }), "wrong_signature", scheme);
  }
});

Deno.test("signed triggers: a signed time is checked, to the second", async () => {
  const at = (seconds: number | string) => ({
    stripe: { headers: PROVIDER_HEADERS.stripe({ secret: SECRET, body: BODY, timestamp: seconds }) },
    standard: {
      headers: PROVIDER_HEADERS["standard-webhooks"]({ secret: SECRET, body: BODY, timestamp: seconds }),
    },
    timed: {
      headers: {
        "x-sign": hmacSignature({ secret: SECRET, body: BODY, timestamp: seconds }),
        "x-time": `${seconds}`,
      },
    },
  });
  for (
    const [scheme, verification] of [["stripe", STRIPE], ["standard", STANDARD], ["timed", TIMED]] as const
  ) {
    const { toleranceSeconds: tolerance } = verification;
    const table = [
      [NOW_SECONDS - tolerance, undefined],
      [NOW_SECONDS + tolerance, undefined],
      [NOW_SECONDS - tolerance - 1, "too_old"],
      [NOW_SECONDS + tolerance + 1, "too_new"],
      [`${NOW_SECONDS}000`, "too_new"],
      [`0${NOW_SECONDS}`, "malformed_timestamp"],
      [`${NOW_SECONDS}.0`, "malformed_timestamp"],
      [`${NOW_SECONDS}e0`, "malformed_timestamp"],
      ["-1", "malformed_timestamp"],
    ] as const;
    for (const [seconds, expected] of table) {
      assertEquals(await refusalOf(verification, at(seconds)[scheme]), expected, `${scheme}: ${seconds}`);
    }
  }
  const { headers } = at(NOW_SECONDS).timed;
  const { "x-time": _, ...without } = headers;
  assertEquals(await refusalOf(TIMED, { headers: without }), "missing_header");
  const twice = { ...headers, "x-time": `${NOW_SECONDS}, ${NOW_SECONDS}` };
  assertEquals(await refusalOf(TIMED, { headers: twice }), "malformed_timestamp");
  // The time is part of what is signed.
  const later = { ...headers, "x-time": `${NOW_SECONDS + 1}` };
  assertEquals(await refusalOf(TIMED, { headers: later }), "wrong_signature");
});

Deno.test("signed triggers: several signatures in one header, as while a provider rotates its secret", async () => {
  const good = hmacSignature({ secret: SECRET, body: BODY, timestamp: NOW_SECONDS });
  const bad = "0".repeat(64);
  const stripe: readonly (readonly [string, SignatureRefusal | undefined])[] = [
    [`t=${NOW_SECONDS},v1=${bad},v1=${good}`, undefined],
    [`v1=${good},v1=${bad},t=${NOW_SECONDS}`, undefined],
    [`t=${NOW_SECONDS},v1=short,v1=${good},v2=new`, undefined],
    [`t=${NOW_SECONDS},v0=${good}`, "malformed_header"],
    [`t=${NOW_SECONDS},v1=${bad}`, "wrong_signature"],
    [`t=1,t=${NOW_SECONDS},v1=${good}`, "malformed_header"],
    [`v1=${good}`, "malformed_header"],
    [`t=${NOW_SECONDS},v1=${good},`, "malformed_header"],
    [`t=${NOW_SECONDS}, v1=${good}`, "malformed_header"],
    [`t=${NOW_SECONDS},v1==${good}`, "malformed_header"],
    [`t=${NOW_SECONDS}${`,v1=${bad}`.repeat(16)},v1=${good}`, "malformed_header"],
  ];
  for (const [header, expected] of stripe) {
    const headers = { "stripe-signature": header };
    assertEquals(await refusalOf(STRIPE, { headers }), expected, header);
  }
  const signed = { secret: SECRET, body: BODY, timestamp: NOW_SECONDS };
  const standard = PROVIDER_HEADERS["standard-webhooks"](signed);
  const one = standard["webhook-signature"];
  const zero = `v1,${new Uint8Array(32).toBase64()}`;
  const list: readonly (readonly [string, SignatureRefusal | undefined])[] = [
    [`${zero} ${one}`, undefined],
    [`v1a,abc= ${one}`, undefined],
    [zero, "wrong_signature"],
    [one.replace("v1,", "v2,"), "malformed_header"],
    [one.replace("v1,", ""), "malformed_header"],
    [`${one}  ${one}`, "malformed_header"],
  ];
  for (const [header, expected] of list) {
    const headers = { ...standard, "webhook-signature": header };
    assertEquals(await refusalOf(STANDARD, { headers }), expected, header);
  }
});

Deno.test("signed triggers: hex may be in upper case, base64 has one form only", async () => {
  const hex = { "x-hub-signature-256": GOOD[0]?.[1]["x-hub-signature-256"] ?? "" };
  const upper = hex["x-hub-signature-256"].replace(/[0-9a-f]{64}$/, (digits) => digits.toUpperCase());
  assertEquals(await refusalOf(GITHUB, { headers: { "x-hub-signature-256": upper } }), undefined);
  const base64 = GOOD[1]?.[1]["x-shopify-hmac-sha256"] ?? "";
  for (const text of [base64.replace("=", ""), ` ${base64}`, base64.replace(/.=$/, "/=")]) {
    const refusal = await refusalOf(SHOPIFY, { headers: { "x-shopify-hmac-sha256": text } });
    assert(refusal === "malformed_header" || refusal === "wrong_signature", text);
  }
});

Deno.test("signed triggers: every reason is named once", () => {
  assertEquals(new Set(Object.values(SIGNATURE_REFUSALS)).size, Object.keys(SIGNATURE_REFUSALS).length);
});

Deno.test("signed triggers: the kind of event is that of the provider's header, if it has a sensible length", () => {
  const table: readonly (readonly [TriggerVerification, string, string, string | undefined])[] = [
    [GITHUB, "x-github-event", "push", "push"],
    [SHOPIFY, "x-shopify-topic", "orders/create", "orders/create"],
    [GITHUB, "x-github-event", "", undefined],
    [GITHUB, "x-github-event", "x".repeat(129), undefined],
    [GITHUB, "x-shopify-topic", "push", undefined],
    [STRIPE, "x-github-event", "push", undefined],
  ];
  for (const [verification, name, value, expected] of table) {
    assertEquals(eventOf(verification, new Map([[name, value]])), expected);
  }
});

Deno.test("signed triggers: the identifier of a delivery, and the ping of GitHub", () => {
  const generic = { ...PLAIN, idempotencyHeader: "x-id" } as const;
  const table: readonly (readonly [TriggerVerification, Record<string, string>, string | undefined])[] = [
    [GITHUB, { "x-github-delivery": "a" }, "a"],
    [GITHUB, {}, undefined],
    [SHOPIFY, { "x-shopify-webhook-id": "a" }, "a"],
    [STRIPE, { "idempotency-key": "b" }, "evt_1"],
    [STANDARD, { "webhook-id": "a", "idempotency-key": "b" }, "a"],
    [generic, { "x-id": "a" }, "a"],
    [PLAIN, { "x-id": "a" }, undefined],
  ];
  for (const [verification, headers, expected] of table) {
    const id = deliveryIdOf(verification, new Map(Object.entries(headers)), { id: "evt_1" });
    assertEquals(id, expected, verification.scheme);
  }
  for (const input of [{}, { id: 1 }, { id: null }, Object.create({ id: "inherited" })]) {
    assertEquals(deliveryIdOf(STRIPE, new Map(), input), undefined);
  }
  const ping = new Map([["x-github-event", "ping"]]);
  assertEquals([GITHUB, SHOPIFY, STRIPE, PLAIN].map((one) => isPing(one, ping)), [true, false, false, false]);
  assertEquals(isPing(GITHUB, new Map([["x-github-event", "push"]])), false);
});
