import { ADMINISTRATION_COMMANDS } from "../../src/cli/administration_commands.ts";
import { AUDIT } from "../../src/webhooks/resources/audit_entry.ts";
import { DELIVERIES } from "../../src/webhooks/resources/delivery.ts";
import { ENDPOINT_FIELDS } from "../../src/webhooks/resources/endpoint.ts";
import { AUTHENTICATION, ENDPOINT_TLS } from "../../src/webhooks/resources/endpoint_authentication.ts";
import { EVENTS } from "../../src/webhooks/resources/event.ts";
import { EXECUTIONS } from "../../src/webhooks/resources/execution.ts";
import { type Field, type Fields, LIST_PARAMETERS, newFields } from "../../src/webhooks/resources/field.ts";
import { REPLAYS } from "../../src/webhooks/resources/replay.ts";
import { SIGNATURE_PRESETS, type SignatureScheme } from "../../src/webhooks/resources/signature_presets.ts";
import { TRIGGER_VERIFICATION } from "../../src/webhooks/resources/trigger_verification.ts";
import { type GeneratedPage, pagePart, table } from "./generated_page.ts";

/** The tables of the fields of resources. */
export const RESOURCE_TABLES: readonly GeneratedPage[] = [
  pagePart("docs/webhooks/admin-api.md", "list parameters", parameterTable),
  pagePart("docs/webhooks/deliveries.md", "endpoint fields", () => {
    return settingTable("endpoints", newFields(ENDPOINT_FIELDS));
  }),
  pagePart("docs/webhooks/deliveries.md", "authentication fields", () => {
    return settingTable(
      "endpoints",
      newFields({
        ...prefixed("authentication.", AUTHENTICATION),
        ...prefixed("tls.", ENDPOINT_TLS),
      }),
    );
  }),
  pagePart("docs/webhooks/deliveries.md", "endpoint health", healthTable),
  pagePart("docs/webhooks/signed-triggers.md", "signature schemes", schemeTable),
  pagePart("docs/webhooks/signed-triggers.md", "signature fields", () => {
    return settingTable("triggers", TRIGGER_VERIFICATION, "verify.");
  }),
];

function prefixed(outer: string, fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [`${outer}${name}`, field]));
}

/** Fields that can be set, each with its arguments and flags in the commands of a group, and those of objects in them. */
function settingTable(group: string, fields: Fields, outer = ""): string {
  const inner = Object.entries(fields).flatMap(([name, { type, fields = {} }]): [string, Field][] => {
    if (type !== "verification") return [];
    return Object.entries(fields).map(([key, field]) => [`${name}.${key}`, field]);
  });
  const rows = [...Object.entries(fields), ...inner].map(([name, field]) => {
    return [
      `\`${name}\``,
      flagsCell(group, `${outer}${name}`),
      field.words,
      valuesCell(field),
      defaultCell(field),
    ];
  });
  return table(["Field", `Flags of \`weir ${group}\``, "Meaning", "Values", "Default"], rows);
}

/** The schemes that a provider defines, as `custom` would describe them. */
function schemeTable(): string {
  const rows = Object.entries<SignatureScheme & { readonly label: string }>(SIGNATURE_PRESETS)
    .map(([name, { label, signature, time, id, eventHeader, ...scheme }]) => [
      `\`${name}\``,
      label,
      scheme.shownIn === undefined
        ? headersCell(signature.header)
        : `none: each \`${scheme.shownIn.field}\` in \`${scheme.shownIn.list}\` of the body`,
      signedCell(scheme, signature),
      time === undefined ? "" : `${placeCell(time)}${time.unit === "milliseconds" ? " (ms)" : ""}`,
      id === undefined ? "" : `${placeCell(id)}${isSigned(scheme, id) ? ", signed" : ""}`,
      headersCell(eventHeader),
    ]);
  return table(
    ["Scheme", "Sender", "Header", "Signature", "Time", "Idempotency key", "`execution.event`"],
    rows,
  );
}

function signedCell(
  { algorithm = "hmac-sha256", signed }: Pick<SignatureScheme, "algorithm" | "signed">,
  { prefix, encoding, list }: SignatureScheme["signature"],
): string {
  if (algorithm === "token") return "the secret itself";
  if (algorithm === "certificate") return "RSA by [a certificate](#amazon-sns)";
  if (algorithm === "basic") return "`user:password` in base64";
  const several = list === undefined ? "" : ", several";
  const before = prefix === undefined ? "" : ` after \`${prefix}\``;
  const name = `\`${algorithm}\`${algorithm === "hmac-sha1" ? " (weak)" : ""}`;
  return `${name} of \`${signed}\` in ${encoding ?? "hex"}${before}${several}`;
}

function isSigned(
  { signed }: Pick<SignatureScheme, "signed">,
  { field }: { readonly field?: string | undefined },
) {
  return field !== undefined || signed.includes("{id}");
}

function placeCell(place: NonNullable<SignatureScheme["time"]>): string {
  const { header, prefix, field } = place;
  if (field !== undefined) return `\`${field}\` of the body`;
  return prefix === undefined ? headersCell(header) : `after \`${prefix}\` in the header`;
}

function headersCell(header = ""): string {
  return header.split(", ").map((name) => name === "" ? "" : `\`${name}\``).join(" or ");
}

function flagsCell(group: string, path: string): string {
  const commands = ADMINISTRATION_COMMANDS.filter(({ words }) => words.startsWith(`${group} `));
  const args = commands.flatMap(({ fields = {} }) => {
    return Object.entries(fields).filter(([, field]) => field === path).map(([name]) => `\`${name}\``);
  });
  const bodyFlags = commands.flatMap(({ flags }) => {
    return Object.entries(flags).filter(([, { into, field, moved }]) => {
      return into === "body" && (field === path || moved?.field === path);
    });
  });
  const flags = bodyFlags.map(([name]) => `\`--${name}\``);
  return [...new Set([...args, ...flags])].join(", ");
}

function valuesCell({ type, choices, min, max }: Field): string {
  if (type === "header") return "";
  if (choices !== undefined) return choices.map((choice) => `\`${choice}\``).join(", ");
  if (type === "flag") return "`true`, `false`";
  if (max === undefined) return "";
  const most = max.toLocaleString("en-US");
  if (min !== undefined) return `${min} to ${most}`;
  return `at most ${most}${type === "kinds" || type === "texts" ? "" : " characters"}`;
}

function defaultCell({ default: value, isRequired }: Field): string {
  if (isRequired === true) return "required";
  return value === undefined || value === "" ? "" : `\`${value}\``;
}

/** Fields of an endpoint that Weir sets where attempts fail or an endpoint is disabled. */
function healthTable(): string {
  const { failingSince, consecutiveFailures, attempts, disabledReason, disabledAt } = ENDPOINT_FIELDS;
  const health: Fields = { failingSince, consecutiveFailures, attempts, disabledReason, disabledAt };
  return table(
    ["Field", "Meaning"],
    Object.entries(health).map(([name, { words }]) => [`\`${name}\``, words]),
  );
}

/** The parameters of all lists, and those that narrow some. */
function parameterTable(): string {
  const filters = [EVENTS, DELIVERIES, REPLAYS, EXECUTIONS, AUDIT].flatMap((resource) => {
    return Object.entries(resource.filters).map(([name, field]) => [name, resource.list, field] as const);
  });
  const common = Object.entries(LIST_PARAMETERS).map(([name, field]) => [name, "all", field] as const);
  const rows = [...common, ...filters].map(([name, list, field]) => {
    return [`\`${name}\``, list, field.words, valuesCell(field)];
  });
  return table(["Parameter", "Lists", "Meaning", "Values"], rows);
}
