import type { JsonObject } from "../../base/exact_json.ts";
import {
  choiceSchema,
  closedSchema,
  type JsonSchema,
  type SchemaProperties,
} from "../../base/json_schema.ts";
import { readTls } from "../deliveries/endpoint_tls.ts";
import type { OpenedAuthentication } from "../model/credentials.ts";
import type { Credentials, Endpoint, EndpointAuthentication, EndpointTls } from "../model/records.ts";
import { AUTHENTICATION, AUTHENTICATION_PARTS, ENDPOINT_TLS } from "../resources/endpoint_authentication.ts";
import { type Fields, isShown, newFields } from "../resources/field.ts";
import { readFields } from "./field_reader.ts";
import { sentSchemas } from "./field_schemas.ts";
import { invalidField } from "./problem.ts";
import type { AdministrationParts } from "./route.ts";

type AuthenticationType = keyof typeof AUTHENTICATION_PARTS;

/** Schemas of the credentials of requests, by name. */
export function credentialSchemas(): SchemaProperties {
  const { certificate = {}, key = {}, ca = {} } = sentSchemas(newFields(ENDPOINT_TLS));
  const types = Object.keys(AUTHENTICATION_PARTS) as AuthenticationType[];
  return {
    NewEndpointAuthentication: {
      anyOf: types.map(authenticationSchema),
      description: AUTHENTICATION.type.words,
    },
    NewEndpointTls: {
      anyOf: [closedSchema({ certificate, key }, { ca }), closedSchema({ ca })],
      description: "The client certificate with its key, the authorities of the receiver, or both.",
    },
  };
}

function authenticationSchema(type: AuthenticationType): JsonSchema {
  const schemas = sentSchemas(AUTHENTICATION);
  const chosen = (names: readonly string[]) =>
    Object.fromEntries(names.map((name) => [name, schemas[name] ?? {}]));
  const { required, optional } = AUTHENTICATION_PARTS[type];
  return closedSchema(
    { type: choiceSchema([type], AUTHENTICATION.type.words), ...chosen(required) },
    chosen(optional),
  );
}

/** The authentication of a request, encrypted; `null` removes it. Refuses fields of other types. */
export async function sentAuthentication(
  object: JsonObject | null | undefined,
  { seal, urlProblem }: Pick<AdministrationParts, "seal" | "urlProblem">,
): Promise<Credentials<EndpointAuthentication> | null | undefined> {
  if (object === null || object === undefined) return object;
  const sent = readFields(object, AUTHENTICATION, { prefix: "authentication." });
  const { required, optional } = AUTHENTICATION_PARTS[sent.type];
  const own: readonly string[] = ["type", ...required, ...optional];
  const foreign = Object.keys(sent).find((name) =>
    sent[name as keyof typeof sent] !== undefined && !own.includes(name)
  );
  if (foreign !== undefined) {
    const known = own.slice(1).join(", ");
    throw invalidField(`authentication.${foreign}`, `${sent.type} does not have it; expected ${known}`);
  }
  const missing = required.find((name) => sent[name] === undefined);
  if (missing !== undefined) throw invalidField(`authentication.${missing}`, `${sent.type} requires it`);
  const problem = sent.tokenUrl === undefined ? undefined : await urlProblem(sent.tokenUrl);
  if (problem !== undefined) throw invalidField("authentication.tokenUrl", problem);
  const opened = sent as OpenedAuthentication;
  return { shown: withoutSecrets(AUTHENTICATION, opened), sealed: await seal(JSON.stringify(opened)) };
}

function withoutSecrets(fields: Fields, opened: OpenedAuthentication): EndpointAuthentication {
  const shown = Object.entries(opened).filter(([name, value]) => {
    const field = fields[name];
    return value !== undefined && field !== undefined && isShown(field);
  });
  return Object.fromEntries(shown) as unknown as EndpointAuthentication;
}

/** The certificates of a request, checked and encrypted; `null` removes them. */
export async function sentTls(
  object: JsonObject | null | undefined,
  { seal, clock }: Pick<AdministrationParts, "seal" | "clock">,
): Promise<Credentials<EndpointTls> | null | undefined> {
  if (object === null || object === undefined) return object;
  const sent = readFields(object, newFields(ENDPOINT_TLS), { prefix: "tls." });
  const read = readTls(sent, clock.now());
  if ("problem" in read) throw invalidField(read.field === "" ? "tls" : `tls.${read.field}`, read.problem);
  return { shown: read.shown, sealed: await seal(JSON.stringify(read.opened)) };
}

/** Refuses parts that exclude each other: two values of a header, and certificates without TLS. */
export function checkCredentials(
  { url, headerNames, authentication, tls }: Pick<Endpoint, "url" | "headerNames" | "authentication" | "tls">,
): void {
  const header = headerNames.find((name) => name.toLowerCase() === "authorization");
  if (authentication !== undefined && header !== undefined) {
    throw invalidField(`headers.${header}`, "the authentication of the endpoint sets it; remove one of them");
  }
  if (tls !== undefined && new URL(url).protocol !== "https:") {
    throw invalidField("tls", "expected it only with a URL with the scheme https");
  }
}
