import { bodyFlag, type CallFlag, readSeconds, readSecret } from "./administration_flags.ts";

/** Flags that describe how the calls of a trigger are signed. */
export const SIGNATURE_FLAGS = {
  verify: bodyFlag(
    "verify.scheme",
    "SCHEME",
    "require signed calls instead of a key: github, stripe, shopify, standard-webhooks or hmac-sha256",
  ),
  "signature-header": bodyFlag(
    "verify.header",
    "NAME",
    "header of the signature, required with --verify hmac-sha256",
  ),
  "signature-prefix": bodyFlag("verify.prefix", "TEXT", "text before the signature in its header"),
  "signature-encoding": bodyFlag(
    "verify.encoding",
    "ENCODING",
    "encoding of the signature: hex (default) or base64",
  ),
  "timestamp-header": bodyFlag(
    "verify.timestampHeader",
    "NAME",
    "header of the signed time, in seconds since 1970",
  ),
  tolerance: bodyFlag(
    "verify.toleranceSeconds",
    "DURATION",
    "maximum difference between the signed time and the clock (default 5m)",
    { read: readSeconds },
  ),
  "delivery-id-header": bodyFlag(
    "verify.idempotencyHeader",
    "NAME",
    "header whose value is the idempotency key",
  ),
};

/** The file with the secret that the provider of signed calls gives. */
export function secretFileFlag(field: string): CallFlag {
  const doc = "file with the secret of the provider; - for standard input (default: a generated secret)";
  return bodyFlag(field, "FILE", doc, { isFile: true, read: readSecret });
}
