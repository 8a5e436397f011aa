import type { ShownSecret } from "./dialogs.ts";
import { element } from "./element.ts";
import { type Fields, fieldsOf, recordsOf, textOf, timeOf } from "./fields.ts";
import type { FormValues } from "./form.ts";
import { code, moment } from "./pieces.ts";
import { actionButton, type RecordAction, type Row } from "./record_action.ts";
import type { RecordField } from "./record_form.ts";

const GENERIC = "hmac-sha256";
const SCHEMES: readonly (readonly [scheme: string, label: string])[] = [
  ["github", "GitHub signature"],
  ["stripe", "Stripe signature"],
  ["shopify", "Shopify signature"],
  ["standard-webhooks", "Standard Webhooks signature"],
  [GENERIC, "another HMAC-SHA256 signature"],
];
const TIMED: readonly string[] = ["stripe", "standard-webhooks"];

/** Whether the calls of a trigger are signed. */
export function isSigned(trigger: Fields): boolean {
  return textOf(fieldsOf(trigger["verify"]), "scheme") !== "";
}

/** The scheme of a trigger whose calls are signed, and its secrets. */
export function signatureOf(row: Row): HTMLElement[] {
  const { verify } = row.record;
  const scheme = element("div", { title: JSON.stringify(verify) }, code(textOf(fieldsOf(verify), "scheme")));
  return [scheme, ...recordsOf(row.record, "secrets").map((secret) => secretOf(row, secret))];
}

function secretOf({ parts, record, path, now, refresh }: Row, secret: Fields): HTMLElement {
  const id = textOf(secret, "id");
  const name = textOf(record, "name");
  const revoke = actionButton(parts, {
    label: "Revoke",
    spoken: `Revoke the secret ${id} of ${name}`,
    action: `revoke ${id}`,
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
  });
  return element("div", { class: "acts" }, "since ", moment(timeOf(secret, "createdAt"), now), revoke);
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
      fields: [{ ...SECRET, name: "secret" }],
      run: async (values) => {
        const secret = values["secret"] ?? "";
        const created = await api.administer(`${path}/rotate`, { body: secret === "" ? {} : { secret } });
        refresh();
        return generatedSecret("The new secret", created, name);
      },
    });
  return { label: "Rotate", spoken: `Rotate the secret of ${name}`, run: () => void ask() };
}

const SECRET: RecordField = {
  name: "verify.secret",
  label: "Secret of the provider",
  kind: "secret",
  hint: "Generated when empty",
  parse: (text) => text,
};

function schemeIn(values: FormValues): string {
  return values["verify.scheme"] ?? "";
}

function signsTime(scheme: string, timestampHeader: unknown = ""): boolean {
  return TIMED.includes(scheme) || scheme === GENERIC && String(timestampHeader).trim() !== "";
}

function generic(field: RecordField): RecordField {
  return { ...field, isShown: (values) => schemeIn(values) === GENERIC };
}

/** The fields of a new trigger that describe how its calls are signed. */
export const VERIFY_FIELDS: readonly RecordField[] = [
  {
    name: "verify.scheme",
    label: "Callers prove themselves with",
    kind: "choice",
    choices: [["", "a key"], ...SCHEMES],
  },
  { ...SECRET, isShown: (values) => schemeIn(values) !== "" },
  generic({ name: "verify.header", label: "Header of the signature" }),
  generic({
    name: "verify.prefix",
    label: "Text before the signature",
    hint: "Such as sha256=",
    parse: (text) => text,
  }),
  generic({
    name: "verify.encoding",
    label: "Encoding",
    kind: "choice",
    choices: [["hex", "hex"], ["base64", "base64"]],
  }),
  generic({
    name: "verify.timestampHeader",
    label: "Header of the signed time",
    hint: "Then the signature covers the time, a period and the body",
  }),
  generic({ name: "verify.idempotencyHeader", label: "Header of the delivery's identifier" }),
  {
    name: "verify.toleranceSeconds",
    label: "Tolerance of the signed time in seconds",
    kind: "whole",
    hint: "300 when empty",
    isShown: (values) => signsTime(schemeIn(values), values["verify.timestampHeader"]),
  },
];

/** Moves the fields of the signature into `verify`, which is absent where callers show a key. */
export function withVerification(body: Fields): Fields {
  const entries = Object.entries(body);
  const isOfVerify = ([name]: readonly [string, unknown]) => name.startsWith("verify.");
  const rest = Object.fromEntries(entries.filter((entry) => !isOfVerify(entry)));
  const scheme = textOf(body, "verify.scheme");
  if (scheme === "") return rest;
  const isUsed = (name: string) => {
    if (name === "toleranceSeconds") return signsTime(scheme, body["verify.timestampHeader"]);
    return scheme === GENERIC || name === "scheme" || name === "secret";
  };
  const verify = entries.filter(isOfVerify)
    .map(([name, value]) => [name.slice("verify.".length), value] as const)
    .filter(([name, value]) => isUsed(name) && value !== "" && value !== null);
  return { ...rest, verify: Object.fromEntries(verify) };
}
