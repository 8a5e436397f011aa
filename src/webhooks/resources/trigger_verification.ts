import type { Fields } from "./field.ts";

/** Largest difference between a signed time and the clock, for a trigger that does not set it. */
export const DEFAULT_TOLERANCE_SECONDS = 300;
/** Amazon SNS repeats a message with its first time for at most an hour. */
export const SNS_TOLERANCE_SECONDS = 3_600;
/** Longest template of a signed text. */
const MAX_SIGNED_LENGTH = 256;

const HEADER = { type: "header", set: "always", shown: "sometimes" } as const;
const SOME = { set: "always", shown: "sometimes" } as const;
/** Alternatives, such as the old and the new name. */
const MAX_HEADERS = 4;
const HEADERS = { ...HEADER, max: MAX_HEADERS } as const;
const PREFIX = {
  ...SOME,
  type: "text",
  pattern: "^[ -~]{0,64}$",
  expected: "at most 64 printable ASCII characters",
} as const;
const FIELD_PATH = {
  ...SOME,
  type: "text",
  pattern: "^[A-Za-z0-9_-]{1,64}(?:\\.[A-Za-z0-9_-]{1,64}){0,3}$",
  expected: "a path such as id or event.id",
} as const;

/** The ARN of a topic of Amazon SNS, with its partition and its region. */
export const SNS_TOPIC =
  "^arn:(aws|aws-cn|aws-us-gov):sns:([a-z]{2}(?:-[a-z]{1,16}){1,2}-[0-9]{1,2}):[0-9]{12}:[A-Za-z0-9_-]{1,256}$";

/** Names of schemes: those of `SIGNATURE_PRESETS`, and those with fields that describe them. */
const SCHEMES = [
  ...["github", "stripe", "shopify", "standard-webhooks", "hmac-sha256", "custom"] as const,
  ...["svix", "clerk", "resend", "slack", "zoom", "paddle", "square", "calendly", "mux"] as const,
  ...["pagerduty", "linear", "intercom", "grafana", "discord", "gitlab", "microsoft"] as const,
  ...["token", "basic", "sns"] as const,
] as const;

/** The header of signatures that `custom` describes. */
export const CUSTOM_SIGNATURE = {
  header: {
    ...HEADERS,
    words: "The header of the signature, or up to 4 alternative names separated by commas.",
    isRequired: true,
  },
  prefix: {
    ...PREFIX,
    words: "The text before the signature in its header, or before each signature of a list.",
  },
  encoding: {
    ...SOME,
    type: "choice",
    choices: ["hex", "base64", "base64url"],
    words: "The encoding of the signature, `hex` (default), `base64` or `base64url`.",
  },
  list: {
    ...SOME,
    type: "text",
    pattern: "^(?:[,;|] ?| )$",
    expected: 'a separator: ",", ";", "|" or " "',
    words: "The separator of a header that may have several signatures: `,`, `;`, `|` or a space.",
    flag: "signature-list",
    value: "SEPARATOR",
    help: "separator of a header that may have several signatures; only with custom",
    label: "Separator of several signatures",
    hint: "Such as a comma; one signature when empty",
  },
} as const satisfies Fields;

/** The signed time of `custom`. */
export const CUSTOM_TIME = {
  header: { ...HEADERS, words: "The header of the time, or up to 4 alternative names separated by commas." },
  prefix: {
    ...PREFIX,
    words: "The text before the time in the list of signatures, such as `t=`.",
    flag: "timestamp-prefix",
    help: "text before the time in the list of signatures; only with custom",
    label: "Text before the time in the list of signatures",
  },
  field: {
    ...FIELD_PATH,
    words: "The field of the body with the time, such as `sent_at`.",
    flag: "timestamp-field",
    value: "PATH",
    help: "field of the body with the time; only with custom",
    label: "Field of the body with the time",
  },
  unit: {
    ...SOME,
    type: "choice",
    choices: ["seconds", "milliseconds"],
    words: "The unit of the time since the Unix epoch, `seconds` (default) or `milliseconds`.",
    flag: "timestamp-unit",
    value: "UNIT",
    help: "unit of the time, seconds (default) or milliseconds; only with custom",
    label: "Unit of the time",
  },
} as const satisfies Fields;

/** The delivery's identifier of `custom`. */
export const CUSTOM_ID = {
  header: {
    ...HEADERS,
    words: "The header of the identifier, or up to 4 alternative names separated by commas.",
  },
  field: {
    ...FIELD_PATH,
    words: "The field of the body with the identifier, such as `event.id`.",
    flag: "delivery-id-field",
    value: "PATH",
    help: "field of the body with the idempotency key; only with custom",
    label: "Field of the body with the delivery's identifier",
  },
} as const satisfies Fields;

/** The places in `custom` of the fields that `hmac-sha256` has itself: people set both by the same flags and inputs. */
export const CUSTOM_PLACES: Readonly<Record<string, string>> = {
  header: "signature.header",
  prefix: "signature.prefix",
  encoding: "signature.encoding",
  timestampHeader: "time.header",
  idempotencyHeader: "id.header",
};

/** The signatures of calls. Only `hmac-sha256` has the fields of headers, of the prefix and of the encoding. */
export const TRIGGER_VERIFICATION = {
  scheme: {
    type: "choice",
    choices: SCHEMES,
    words: "Scheme of the signature. It cannot be changed later.",
    set: "always",
    isRequired: true,
    flag: "verify",
    value: "SCHEME",
    help: "require signed calls instead of a key",
    label: "Callers prove themselves with",
  },
  header: {
    ...HEADER,
    words: "The header of the signature; only with `hmac-sha256`, or of the secret with `token`.",
    flag: "signature-header",
    help: "header of the signature or token; only with hmac-sha256, custom and token",
    label: "Header of the signature",
  },
  prefix: {
    ...PREFIX,
    words: "The text before the signature in its header; only with `hmac-sha256` and `token`.",
    flag: "signature-prefix",
    help: "text before the signature in its header; only with hmac-sha256, custom and token",
    label: "Text before the signature",
    hint: "Such as sha256=",
  },
  encoding: {
    ...SOME,
    type: "choice",
    choices: ["hex", "base64"],
    words: "The encoding of the signature, `hex` (default) or `base64`; only with `hmac-sha256`.",
    flag: "signature-encoding",
    value: "ENCODING",
    help: "encoding of the signature, hex (default), base64, or with custom base64url",
    label: "Encoding",
  },
  timestampHeader: {
    ...HEADER,
    words:
      "The header of the time in seconds since the Unix epoch; only with `hmac-sha256` and `grafana`. The signature then covers this time, a period (`grafana`: a colon) and the body.",
    flag: "timestamp-header",
    help: "header of the signed time; only with hmac-sha256, custom and grafana",
    label: "Header of the signed time",
    hint: "Then the signature covers the time too",
  },
  toleranceSeconds: {
    type: "seconds",
    words:
      `Maximum difference between the signed time and the clock; only with a signed time. Default: ${DEFAULT_TOLERANCE_SECONDS}; with \`sns\`, ${SNS_TOLERANCE_SECONDS}.`,
    min: 1,
    max: 86_400,
    set: "always",
    shown: "sometimes",
    flag: "tolerance",
    help: "maximum difference between the signed time and the clock (default 5m, with sns 1h)",
    label: "Tolerance of the signed time in seconds",
    hint: "300 when empty, 3600 with sns",
  },
  idempotencyHeader: {
    ...HEADER,
    words:
      "The header whose value is the idempotency key; only with `hmac-sha256` and `token`. It is not signed.",
    flag: "delivery-id-header",
    help: "header whose value is the idempotency key; only with hmac-sha256, custom and token",
    label: "Header of the delivery's identifier",
  },
  topics: {
    ...SOME,
    type: "texts",
    words: "The ARNs of the topics whose messages are accepted; only with `sns`.",
    pattern: SNS_TOPIC,
    expected: "the ARN of a topic such as arn:aws:sns:us-east-1:123456789012:orders",
    max: 16,
    flag: "topic",
    value: "ARN",
    help: "ARN of a topic whose messages are accepted; only with sns",
    label: "Topics",
    hint: "ARNs of Amazon SNS",
  },
  signed: {
    ...SOME,
    type: "text",
    words:
      "The signed text of `custom`: literal text and `{body}`, `{time}`, `{id}`, `{method}`, `{url}`, `{path}` or `{header.NAME}`. `{url}` requires the setting `TRIGGER_PUBLIC_URL`.",
    max: MAX_SIGNED_LENGTH,
    flag: "signed",
    value: "TEMPLATE",
    help: "signed text of custom, such as {id}.{time}.{body}",
    label: "Signed text",
    hint: "Such as {id}.{time}.{body}",
  },
  algorithm: {
    ...SOME,
    type: "choice",
    choices: ["hmac-sha256", "hmac-sha512", "hmac-sha1", "ed25519"],
    words:
      "The algorithm of `custom`: `hmac-sha256` (default), `hmac-sha512`, `hmac-sha1`, which is weak, or `ed25519`, whose secret is the public key of the sender in hex or base64.",
    flag: "signature-algorithm",
    help: "algorithm of custom: hmac-sha256 (default), hmac-sha512, hmac-sha1, which is weak, or ed25519",
    label: "Algorithm",
  },
  secretEncoding: {
    ...SOME,
    type: "choice",
    choices: ["text", "base64"],
    words:
      "The form of the secret of `custom`: `text` (default), or `base64`, with or without `whsec_` before it.",
    flag: "secret-encoding",
    value: "ENCODING",
    help: "form of the secret of custom, text (default) or base64",
    label: "Form of the secret",
  },
  signature: {
    ...SOME,
    type: "verification",
    words: "The header of the signatures of `custom`.",
    fields: CUSTOM_SIGNATURE,
    of: "TriggerSignature",
  },
  time: {
    ...SOME,
    type: "verification",
    words: "The signed time of `custom`: one of `header`, `prefix` and `field`.",
    fields: CUSTOM_TIME,
    of: "TriggerSignedTime",
  },
  id: {
    ...SOME,
    type: "verification",
    words: "The idempotency key of `custom`: one of `header` and `field`.",
    fields: CUSTOM_ID,
    of: "TriggerDeliveryId",
  },
} as const satisfies Fields;

/** The secret of the provider of signed calls. */
export const VERIFICATION_SECRET = {
  secret: {
    type: "secret",
    words:
      "The secret that the provider signs with or shows, without blanks at its ends; with `standard-webhooks`, `svix`, `clerk` and `resend`, `whsec_` or `v1,whsec_` followed by base64; with `basic`, `user:password`; with `discord`, the public key. If absent, Weir generates one, except for `basic` and public keys. `sns` has none.",
    min: 8,
    max: 1_024,
    flag: "secret-file",
    help: "file with the secret of the provider; - for standard input (default: a generated secret)",
    label: "Secret of the provider",
    hint: "Generated when empty",
  },
} as const satisfies Fields;
