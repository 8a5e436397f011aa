import { Buffer } from "node:buffer";
import { createHmac, createPrivateKey, createPublicKey, sign } from "node:crypto";
import type { TriggerVerification } from "../../src/webhooks/model/records.ts";

/** A call that a scheme accepts. */
export interface SignatureVector {
  readonly scheme: TriggerVerification["scheme"];
  /** The page with the example and its secret; absent where the provider has published no secret. */
  readonly source?: string;
  readonly secret: string;
  readonly header?: string;
  readonly prefix?: string;
  readonly timestampHeader?: string;
  readonly publicUrl?: string;
  readonly target?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Seconds since the Unix epoch. */
  readonly at: number;
}

const FILE = new URL("../testdata/signature_vectors.json", import.meta.url);

function hmac(secret: string, text: string, encoding: "hex" | "base64" = "hex", hash = "sha256"): string {
  return createHmac(hash, secret).update(text).digest(encoding);
}

const SLACK =
  "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V" +
  "&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=" +
  "&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" +
  "&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
const SQUARE = '{"merchant_id":"MLEFBHHSJGVHD","type":"webhooks.test_notification",' +
  '"event_id":"ac3ac95b-f97d-458c-a6e6-18981597e05f","created_at":"2022-07-13T20:30:59.037339943Z",' +
  '"data":{"type":"webhooks","id":"bc368e64-01aa-407e-b46e-3231809b1129"}}';
const GRAPH = '{"value":[{"id":"lsgTZMr9KwAAA","subscriptionId":"7f105c7d-2dc5-4530-97cd-4e7ae6534c07",' +
  '"subscriptionExpirationDateTime":"2016-03-19T22:11:09.952Z","clientState":"secretClientValue",' +
  '"changeType":"created","resource":"users/1@2/messages/3","tenantId":"84bd8158-6d4d-4958-8b9f-9d6445542f95",' +
  '"resourceData":{"@odata.type":"#Microsoft.Graph.Message","id":"3"}}]}';
const SVIX = {
  secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
  body: '{"test": 2432232314}',
  at: 1614265330,
};
const SVIX_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const svix = (prefix: string) => ({
  [`${prefix}-id`]: "msg_p5jXN8AQM9LWM0D4loKWxJek",
  [`${prefix}-timestamp`]: "1614265330",
  [`${prefix}-signature`]: SVIX_SIGNATURE,
});

const PUBLISHED: readonly SignatureVector[] = [
  {
    scheme: "microsoft",
    source: "learn.microsoft.com, Receive change notifications through webhooks",
    secret: "secretClientValue",
    headers: {},
    body: GRAPH,
    at: 0,
  },
  {
    scheme: "github",
    source: "docs.github.com, Validating webhook deliveries",
    secret: "It's a Secret to Everybody",
    headers: {
      "x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    },
    body: "Hello, World!",
    at: 0,
  },
  {
    scheme: "standard-webhooks",
    source: "docs.svix.com, Verifying webhooks manually",
    ...SVIX,
    headers: svix("webhook"),
  },
  { scheme: "svix", source: "docs.svix.com, Verifying webhooks manually", ...SVIX, headers: svix("svix") },
  {
    scheme: "svix",
    source: "docs.svix.com, with the headers of Standard Webhooks",
    ...SVIX,
    headers: svix("webhook"),
  },
  { scheme: "clerk", source: "docs.svix.com, Verifying webhooks manually", ...SVIX, headers: svix("svix") },
  { scheme: "resend", source: "docs.svix.com, Verifying webhooks manually", ...SVIX, headers: svix("svix") },
  {
    scheme: "slack",
    source: "api.slack.com, Verifying requests from Slack",
    secret: "8f742231b10e8888abcd99yyyzzz85a5",
    headers: {
      "x-slack-request-timestamp": "1531420618",
      "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    },
    body: SLACK,
    at: 1531420618,
  },
  {
    scheme: "square",
    source: "github.com/square/square-nodejs-sdk, tests of webhooksHelper",
    secret: "Ibxx_5AKakO-3qeNVR61Dw",
    publicUrl: "https://webhook.site",
    target: "/679a4f3a-dcfa-49ee-bac5-9d0edad886b9",
    headers: { "x-square-hmacsha256-signature": "GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4=" },
    body: SQUARE,
    at: 0,
  },
  {
    scheme: "mux",
    source: "github.com/muxinc/mux-node-sdk, tests of verify_header, by the back end of Mux",
    secret: "SuperSecret123",
    headers: {
      "mux-signature": "t=1565125718,v1=854ece4c22acef7c66b57d4e504153bc512595e8e9c772ece2a68150548c19a7",
    },
    body: '{"test":"body"}',
    at: 1565125718,
  },
];

const secret = "a secret that no provider has published";
const at = 1700000000;
const body = '{"id":"evt_1","text":"h\u00e9llo \u{1F600}","webhookTimestamp":1700000000123}';
const timed = (separator: string) => hmac(secret, `${at}${separator}${body}`);
// The seed of the first test of RFC 8032, section 7.1.
const seed = Buffer.from("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60", "hex");
const der = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
const publicKey = createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-32).toString("hex");

const headersOf = {
  stripe: { "stripe-signature": `t=${at},v1=${timed(".")}` },
  shopify: { "x-shopify-hmac-sha256": hmac(secret, body, "base64") },
  zoom: { "x-zm-request-timestamp": `${at}`, "x-zm-signature": `v0=${hmac(secret, `v0:${at}:${body}`)}` },
  paddle: { "paddle-signature": `ts=${at};h1=${timed(":")}` },
  calendly: { "calendly-webhook-signature": `t=${at},v1=${timed(".")}` },
  pagerduty: { "x-pagerduty-signature": `v1=${"0".repeat(64)},v1=${hmac(secret, body)}` },
  linear: { "linear-signature": hmac(secret, body) },
  intercom: { "x-hub-signature": `sha1=${hmac(secret, body, "hex", "sha1")}` },
  grafana: { "x-grafana-alerting-signature": hmac(secret, body) },
  gitlab: { "x-gitlab-token": secret },
};
const COMPUTED = Object.entries(headersOf).map(([scheme, headers]) => {
  return { scheme: scheme as keyof typeof headersOf, secret, headers, body, at };
});
const MORE: readonly SignatureVector[] = [
  {
    scheme: "grafana",
    timestampHeader: "x-grafana-alerting-timestamp",
    secret,
    headers: { "x-grafana-alerting-timestamp": `${at}`, "x-grafana-alerting-signature": timed(":") },
    body,
    at,
  },
  {
    scheme: "discord",
    secret: publicKey,
    headers: {
      "x-signature-timestamp": `${at}`,
      "x-signature-ed25519": sign(null, Buffer.from(`${at}${body}`), key).toString("hex"),
    },
    body,
    at,
  },
  {
    scheme: "token",
    header: "x-token",
    prefix: "Token ",
    secret,
    headers: { "x-token": `Token ${secret}` },
    body,
    at,
  },
  {
    scheme: "basic",
    source: "RFC 7617, section 2",
    secret: "Aladdin:open sesame",
    headers: { authorization: "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==" },
    body,
    at,
  },
  {
    scheme: "basic",
    source: "RFC 7617, section 2.1, with the user and password of UTF-8",
    secret: "test:123\u00a3",
    headers: { authorization: "basic dGVzdDoxMjPCow==" },
    body,
    at,
  },
];

/** The vectors in their file. */
export async function storedSignatureVectors(): Promise<readonly SignatureVector[]> {
  return JSON.parse(await Deno.readTextFile(FILE));
}

/** The vectors that were published, and those that `node:crypto` makes as the provider documents. */
export const SIGNATURE_VECTORS: readonly SignatureVector[] = [...PUBLISHED, ...COMPUTED, ...MORE];

// `deno run -A tests/harness/signature_vectors.ts` writes the file.
if (import.meta.main) await Deno.writeTextFile(FILE, `${JSON.stringify(SIGNATURE_VECTORS, null, 2)}\n`);
