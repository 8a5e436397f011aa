import { element } from "./element.ts";
import type { Content } from "./field_display.ts";
import { type Fields, fieldsOf, textOf, textsOf, timeOf } from "./fields.ts";
import { code, moment } from "./pieces.ts";
import { type RecordField, requestFields } from "./record_form.ts";
import { AUTHENTICATION, AUTHENTICATION_PARTS, ENDPOINTS } from "./resources.ts";
import { NOTHING } from "./text.ts";

const AUTH = "authentication.";
const TLS = "tls.";
const TYPES = Object.entries(AUTHENTICATION_PARTS);
const LABELS: Readonly<Record<string, string>> = {
  basic: "user and password",
  bearer: "a token",
  oauth2: "OAuth 2 client credentials",
};
const PLACES = AUTHENTICATION.credentialsIn.choices;

/** The authentication of an endpoint, without its secrets. */
export function authenticationText(endpoint: Fields): Content {
  const { type, ...parts } = fieldsOf(endpoint["authentication"]);
  if (typeof type !== "string") return NOTHING;
  const lines = Object.entries(parts).map(([name, value]) =>
    element("div", { class: "note" }, `${name}: `, code(String(value)))
  );
  return [code(type), ...lines];
}

/** The client certificate of an endpoint with its end, and the authorities of its receiver. */
export function tlsText(endpoint: Fields, now: number): Content {
  const tls = fieldsOf(endpoint["tls"]);
  const subject = textOf(tls, "subject");
  const authorities = textsOf(tls, "authorities");
  if (subject === "" && authorities.length === 0) return NOTHING;
  const expiresAt = timeOf(tls, "expiresAt");
  const isExpired = expiresAt !== undefined && expiresAt <= now;
  return [
    ...subject === "" ? [] : [
      code(subject),
      element("div", { class: "note" }, isExpired ? "expired " : "expires ", moment(expiresAt, now)),
    ],
    ...authorities.map((one) => element("div", { class: "note" }, "issued by ", code(one))),
  ];
}

/** The fields of a form that set the authentication. */
export function authenticationFields(endpoint: Fields | undefined): RecordField[] {
  const current = fieldsOf(endpoint?.["authentication"]);
  return requestFields(AUTHENTICATION, {
    type: {
      choices: [
        ["", "none, or by a header"],
        ...TYPES.map(([type]) => [type, LABELS[type] ?? type] as const),
      ],
      required: false,
    },
    credentialsIn: { choices: PLACES.map((choice) => [choice, choice]) },
  }).map((field) => ({
    ...field,
    name: `${AUTH}${field.name}`,
    value: textOf(current, field.name) || field.choices?.[0]?.[0] || "",
    hint: field.hint ?? (field.kind === "secret" && endpoint !== undefined ? AGAIN : undefined),
    isShown: (values) => field.name === "type" || partsOf(textOf(values, `${AUTH}type`)).includes(field.name),
  }));
}

const AGAIN = "Not shown again: enter it with every change of the authentication";

/** The fields of a form that set the client certificate and the authorities. */
export function tlsFields(endpoint: Fields | undefined): RecordField[] {
  const hasTls = endpoint?.["tls"] !== undefined;
  const hint = hasTls
    ? "Leave all three empty to keep them; otherwise they replace the current ones"
    : "In PEM";
  const { certificate, key, ca } = ENDPOINTS.fields["tls"]?.fields ?? {};
  const described = Object.entries({ certificate, key, ca }).flatMap(([name, field]) => {
    return field === undefined ? [] : [[name, field] as const];
  });
  const fields = requestFields(Object.fromEntries(described)).map((field): RecordField => ({
    ...field,
    name: `${TLS}${field.name}`,
    value: "",
    hint,
  }));
  const remove: RecordField = {
    name: "noTls",
    label: "Remove the client certificate and the authorities",
    kind: "check",
    parse: (text) => text === "true",
  };
  return hasTls ? [...fields, remove] : fields;
}

/** Moves the fields of a form into `authentication` and `tls`; each of them is sent as a whole. */
export function withCredentials({ noTls, ...body }: Fields, values: Fields): Fields {
  const isPart = (name: string) => name.startsWith(AUTH) || name.startsWith(TLS);
  const names = Object.keys(body);
  const rest = Object.fromEntries(Object.entries(body).filter(([name]) => !isPart(name)));
  const type = textOf(values, `${AUTH}type`);
  const authentication = { type, ...filled(values, AUTH, partsOf(type)) };
  const tls = filled(values, TLS, ["certificate", "key", "ca"]);
  return {
    ...rest,
    ...(names.some((name) => name.startsWith(AUTH))
      ? { authentication: type === "" ? null : authentication }
      : {}),
    ...(Object.keys(tls).length > 0 ? { tls } : noTls === true ? { tls: null } : {}),
  };
}

function partsOf(type: string): readonly string[] {
  const parts = TYPES.find(([name]) => name === type)?.[1];
  return parts === undefined ? [] : [...parts.required, ...parts.optional];
}

function filled(values: Fields, prefix: string, names: readonly string[]): Fields {
  const entries = names.map((name) => [name, textOf(values, `${prefix}${name}`)] as const);
  return Object.fromEntries(entries.filter(([, value]) => value.trim() !== ""));
}
