import { SIGNATURE_PRESETS, type SignatureScheme } from "../resources/signature_presets.ts";
import type { TriggerVerification } from "./records.ts";

/** The scheme of a trigger. */
export function schemeOf(verification: TriggerVerification): SignatureScheme {
  const { scheme, header = "", prefix, encoding, timestampHeader, idempotencyHeader } = verification;
  const time = timestampHeader === undefined ? {} : { time: { header: timestampHeader } };
  const id = idempotencyHeader === undefined ? {} : { id: { header: idempotencyHeader } };
  switch (scheme) {
    case "custom":
      return customScheme(verification);
    case "hmac-sha256":
      return {
        signed: timestampHeader === undefined ? "{body}" : "{time}.{body}",
        signature: { header, prefix, encoding },
        ...time,
        ...id,
      };
    case "token":
      return { signed: "{body}", algorithm: "token", signature: { header, prefix }, ...id };
    case "grafana": {
      const preset = SIGNATURE_PRESETS.grafana;
      return timestampHeader === undefined ? preset : { ...preset, signed: "{time}:{body}", ...time };
    }
    default:
      return SIGNATURE_PRESETS[scheme];
  }
}

/** A stored one has a template and a header. */
function customScheme(
  { signed = "{body}", signature = { header: "" }, ...other }: TriggerVerification,
): SignatureScheme {
  const { algorithm, secretEncoding, time, id } = other;
  return { signed, algorithm, secretEncoding, signature, time, id };
}

/** The names in a list of alternative headers. */
export function headerNames(header: string | undefined): readonly string[] {
  return header === undefined ? [] : header.split(", ");
}
