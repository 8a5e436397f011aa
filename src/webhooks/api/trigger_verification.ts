import {
  choiceSchema,
  closedSchema,
  integerSchema,
  type JsonSchema,
  objectSchema,
  type SchemaProperties,
  textSchema,
} from "../../base/json_schema.ts";
import type { TriggerVerification } from "../model/records.ts";
import { isBase64Secret } from "../model/signature.ts";
import {
  DEFAULT_TOLERANCE_SECONDS,
  isTimed,
  secretFormOf,
  SIGNATURE_SCHEMES,
} from "../model/trigger_verification.ts";
import { FieldReader } from "./field_reader.ts";
import { invalidField } from "./problem.ts";
import { inAnyCase, SECRET_PATTERN } from "./text_forms.ts";

const ENCODINGS = ["hex", "base64"] as const;
/** Headers that HTTP itself or a proxy sets, so that they cannot prove a sender. */
const OWN_HEADERS = [
  ...["accept", "connection", "content-encoding", "content-length", "content-type", "expect", "host"],
  ...["keep-alive", "te", "trailer", "transfer-encoding", "upgrade"],
];
const HEADER_NAME = `^(?!(?:${inAnyCase(OWN_HEADERS.join("|"))})$)[A-Za-z0-9-]{1,64}$`;
const PREFIX = "^[ -~]{0,64}$";
const MIN_SECRET = 8;
/** The fields that only describe the scheme `hmac-sha256`. */
const GENERIC_FIELDS = ["header", "prefix", "encoding", "timestampHeader", "idempotencyHeader"] as const;

const SCHEME: SchemaProperties = {
  scheme: choiceSchema(
    SIGNATURE_SCHEMES,
    "Scheme of the signature; `hmac-sha256` requires `header`. It cannot be changed later.",
  ),
};
const SETTABLE: SchemaProperties = {
  header: textSchema("The header of the signature; only with `hmac-sha256`.", { pattern: HEADER_NAME }),
  prefix: textSchema("The text before the signature in its header; only with `hmac-sha256`.", {
    pattern: PREFIX,
  }),
  encoding: choiceSchema(
    ENCODINGS,
    "The encoding of the signature; only with `hmac-sha256`. Default: `hex`.",
  ),
  timestampHeader: textSchema(
    "The header of the time in seconds since the Unix epoch; only with `hmac-sha256`. The signature then covers this time, a period and the body.",
    { pattern: HEADER_NAME },
  ),
  toleranceSeconds: integerSchema(
    `Maximum difference between the signed time and the clock; only with a signed time. Default: ${DEFAULT_TOLERANCE_SECONDS}.`,
    { minimum: 1, maximum: 86_400 },
  ),
  idempotencyHeader: textSchema(
    "The header whose value is the idempotency key; only with `hmac-sha256`. It is not signed.",
    { pattern: HEADER_NAME },
  ),
};

/** The secret of a signed trigger in a request. */
export const SECRET_FIELD: SchemaProperties = {
  secret: textSchema(
    "The secret that the provider signs with, without blanks at its ends; with `standard-webhooks`, `whsec_` or `v1,whsec_` followed by base64. If absent, Weir generates one.",
    { minLength: MIN_SECRET, maxLength: 1_024, pattern: SECRET_PATTERN },
  ),
};

/** The same for keys in base64; the shortest has 8 bytes. */
const BASE64_SECRET: SchemaProperties = {
  secret: textSchema("`whsec_` followed by base64. If absent, Weir generates it.", {
    maxLength: 1_024,
    pattern: "^(?:v1,)?whsec_(?:[A-Za-z0-9+/]{4}){3,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
  }),
};

const CHANGE: SchemaProperties = { ...SCHEME, ...SETTABLE };
const NEW: SchemaProperties = { ...CHANGE, ...SECRET_FIELD };

/** Schemas of verification, by name. */
export const VERIFICATION_SCHEMAS: SchemaProperties = {
  TriggerVerification: objectSchema(SCHEME, SETTABLE),
  NewTriggerVerification: schemeSchemas(SECRET_FIELD, BASE64_SECRET),
  TriggerVerificationChange: schemeSchemas({}, {}),
};

/** The fields that each scheme has. */
function schemeSchemas(secret: SchemaProperties, base64Secret: SchemaProperties): JsonSchema {
  const { toleranceSeconds = {}, header = {}, ...others } = SETTABLE;
  const scheme = (...names: string[]) => ({ scheme: choiceSchema(names, "Scheme of the signature.") });
  return {
    anyOf: [
      closedSchema(scheme("github", "shopify"), secret),
      closedSchema(scheme("stripe"), { toleranceSeconds, ...secret }),
      closedSchema(scheme("standard-webhooks"), { toleranceSeconds, ...base64Secret }),
      {
        ...closedSchema({ ...scheme("hmac-sha256"), header }, { ...others, toleranceSeconds, ...secret }),
        dependentRequired: { toleranceSeconds: ["timestampHeader"] },
      },
    ],
    description: "How calls are signed. A scheme cannot be changed later.",
  };
}

/** How the calls of a new trigger are signed, and the secret if it was given; nothing where they show a key. */
export function sentVerification(
  fields: FieldReader,
): { readonly verify: TriggerVerification; readonly secret: string | undefined } | undefined {
  const object = fields.objectIfGiven("verify");
  if (object === undefined) return undefined;
  const read = new FieldReader(object, NEW, "verify.");
  const verify = verificationOf(read);
  return { verify, secret: sentSecret(read, verify, "verify.secret") };
}

/** A changed verification, which replaces the one of the trigger; nothing where none was sent. */
export function changedVerification(fields: FieldReader): TriggerVerification | undefined {
  const object = fields.objectIfGiven("verify");
  return object === undefined ? undefined : verificationOf(new FieldReader(object, CHANGE, "verify."));
}

/** The given secret of a scheme; nothing where none was given. */
export function sentSecret(
  fields: FieldReader,
  verify: TriggerVerification,
  field = "secret",
): string | undefined {
  const secret = fields.textIfGiven("secret");
  if (secret === undefined) return undefined;
  if (secret.trim() !== secret) throw invalidField(field, "it begins or ends with a blank");
  if (secret.length < MIN_SECRET) throw invalidField(field, `expected at least ${MIN_SECRET} characters`);
  if (secretFormOf(verify) === "text") return secret;
  if (!isBase64Secret(secret)) throw invalidField(field, "expected whsec_ followed by base64");
  if (isBase64Secret(secret, MIN_SECRET)) return secret;
  throw invalidField(field, `expected at least ${MIN_SECRET} bytes in base64`);
}

function verificationOf(fields: FieldReader): TriggerVerification {
  const scheme = fields.choiceIfGiven("scheme", SIGNATURE_SCHEMES);
  if (scheme === undefined) throw invalidField("verify.scheme", "it is required");
  const header = headerIfGiven(fields, "header");
  const timestampHeader = headerIfGiven(fields, "timestampHeader");
  const idempotencyHeader = headerIfGiven(fields, "idempotencyHeader");
  const prefix = prefixIfGiven(fields);
  const encoding = fields.choiceIfGiven("encoding", ENCODINGS);
  const toleranceSeconds = fields.wholeIfGiven("toleranceSeconds");
  const given = { header, prefix, encoding, timestampHeader, idempotencyHeader };
  const isGeneric = scheme === "hmac-sha256";
  const foreign = GENERIC_FIELDS.find((name) => given[name] !== undefined);
  if (!isGeneric && foreign !== undefined) {
    throw invalidField(`verify.${foreign}`, `the scheme ${scheme} defines it`);
  }
  if (isGeneric && header === undefined) throw invalidField("verify.header", "it is required");
  if (header !== undefined && header === timestampHeader) {
    throw invalidField("verify.timestampHeader", "it is the header of the signature");
  }
  const verification = isGeneric ? { scheme, ...given, encoding: encoding ?? "hex" } : { scheme };
  if (isTimed(verification)) {
    return { ...verification, toleranceSeconds: toleranceSeconds ?? DEFAULT_TOLERANCE_SECONDS };
  }
  if (toleranceSeconds === undefined) return verification;
  throw invalidField("verify.toleranceSeconds", "no time is signed");
}

/** Requests have their names in lower case. */
function headerIfGiven(fields: FieldReader, name: string): string | undefined {
  const header = fields.textIfGiven(name);
  if (header === undefined || new RegExp(HEADER_NAME).test(header)) return header?.toLowerCase();
  const isOwn = OWN_HEADERS.includes(header.toLowerCase());
  const expected = isOwn ? "a header that HTTP does not define" : "1 to 64 letters, digits and -";
  throw invalidField(`verify.${name}`, `expected ${expected}`);
}

function prefixIfGiven(fields: FieldReader): string | undefined {
  const prefix = fields.textIfGiven("prefix");
  if (prefix === undefined || new RegExp(PREFIX).test(prefix)) return prefix;
  throw invalidField("verify.prefix", "expected at most 64 printable ASCII characters");
}
