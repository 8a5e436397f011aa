import type { Stored } from "./field.ts";
import type {
  CUSTOM_ID,
  CUSTOM_SIGNATURE,
  CUSTOM_TIME,
  TRIGGER_VERIFICATION,
} from "./trigger_verification.ts";

/** The signatures of calls, in the form in which `custom` describes them; headers are in lower case. */
export interface SignatureScheme {
  /** The template of the text that is signed. */
  readonly signed: string;
  /** `hmac-sha256` when absent. `token` and `basic` compare the secret itself; `certificate` has no secret. */
  readonly algorithm?:
    | (typeof TRIGGER_VERIFICATION.algorithm.choices)[number]
    | "token"
    | "basic"
    | "certificate"
    | undefined;
  /** `text` when absent; `base64` behind `whsec_`. */
  readonly secretEncoding?: "text" | "base64" | undefined;
  readonly signature: Stored<typeof CUSTOM_SIGNATURE>;
  /** The field of every item of a list in the body that has the token, in place of a header. */
  readonly shownIn?: { readonly list: string; readonly field: string } | undefined;
  readonly time?: Stored<typeof CUSTOM_TIME> | undefined;
  /** Of the delivery; it is the idempotency key. */
  readonly id?: Stored<typeof CUSTOM_ID> | undefined;
  /** The header of the kind of event, and the kind that only tests the connection. */
  readonly eventHeader?: string | undefined;
  readonly pingEvent?: string | undefined;
}

/** A scheme that a provider defines. */
interface SignaturePreset extends SignatureScheme {
  /** The provider, for people. */
  readonly label: string;
}

const SVIX = {
  signed: "{id}.{time}.{body}",
  secretEncoding: "base64",
  signature: { header: "svix-signature, webhook-signature", prefix: "v1,", encoding: "base64", list: " " },
  time: { header: "svix-timestamp, webhook-timestamp" },
  id: { header: "svix-id, webhook-id" },
} as const satisfies SignatureScheme;
const PARTS_OF_STRIPE = { prefix: "v1=", encoding: "hex", list: "," } as const;

/** The schemes that a provider defines, by name. */
export const SIGNATURE_PRESETS = {
  github: {
    label: "GitHub",
    signed: "{body}",
    signature: { header: "x-hub-signature-256", prefix: "sha256=", encoding: "hex" },
    id: { header: "x-github-delivery" },
    eventHeader: "x-github-event",
    pingEvent: "ping",
  },
  stripe: {
    label: "Stripe",
    signed: "{time}.{body}",
    signature: { ...PARTS_OF_STRIPE, header: "stripe-signature" },
    time: { prefix: "t=" },
    id: { field: "id" },
  },
  shopify: {
    label: "Shopify",
    signed: "{body}",
    signature: { header: "x-shopify-hmac-sha256", encoding: "base64" },
    id: { header: "x-shopify-webhook-id" },
    eventHeader: "x-shopify-topic",
  },
  "standard-webhooks": {
    label: "Standard Webhooks",
    signed: "{id}.{time}.{body}",
    secretEncoding: "base64",
    signature: { header: "webhook-signature", prefix: "v1,", encoding: "base64", list: " " },
    time: { header: "webhook-timestamp" },
    id: { header: "webhook-id" },
  },
  svix: { ...SVIX, label: "Svix" },
  clerk: { ...SVIX, label: "Clerk" },
  resend: { ...SVIX, label: "Resend" },
  slack: {
    label: "Slack",
    signed: "v0:{time}:{body}",
    signature: { header: "x-slack-signature", prefix: "v0=", encoding: "hex" },
    time: { header: "x-slack-request-timestamp" },
    id: { field: "event_id" },
  },
  zoom: {
    label: "Zoom",
    signed: "v0:{time}:{body}",
    signature: { header: "x-zm-signature", prefix: "v0=", encoding: "hex" },
    time: { header: "x-zm-request-timestamp" },
  },
  paddle: {
    label: "Paddle",
    signed: "{time}:{body}",
    signature: { header: "paddle-signature", prefix: "h1=", encoding: "hex", list: ";" },
    time: { prefix: "ts=" },
    id: { field: "event_id" },
  },
  square: {
    label: "Square",
    signed: "{url}{body}",
    signature: { header: "x-square-hmacsha256-signature", encoding: "base64" },
    id: { field: "event_id" },
  },
  calendly: {
    label: "Calendly",
    signed: "{time}.{body}",
    signature: { ...PARTS_OF_STRIPE, header: "calendly-webhook-signature" },
    time: { prefix: "t=" },
  },
  mux: {
    label: "Mux",
    signed: "{time}.{body}",
    signature: { ...PARTS_OF_STRIPE, header: "mux-signature" },
    time: { prefix: "t=" },
    id: { field: "id" },
  },
  pagerduty: {
    label: "PagerDuty",
    signed: "{body}",
    signature: { ...PARTS_OF_STRIPE, header: "x-pagerduty-signature" },
    id: { field: "event.id" },
  },
  linear: {
    label: "Linear",
    signed: "{body}",
    signature: { header: "linear-signature", encoding: "hex" },
    time: { field: "webhookTimestamp", unit: "milliseconds" },
    id: { header: "linear-delivery" },
    eventHeader: "linear-event",
  },
  intercom: {
    label: "Intercom",
    signed: "{body}",
    algorithm: "hmac-sha1",
    signature: { header: "x-hub-signature", prefix: "sha1=", encoding: "hex" },
    id: { field: "id" },
  },
  /** With `timestampHeader`, it signs the time and a colon before the body. */
  grafana: {
    label: "Grafana",
    signed: "{body}",
    signature: { header: "x-grafana-alerting-signature", encoding: "hex" },
  },
  discord: {
    label: "Discord",
    signed: "{time}{body}",
    algorithm: "ed25519",
    signature: { header: "x-signature-ed25519", encoding: "hex" },
    time: { header: "x-signature-timestamp" },
  },
  gitlab: {
    label: "GitLab",
    signed: "{body}",
    algorithm: "token",
    signature: { header: "x-gitlab-token" },
    eventHeader: "x-gitlab-event",
  },
  microsoft: {
    label: "Microsoft Graph",
    signed: "{body}",
    algorithm: "token",
    signature: { header: "" },
    shownIn: { list: "value", field: "clientState" },
  },
  basic: {
    label: "HTTP Basic",
    signed: "{body}",
    algorithm: "basic",
    signature: { header: "authorization", prefix: "Basic " },
  },
  /** `sns_message.ts` has the signed text. */
  sns: {
    label: "Amazon SNS",
    signed: "{body}",
    algorithm: "certificate",
    signature: { header: "" },
    time: { field: "Timestamp" },
    id: { field: "MessageId" },
  },
} as const satisfies Readonly<Record<string, SignaturePreset>>;
