import type { ShownSecret } from "./dialogs.ts";
import { type Child, element } from "./element.ts";
import { type Fields, fieldsOf, textOf, timeOf } from "./fields.ts";
import { code, note } from "./pieces.ts";
import { type RecordAction, type Row } from "./record_action.ts";
import { type RecordField, requestFields } from "./record_form.ts";
import {
  CUSTOM_PLACES,
  CUSTOM_SIGNATURE,
  SIGNATURE_PRESETS,
  TRIGGERS,
  VERIFICATION_SECRET,
} from "./resources.ts";
import { exactTimeText, shortId } from "./text.ts";

const GENERIC = "hmac-sha256";
const CUSTOM = "custom";
const TOKEN = "token";
const SNS = "sns";
const PRESETS = Object.entries(SIGNATURE_PRESETS);
const SCHEMES: readonly (readonly [scheme: string, label: string])[] = [
  ...PRESETS.map(([name, preset]) => [name, `${preset.label} ${nounOf(preset)}`] as const),
  [GENERIC, "another HMAC-SHA256 signature"],
  [CUSTOM, "a signature of a text that you describe"],
  [TOKEN, "a token in a header"],
];
const TIMED = PRESETS.filter(([, preset]) => "time" in preset).map(([name]) => name);
/** The fields of `hmac-sha256` that other schemes have, too. */
const SHARED_FIELDS: Readonly<Record<string, readonly string[]>> = {
  [TOKEN]: ["header", "prefix", "idempotencyHeader"],
  grafana: ["timestampHeader"],
};

function nounOf(preset: object): string {
  const algorithm = "algorithm" in preset ? preset.algorithm : undefined;
  if (algorithm === "token") return "token";
  return algorithm === "basic" ? "user and password" : "signature";
}

/** Returns whether the calls of a trigger are signed. */
export function isSigned(trigger: Fields): boolean {
  return textOf(fieldsOf(trigger["verify"]), "scheme") !== "";
}

/** Returns whether a trigger has keys or secrets, which can be rotated. */
export function hasCredentials(trigger: Fields): boolean {
  return textOf(fieldsOf(trigger["verify"]), "scheme") !== SNS;
}

/** The scheme of a trigger whose calls are signed, and the number of its secrets. */
export function signatureOf({ verify, secrets }: Fields): Child[] {
  const scheme = code(textOf(fieldsOf(verify), "scheme"));
  const count = Array.isArray(secrets) && secrets.length > 1 ? ` ${secrets.length} secrets` : "";
  return [element("span", { title: JSON.stringify(verify) }, scheme), note(count)];
}

/** Revokes one of the secrets of a trigger. */
export function revokeSecretAction(
  { parts, record, path, refresh }: Row,
  secret: Fields,
): RecordAction {
  const id = textOf(secret, "id");
  const name = textOf(record, "name");
  const at = timeOf(secret, "createdAt");
  return {
    label: `Revoke the secret of ${at === undefined ? shortId(id) : exactTimeText(at)}`,
    look: "danger",
    question: {
      title: "Revoke this secret?",
      text: `Calls of ${name} that are signed with this secret are answered with 401.`,
      go: "Revoke the secret",
      isDangerous: true,
    },
    run: async () => {
      await parts.api.administer(`${path}/secrets/${encodeURIComponent(id)}`, { method: "DELETE" });
      return "Secret revoked.";
    },
    then: refresh,
  };
}

/** A generated secret, to be shown; a given one is not returned. */
export function generatedSecret(title: string, created: Fields, name: string): ShownSecret | undefined {
  const secret = textOf(created, "secret");
  if (secret === "") return undefined;
  return { title, text: `The provider signs its calls of ${name} with it.`, secret };
}

/** Asks for the next secret of a trigger. */
export function rotateSecretAction({ parts: { api, dialogs }, record, path, refresh }: Row): RecordAction {
  const name = textOf(record, "name");
  const ask = () =>
    dialogs.form({
      title: "Add a secret?",
      text:
        `${name} gets a second secret. The old one works until it is revoked; of more than two, the oldest is deleted.`,
      submit: "Add a secret",
      fields: requestFields(VERIFICATION_SECRET),
      run: async (values) => {
        const secret = values["secret"] ?? "";
        const created = await api.administer(`${path}/rotate`, { body: secret === "" ? {} : { secret } });
        refresh();
        return generatedSecret("The new secret", created, name);
      },
    });
  return { label: "Rotate the secret", run: () => void ask() };
}

const VERIFY = TRIGGERS.fields["verify"]?.fields ?? {};
/** Those of objects in it, by their paths. */
const INNER = Object.entries(VERIFY).flatMap(([outer, { fields = {} }]) => {
  return Object.entries(fields).map(([name, field]) => [`${outer}.${name}`, field] as const);
});

/** The fields of a new trigger that describe how its calls are signed. */
export const VERIFY_FIELDS: readonly RecordField[] = requestFields({
  ...VERIFY,
  ...Object.fromEntries(INNER),
  ...VERIFICATION_SECRET,
}, {
  scheme: { choices: [["", "a key"], ...SCHEMES], required: false },
  encoding: { choices: CUSTOM_SIGNATURE.encoding.choices.map((choice) => [choice, choice]) },
  // Blanks are part of them.
  prefix: { parse: (text) => text },
  signed: { parse: (text) => text },
  "signature.list": { parse: (text) => text },
  "time.prefix": { parse: (text) => text },
}).map((field) => ({
  ...field,
  name: `verify.${field.name}`,
  isShown: (values) => isUsed(field.name, values),
}));

/** Each scheme has its fields. */
function isUsed(name: string, values: Fields): boolean {
  const scheme = textOf(values, "verify.scheme");
  const isSet = (...names: string[]) => names.some((one) => textOf(values, `verify.${one}`).trim() !== "");
  if (name === "scheme") return true;
  if (name === "secret") return scheme !== "" && scheme !== SNS;
  if (name === "topics") return scheme === SNS;
  if (name === "toleranceSeconds") {
    return TIMED.includes(scheme) || [GENERIC, "grafana"].includes(scheme) && isSet("timestampHeader") ||
      scheme === CUSTOM && isSet("timestampHeader", "time.prefix", "time.field");
  }
  if (Object.hasOwn(CUSTOM_PLACES, name)) {
    return scheme === GENERIC || scheme === CUSTOM || SHARED_FIELDS[scheme]?.includes(name) === true;
  }
  if (name === "time.unit") return scheme === CUSTOM && isSet("timestampHeader", "time.prefix", "time.field");
  if (name === "secretEncoding") return scheme === CUSTOM && textOf(values, "verify.algorithm") !== "ed25519";
  return scheme === CUSTOM;
}

/** Moves the fields of the signature into `verify`, which is absent where callers show a key. */
export function withVerification(body: Fields): Fields {
  const entries = Object.entries(body);
  const isOfVerify = ([name]: readonly [string, unknown]) => name.startsWith("verify.");
  const rest = Object.fromEntries(entries.filter((entry) => !isOfVerify(entry)));
  const scheme = textOf(body, "verify.scheme");
  if (scheme === "") return rest;
  const verify: Record<string, unknown> = {};
  for (const [path, value] of entries.filter(isOfVerify)) {
    const name = path.slice("verify.".length);
    if (!isUsed(name, body) || value === "" || value === null) continue;
    const place = scheme === CUSTOM ? CUSTOM_PLACES[name] ?? name : name;
    const [outer = "", inner] = place.split(".");
    verify[outer] = inner === undefined ? value : { ...fieldsOf(verify[outer]), [inner]: value };
  }
  return { ...rest, verify };
}
