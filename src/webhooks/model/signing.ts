import { createHmac } from "node:crypto";
import { SECRET_PREFIX, SIGNATURE_PREFIX } from "./signature.ts";

/** What the headers of Standard Webhooks sign. */
export interface StandardWebhooksOptions {
  /** Of the delivery, the same on every attempt. */
  readonly id: string;
  /** When the attempt is sent. */
  readonly timestampSeconds: number;
  readonly body: Uint8Array;
  /** With its prefix. */
  readonly secret: string;
}

/** As `signature`, without a thread of Web Crypto, which takes longer than the signature of a usual body. */
export function bodySignature(secret: string, body: Uint8Array): string {
  return SIGNATURE_PREFIX + createHmac("sha256", secret).update(body).digest("hex");
}

/**
 * The headers of Standard Webhooks, which sign the identifier and the time as well. The key is the secret without its
 * prefix, decoded from base64; throws a `TypeError` when that is impossible.
 */
export function standardWebhooksHeaders(
  { id, timestampSeconds, body, secret }: StandardWebhooksOptions,
): Record<string, string> {
  const hmac = createHmac("sha256", secretBytes(secret)).update(`${id}.${timestampSeconds}.`).update(body);
  return {
    "webhook-id": id,
    "webhook-timestamp": `${timestampSeconds}`,
    "webhook-signature": `v1,${hmac.digest("base64")}`,
  };
}

function secretBytes(secret: string): Uint8Array {
  const text = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : undefined;
  let bytes = new Uint8Array();
  try {
    bytes = Uint8Array.fromBase64(text ?? "");
  } catch {
    // It may be a secret all the same, and is not shown.
  }
  if (bytes.length === 0) {
    throw new TypeError(`Cannot sign with a secret: expected "${SECRET_PREFIX}" followed by base64`);
  }
  return bytes;
}
