import { createHmac } from "node:crypto";

/** A body that a provider sends, and what it is signed with. */
interface SignedBody {
  readonly secret: string;
  readonly body: string | Uint8Array;
  /** Seconds since the Unix epoch, where the scheme signs a time. */
  readonly timestamp?: number | string;
  /** Of the delivery. */
  readonly id?: string;
}

type Encoding = "hex" | "base64";

function mac(key: string | Uint8Array, parts: readonly (string | Uint8Array)[], encoding: Encoding): string {
  const made = createHmac("sha256", key);
  for (const part of parts) made.update(part);
  return made.digest(encoding);
}

/** The signature of `hmac-sha256` without its prefix. */
export function hmacSignature({ secret, body, timestamp }: SignedBody, encoding: Encoding = "hex"): string {
  return mac(secret, timestamp === undefined ? [body] : [`${timestamp}.`, body], encoding);
}

/** The headers that providers send, made with `node:crypto` as their documentation describes. */
export const PROVIDER_HEADERS = {
  github: ({ secret, body, id = "delivery-1" }: SignedBody) => ({
    "x-hub-signature-256": `sha256=${hmacSignature({ secret, body })}`,
    "x-github-delivery": id,
    "x-github-event": "push",
  }),
  shopify: ({ secret, body, id = "delivery-1" }: SignedBody) => ({
    "x-shopify-hmac-sha256": mac(secret, [body], "base64"),
    "x-shopify-webhook-id": id,
    "x-shopify-topic": "orders/create",
  }),
  stripe: (signed: SignedBody) => ({
    "stripe-signature": `t=${signed.timestamp ?? 0},v1=${hmacSignature({ timestamp: 0, ...signed })}`,
  }),
  "standard-webhooks": ({ secret, body, timestamp = 0, id = "delivery-1" }: SignedBody) => ({
    "webhook-id": id,
    "webhook-timestamp": `${timestamp}`,
    "webhook-signature": `v1,${
      mac(Uint8Array.fromBase64(secret.slice("whsec_".length)), [`${id}.${timestamp}.`, body], "base64")
    }`,
  }),
} as const satisfies Readonly<Record<string, (signed: SignedBody) => Readonly<Record<string, string>>>>;
