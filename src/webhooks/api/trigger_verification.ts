import type { JsonObject } from "../../base/exact_json.ts";
import {
  choiceSchema,
  closedSchema,
  type JsonSchema,
  schemaOf,
  type SchemaProperties,
  textSchema,
} from "../../base/json_schema.ts";
import type { TriggerVerification } from "../model/records.ts";
import { publicKeyBytes } from "../model/public_key.ts";
import { isBase64Secret, SECRET_PREFIX } from "../model/signature.ts";
import { schemeOf } from "../model/signature_scheme.ts";
import { SIGNED_PATTERN } from "../model/signed_template.ts";
import { SIGNATURE_PRESETS, type SignatureScheme } from "../resources/signature_presets.ts";
import type { Sent } from "../resources/field.ts";
import {
  CUSTOM_ID,
  CUSTOM_SIGNATURE,
  CUSTOM_TIME,
  DEFAULT_TOLERANCE_SECONDS,
  SNS_TOLERANCE_SECONDS,
  TRIGGER_VERIFICATION,
  VERIFICATION_SECRET,
} from "../resources/trigger_verification.ts";
import { customVerification, type VerificationOptions } from "./custom_verification.ts";
import { readFields } from "./field_reader.ts";
import { bodySchema, sentSchemas } from "./field_schemas.ts";
import { invalidField } from "./problem.ts";

const MIN_SECRET = VERIFICATION_SECRET.secret.min;
type FieldName = Exclude<keyof typeof TRIGGER_VERIFICATION, "scheme" | "toleranceSeconds">;
/** The fields of schemes that no provider defines. */
const OWN_FIELDS: Readonly<Partial<Record<TriggerVerification["scheme"], readonly FieldName[]>>> = {
  "hmac-sha256": ["header", "prefix", "encoding", "timestampHeader", "idempotencyHeader"],
  token: ["header", "prefix", "idempotencyHeader"],
  grafana: ["timestampHeader"],
  sns: ["topics"],
  custom: ["signed", "algorithm", "secretEncoding", "signature", "time", "id"],
};
const OWNED = [...new Set(Object.values(OWN_FIELDS).flat())];
const NEW_VERIFICATION = { ...TRIGGER_VERIFICATION, ...VERIFICATION_SECRET };
type SentVerification = Sent<typeof TRIGGER_VERIFICATION>;

/** Schemas of verification, by name. */
export function verificationSchemas(): SchemaProperties {
  const secrets = sentSchemas(VERIFICATION_SECRET);
  // The shortest has 8 bytes.
  const base64 = textSchema("`whsec_` followed by base64. If absent, Weir generates it.", {
    maxLength: VERIFICATION_SECRET.secret.max,
    pattern: "^(?:v1,)?whsec_(?:[A-Za-z0-9+/]{4}){3,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
  });
  return {
    NewTriggerVerification: schemeSchemas(secrets, { secret: base64 }),
    TriggerVerificationChange: schemeSchemas({}, {}),
    TriggerSignature: bodySchema(CUSTOM_SIGNATURE),
    TriggerSignedTime: oneOfSchemas(sentSchemas(CUSTOM_TIME), ["header", "prefix", "field"]),
    TriggerDeliveryId: oneOfSchemas(sentSchemas(CUSTOM_ID), ["header", "field"]),
  };
}

/** One of some fields is required; the others are optional. */
function oneOfSchemas(schemas: SchemaProperties, names: readonly string[]): JsonSchema {
  const others = Object.entries(schemas).filter(([name]) => !names.includes(name));
  const optional = Object.fromEntries(others);
  return { anyOf: names.map((name) => closedSchema({ [name]: schemas[name] ?? {} }, optional)) };
}

/** The fields that each scheme has. */
function schemeSchemas(secret: SchemaProperties, base64Secret: SchemaProperties): JsonSchema {
  const { scheme: _, toleranceSeconds = {}, header = {}, signed, ...others } = sentSchemas(
    TRIGGER_VERIFICATION,
  );
  const scheme = (...names: string[]) => ({ scheme: choiceSchema(names, "Scheme of the signature.") });
  const { prefix = {}, encoding = {}, timestampHeader = {}, idempotencyHeader = {} } = others;
  const { algorithm = {}, secretEncoding = {}, signature = {}, topics = {} } = others;
  const generic = { prefix, encoding, timestampHeader, idempotencyHeader, toleranceSeconds };
  const custom = {
    algorithm,
    secretEncoding,
    time: schemaOf("TriggerSignedTime"),
    id: schemaOf("TriggerDeliveryId"),
    toleranceSeconds,
  };
  return {
    anyOf: [
      closedSchema(scheme(...presetsWhere({ isTimed: false, isBase64: false })), secret),
      closedSchema(scheme(...presetsWhere({ isTimed: true, isBase64: false })), {
        toleranceSeconds,
        ...secret,
      }),
      closedSchema(scheme(...presetsWhere({ isTimed: true, isBase64: true })), {
        toleranceSeconds,
        ...base64Secret,
      }),
      timedOptionally(closedSchema(scheme("grafana"), { timestampHeader, toleranceSeconds, ...secret })),
      closedSchema({ ...scheme("sns"), topics }, { toleranceSeconds }),
      closedSchema({ ...scheme("token"), header }, { prefix, idempotencyHeader, ...secret }),
      timedOptionally(closedSchema({ ...scheme("hmac-sha256"), header }, { ...generic, ...secret })),
      {
        ...closedSchema({ ...scheme("custom"), signed: { ...signed, pattern: SIGNED_PATTERN }, signature }, {
          ...custom,
          ...secret,
        }),
        dependentRequired: { toleranceSeconds: ["time"] },
      },
    ],
    description: "How calls are signed. A scheme cannot be changed later.",
  };
}

/** The names of presets without fields, by the form of their time and of their secret. */
function presetsWhere(given: { readonly isTimed: boolean; readonly isBase64: boolean }): string[] {
  const presets = Object.entries<SignatureScheme>(SIGNATURE_PRESETS);
  const names = presets.filter(([name, { time, secretEncoding }]) => {
    const isMatch = (time !== undefined) === given.isTimed &&
      (secretEncoding === "base64") === given.isBase64;
    return isMatch && !Object.hasOwn(OWN_FIELDS, name);
  });
  return names.map(([name]) => name);
}

function timedOptionally(schema: JsonSchema): JsonSchema {
  return { ...schema, dependentRequired: { toleranceSeconds: ["timestampHeader"] } };
}

/** The signatures of the calls of a new trigger, and the secret if it was given; undefined if they show a key. */
export function sentVerification(
  object: JsonObject | undefined,
  options: VerificationOptions,
): { readonly verify: TriggerVerification; readonly secret: string | undefined } | undefined {
  if (object === undefined) return undefined;
  const { secret, ...sent } = readFields(object, NEW_VERIFICATION, { prefix: "verify." });
  const verify = verificationOf(sent, options);
  return { verify, secret: checkedSecret(secret, verify, "verify.secret") };
}

/** A changed verification, which replaces the one of the trigger; nothing where none was sent. */
export function changedVerification(
  object: JsonObject | undefined,
  options: VerificationOptions,
): TriggerVerification | undefined {
  if (object === undefined) return undefined;
  return verificationOf(readFields(object, TRIGGER_VERIFICATION, { prefix: "verify." }), options);
}

/** The given secret of a scheme, as it is stored; nothing where none was given, and Weir generates it. */
export function checkedSecret(
  secret: string | undefined,
  verify: TriggerVerification,
  field = "secret",
): string | undefined {
  const { algorithm, secretEncoding } = schemeOf(verify);
  if (algorithm === "certificate") {
    if (secret === undefined) return undefined;
    throw invalidField(field, `the scheme ${verify.scheme} has none: the sender has a certificate`);
  }
  if (secret === undefined) {
    if (algorithm === "ed25519") throw invalidField(field, "it is required: the public key of the sender");
    if (algorithm === "basic") throw invalidField(field, "it is required: user:password");
    return undefined;
  }
  if (secret.trim() !== secret) throw invalidField(field, "it begins or ends with a blank");
  if (secret.length < MIN_SECRET) throw invalidField(field, `expected at least ${MIN_SECRET} characters`);
  if (algorithm === "ed25519") {
    if (publicKeyBytes(secret).length > 0) return secret;
    throw invalidField(field, "expected a public key of 32 bytes in hex or base64");
  }
  if (algorithm === "basic" && !/^[^:]+:./.test(secret)) throw invalidField(field, "expected user:password");
  if (secretEncoding !== "base64") return secret;
  const isBare = verify.scheme === "custom" && !secret.includes(SECRET_PREFIX);
  const prefixed = isBare ? `${SECRET_PREFIX}${secret}` : secret;
  if (!isBase64Secret(prefixed)) {
    throw invalidField(field, isBare ? "expected base64" : "expected whsec_ followed by base64");
  }
  if (isBase64Secret(prefixed, MIN_SECRET)) return prefixed;
  throw invalidField(field, `expected at least ${MIN_SECRET} bytes in base64`);
}

function verificationOf(
  { scheme, toleranceSeconds, ...given }: SentVerification,
  options: VerificationOptions,
): TriggerVerification {
  const own = OWN_FIELDS[scheme] ?? [];
  const foreign = OWNED.find((name) => given[name] !== undefined && !own.includes(name));
  if (foreign !== undefined) {
    const reason = own.length === 0 ? "defines it" : `does not have it; expected ${own.join(", ")}`;
    throw invalidField(`verify.${foreign}`, `the scheme ${scheme} ${reason}`);
  }
  const verification = { scheme, ...ownFields({ scheme, ...given }, options) };
  if (options.publicUrl === undefined && schemeOf(verification).signed.includes("{url}")) {
    throw invalidField(
      "verify.scheme",
      `${scheme} signs the URL, which requires the setting TRIGGER_PUBLIC_URL`,
    );
  }
  if (schemeOf(verification).time !== undefined) {
    const usual = scheme === "sns" ? SNS_TOLERANCE_SECONDS : DEFAULT_TOLERANCE_SECONDS;
    return { ...verification, toleranceSeconds: toleranceSeconds ?? usual };
  }
  if (toleranceSeconds === undefined) return verification;
  throw invalidField("verify.toleranceSeconds", "no time is signed");
}

/** The fields of a verification in addition to its scheme and its tolerance. */
function ownFields(
  { scheme, ...given }: SentVerification,
  options: VerificationOptions,
): Partial<TriggerVerification> {
  if (scheme === "custom") return customVerification(given, options);
  const { header, prefix, encoding = "hex", timestampHeader, idempotencyHeader, topics } = given;
  if (scheme === "sns") {
    if (topics === undefined) throw invalidField("verify.topics", "it is required");
    return { topics };
  }
  if (scheme === "grafana") return { timestampHeader };
  if (scheme !== "hmac-sha256" && scheme !== "token") return {};
  if (header === undefined) throw invalidField("verify.header", "it is required");
  if (header === timestampHeader) {
    throw invalidField("verify.timestampHeader", "it is the header of the signature");
  }
  const described = { header, prefix, timestampHeader, idempotencyHeader };
  return scheme === "token" ? described : { ...described, encoding };
}
