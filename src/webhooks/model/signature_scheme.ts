import type { TRIGGER_VERIFICATION } from "../resources/trigger_verification.ts";
import type { TriggerVerification } from "./records.ts";

/** An algorithm of signatures. */
export type SignatureAlgorithm = (typeof TRIGGER_VERIFICATION.algorithm.choices)[number];

/** The signatures of calls, in the form in which `custom` describes them; headers are in lower case. */
export interface SignatureScheme {
  /** The template of the text that is signed. */
  readonly signed: string;
  /** `hmac-sha256` when absent. */
  readonly algorithm?: SignatureAlgorithm | undefined;
  /** `text` when absent; `base64` behind `whsec_`. */
  readonly secretEncoding?: "text" | "base64" | undefined;
  readonly signature: NonNullable<TriggerVerification["signature"]>;
  readonly time?: TriggerVerification["time"];
  /** Of the delivery; it is the idempotency key. */
  readonly id?: TriggerVerification["id"];
  /** The header of the kind of event, and the kind that only tests the connection. */
  readonly eventHeader?: string | undefined;
  readonly pingEvent?: string | undefined;
}

/** Names of the schemes that a provider defines. */
type Preset = Exclude<TriggerVerification["scheme"], "hmac-sha256" | "custom">;

const PRESETS: Readonly<Record<Preset, SignatureScheme>> = {
  github: {
    signed: "{body}",
    signature: { header: "x-hub-signature-256", prefix: "sha256=", encoding: "hex" },
    id: { header: "x-github-delivery" },
    eventHeader: "x-github-event",
    pingEvent: "ping",
  },
  stripe: {
    signed: "{time}.{body}",
    signature: { header: "stripe-signature", prefix: "v1=", encoding: "hex", list: "," },
    time: { prefix: "t=" },
    id: { field: "id" },
  },
  shopify: {
    signed: "{body}",
    signature: { header: "x-shopify-hmac-sha256", encoding: "base64" },
    id: { header: "x-shopify-webhook-id" },
    eventHeader: "x-shopify-topic",
  },
  "standard-webhooks": {
    signed: "{id}.{time}.{body}",
    secretEncoding: "base64",
    signature: { header: "webhook-signature", prefix: "v1,", encoding: "base64", list: " " },
    time: { header: "webhook-timestamp" },
    id: { header: "webhook-id" },
  },
};

/** The scheme of a trigger. */
export function schemeOf(verification: TriggerVerification): SignatureScheme {
  const { scheme, header = "", prefix, encoding = "hex", timestampHeader, idempotencyHeader } = verification;
  if (scheme === "custom") {
    const { signed = "{body}", algorithm, secretEncoding, signature = { header: "" }, time, id } =
      verification;
    return { signed, algorithm, secretEncoding, signature, time, id };
  }
  if (scheme !== "hmac-sha256") return PRESETS[scheme];
  return {
    signed: timestampHeader === undefined ? "{body}" : "{time}.{body}",
    signature: { header, prefix, encoding },
    ...(timestampHeader === undefined ? {} : { time: { header: timestampHeader } }),
    ...(idempotencyHeader === undefined ? {} : { id: { header: idempotencyHeader } }),
  };
}

/** The names in a list of alternative headers. */
export function headerNames(header: string | undefined): readonly string[] {
  return header === undefined ? [] : header.split(", ");
}
