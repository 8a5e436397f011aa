import type { JsonObject } from "../../base/exact_json.ts";
import {
  choiceSchema,
  closedSchema,
  type JsonSchema,
  type SchemaProperties,
  textSchema,
} from "../../base/json_schema.ts";
import type { TriggerVerification } from "../model/records.ts";
import { isBase64Secret } from "../model/signature.ts";
import { isTimed, secretFormOf } from "../model/trigger_verification.ts";
import {
  DEFAULT_TOLERANCE_SECONDS,
  TRIGGER_VERIFICATION,
  VERIFICATION_SECRET,
} from "../resources/trigger.ts";
import { readFields } from "./field_reader.ts";
import { sentSchemas } from "./field_schemas.ts";
import { invalidField } from "./problem.ts";

const MIN_SECRET = VERIFICATION_SECRET.secret.min;
/** The fields that only describe the scheme `hmac-sha256`. */
const GENERIC_FIELDS = ["header", "prefix", "encoding", "timestampHeader", "idempotencyHeader"] as const;
const NEW_VERIFICATION = { ...TRIGGER_VERIFICATION, ...VERIFICATION_SECRET };

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
  };
}

/** The fields that each scheme has. */
function schemeSchemas(secret: SchemaProperties, base64Secret: SchemaProperties): JsonSchema {
  const { scheme: _, toleranceSeconds = {}, header = {}, ...others } = sentSchemas(TRIGGER_VERIFICATION);
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

/** The signatures of the calls of a new trigger, and the secret if it was given; undefined if they show a key. */
export function sentVerification(
  object: JsonObject | undefined,
): { readonly verify: TriggerVerification; readonly secret: string | undefined } | undefined {
  if (object === undefined) return undefined;
  const { secret, ...sent } = readFields(object, NEW_VERIFICATION, { prefix: "verify." });
  const verify = verificationOf(sent);
  return { verify, secret: checkedSecret(secret, verify, "verify.secret") };
}

/** A changed verification, which replaces the one of the trigger; nothing where none was sent. */
export function changedVerification(object: JsonObject | undefined): TriggerVerification | undefined {
  if (object === undefined) return undefined;
  return verificationOf(readFields(object, TRIGGER_VERIFICATION, { prefix: "verify." }));
}

/** The given secret of a scheme; nothing where none was given. */
export function checkedSecret(
  secret: string | undefined,
  verify: TriggerVerification,
  field = "secret",
): string | undefined {
  if (secret === undefined) return undefined;
  if (secret.trim() !== secret) throw invalidField(field, "it begins or ends with a blank");
  if (secret.length < MIN_SECRET) throw invalidField(field, `expected at least ${MIN_SECRET} characters`);
  if (secretFormOf(verify) === "text") return secret;
  if (!isBase64Secret(secret)) throw invalidField(field, "expected whsec_ followed by base64");
  if (isBase64Secret(secret, MIN_SECRET)) return secret;
  throw invalidField(field, `expected at least ${MIN_SECRET} bytes in base64`);
}

function verificationOf({ scheme, toleranceSeconds, ...given }: TriggerVerification): TriggerVerification {
  const { header, timestampHeader } = given;
  const isGeneric = scheme === "hmac-sha256";
  const foreign = GENERIC_FIELDS.find((name) => given[name] !== undefined);
  if (!isGeneric && foreign !== undefined) {
    throw invalidField(`verify.${foreign}`, `the scheme ${scheme} defines it`);
  }
  if (isGeneric && header === undefined) throw invalidField("verify.header", "it is required");
  if (header !== undefined && header === timestampHeader) {
    throw invalidField("verify.timestampHeader", "it is the header of the signature");
  }
  const verification = isGeneric ? { scheme, ...given, encoding: given.encoding ?? "hex" } : { scheme };
  if (isTimed(verification)) {
    return { ...verification, toleranceSeconds: toleranceSeconds ?? DEFAULT_TOLERANCE_SECONDS };
  }
  if (toleranceSeconds === undefined) return verification;
  throw invalidField("verify.toleranceSeconds", "no time is signed");
}
