import {
  adminAudit,
  type AdministrationParts,
  type AdministrationRoute,
  jsonAnswer,
  NO_CONTENT,
  type RoutedCall,
} from "./route.ts";
import { signingSecret } from "../deliveries/request.ts";
import { ENDPOINT_FIELDS, sentEndpoint, sentUrl, type StaticHeaders } from "./endpoint_fields.ts";
import { FieldReader } from "./field_reader.ts";
import { newEndpointSecret } from "../model/keys.ts";
import { listOptionsOf, pageOf } from "./list_query.ts";
import { conflict, invalidField, notFound } from "./problem.ts";
import { type Endpoint, type EndpointSecret, MAX_ENDPOINT_SECRETS, type Sealed } from "../model/records.ts";
import type { WebhookAnswer } from "./calls.ts";
import { timeText } from "../../base/rfc3339.ts";
import { addAudit } from "../store/audit_log.ts";
import * as deliveries from "../store/deliveries.ts";
import * as endpoints from "../store/endpoints.ts";

const DEFAULT_CONCURRENCY = 4;
const DAY_MS = 86_400_000;
const MAX_ACTIVE_IN_MS = 30 * DAY_MS;
/** Whoever asks for a dry run waits for its answer. */
const MAX_CHECK_MS = 15_000;
/** Deliveries that one call makes open again. */
const MAX_RECOVERED = 10_000;

/** `/endpoints`. */
export function endpointRoutes(parts: AdministrationParts): AdministrationRoute[] {
  return [
    { method: "POST", pattern: "/endpoints", handle: (call) => createEndpoint(call, parts) },
    { method: "GET", pattern: "/endpoints", handle: (call) => listEndpoints(call, parts) },
    { method: "GET", pattern: "/endpoints/:id", handle: (call) => getEndpoint(call, parts) },
    { method: "PATCH", pattern: "/endpoints/:id", handle: (call) => editEndpoint(call, parts) },
    { method: "DELETE", pattern: "/endpoints/:id", handle: (call) => deleteEndpoint(call, parts) },
    { method: "POST", pattern: "/endpoints/:id/rotate", handle: (call) => rotateSecret(call, parts) },
    { method: "POST", pattern: "/endpoints/:id/check", handle: (call) => checkEndpoint(call, parts) },
    { method: "POST", pattern: "/endpoints/:id/recover", handle: (call) => recoverDeliveries(call, parts) },
  ];
}

async function createEndpoint({ object }: RoutedCall, parts: AdministrationParts): Promise<WebhookAnswer> {
  const fields = new FieldReader(object(), ENDPOINT_FIELDS);
  const url = await goodUrl(fields.text("url", { maxLength: 2_048 }), parts);
  const sent = sentEndpoint(fields);
  const now = parts.clock.now();
  const { secret, row } = await newSecret(parts, now);
  const headers = await sealedHeaders(sent.headers, parts);
  const endpoint: Endpoint = {
    id: parts.newId(),
    url,
    events: sent.events ?? ["*"],
    description: sent.description ?? "",
    enabled: sent.enabled ?? true,
    createdAt: now,
    updatedAt: now,
    headerNames: headers?.names ?? [],
    headers: headers?.sealed,
    concurrency: sent.concurrency ?? DEFAULT_CONCURRENCY,
    timeoutMs: sent.timeoutMs,
    standardWebhooks: sent.standardWebhooks ?? false,
    secrets: [row],
  };
  const audit = adminAudit(parts, "endpoint.created", `endpoint:${endpoint.id}`, {
    url,
    events: endpoint.events,
  });
  await parts.store.write(endpoints.createEndpoint, endpoint, audit);
  parts.wakeDispatcher();
  return jsonAnswer(201, { ...shown(endpoint, now), secret });
}

async function listEndpoints({ query }: RoutedCall, { store, clock }: AdministrationParts) {
  const options = listOptionsOf(query, ["since", "until"]);
  return jsonAnswer(
    200,
    await pageOf(store.read(endpoints.listEndpoints, options), (one) => shown(one, clock.now())),
  );
}

async function getEndpoint(call: RoutedCall, parts: AdministrationParts) {
  return jsonAnswer(200, shown(await found(call, parts), parts.clock.now()));
}

async function editEndpoint(call: RoutedCall, parts: AdministrationParts): Promise<WebhookAnswer> {
  const fields = new FieldReader(call.object(), ENDPOINT_FIELDS);
  const { headers, ...sent } = sentEndpoint(fields);
  const url = sentUrl(fields);
  const now = parts.clock.now();
  const current = await found(call, parts);
  const { id } = current;
  const edit = {
    ...sent,
    url: url === undefined ? undefined : await goodUrl(url, parts),
    timeoutMs: fields.isNull("timeoutMs") ? null : sent.timeoutMs,
    headers: fields.isNull("headers") || headers?.length === 0 ? null : await sealedHeaders(headers, parts),
  };
  const changed = Object.entries(edit).filter(([, value]) => value !== undefined).map(([name]) => name);
  if (changed.length === 0) return jsonAnswer(200, shown(current, now));
  const audit = adminAudit(parts, "endpoint.changed", `endpoint:${id}`, {
    fields: changed,
    ...(edit.url === undefined ? {} : { url: edit.url }),
    ...(edit.enabled === undefined ? {} : { enabled: edit.enabled }),
  });
  const endpoint = await parts.store.write(endpoints.editEndpoint, id, edit, { now, audit });
  if (endpoint === undefined) throw notFound("this endpoint");
  parts.wakeDispatcher();
  return jsonAnswer(200, shown(endpoint, now));
}

async function deleteEndpoint({ ids: [id = ""] }: RoutedCall, parts: AdministrationParts) {
  const { store, clock, newId } = parts;
  const audit = adminAudit(parts, "endpoint.deleted", `endpoint:${id}`);
  const isDeleted = await store.write(endpoints.deleteEndpoint, id, { now: clock.now(), audit, newId });
  if (!isDeleted) throw notFound("this endpoint");
  parts.wakeDispatcher();
  return NO_CONTENT;
}

async function rotateSecret(call: RoutedCall, parts: AdministrationParts): Promise<WebhookAnswer> {
  const fields = new FieldReader(call.object({ optional: true }), ["activeIn"]);
  const activeInMs = fields.durationIfGiven("activeIn", { maxMs: MAX_ACTIVE_IN_MS }) ?? DAY_MS;
  const { id } = await found(call, parts);
  const { secret, row } = await newSecret(parts, parts.clock.now() + activeInMs);
  const activeAt = timeText(row.activeAt);
  const audit = adminAudit(parts, "endpoint.rotated", `endpoint:${id}`, { secretId: row.id, activeAt });
  const endpoint = await parts.store.write(endpoints.addEndpointSecret, id, row, audit);
  if (endpoint === undefined) throw notFound("this endpoint");
  if (endpoint === "too_many") {
    const state =
      `it has ${MAX_ENDPOINT_SECRETS} signing secrets that sign now or later; activeIn 0 replaces them`;
    throw conflict("too_many_secrets", `Cannot rotate the secret of the endpoint: ${state}`);
  }
  parts.wakeDispatcher();
  return jsonAnswer(200, { secret, activeAt });
}

async function checkEndpoint(call: RoutedCall, parts: AdministrationParts): Promise<WebhookAnswer> {
  const endpoint = await found(call, parts);
  const timeoutMs = Math.min(endpoint.timeoutMs ?? MAX_CHECK_MS, MAX_CHECK_MS);
  const stages = await parts.check({ ...endpoint, timeoutMs });
  const { id, url } = endpoint;
  const ok = stages.every((stage) => stage.ok);
  await parts.store.write(addAudit, adminAudit(parts, "endpoint.checked", `endpoint:${id}`, { url, ok }));
  return jsonAnswer(200, { url, ok, stages });
}

async function recoverDeliveries(call: RoutedCall, parts: AdministrationParts): Promise<WebhookAnswer> {
  const fields = new FieldReader(call.object(), ["since", "until", "dryRun"]);
  const now = parts.clock.now();
  const since = fields.moment("since", now);
  const until = fields.moment("until", now);
  if (until <= since) throw invalidField("until", "a time after since is wanted");
  const dryRun = fields.flagIfGiven("dryRun") ?? false;
  const [endpointId = ""] = call.ids;
  const range = { endpointId, since, until, max: MAX_RECOVERED, now };
  const details = { since: timeText(since), until: timeText(until) };
  const audit = adminAudit(parts, "endpoint.recovered", `endpoint:${endpointId}`, details);
  const count = await parts.store.write(deliveries.recoverDeliveries, { ...range, dryRun, audit });
  if (count === undefined) throw notFound("this endpoint");
  if (!dryRun) parts.wakeDispatcher();
  return jsonAnswer(dryRun ? 200 : 202, { count });
}

async function found({ ids: [id = ""] }: RoutedCall, { store }: AdministrationParts): Promise<Endpoint> {
  const endpoint = await store.read(endpoints.findEndpoint, id);
  if (endpoint === undefined) throw notFound("this endpoint");
  return endpoint;
}

async function goodUrl(url: string, { urlProblem }: AdministrationParts): Promise<string> {
  const problem = await urlProblem(url);
  if (problem !== undefined) throw invalidField("url", problem);
  return url;
}

async function newSecret(
  { newId, clock, randomBytes, seal }: AdministrationParts,
  activeAt: number,
): Promise<{ secret: string; row: EndpointSecret }> {
  const secret = newEndpointSecret(randomBytes);
  return { secret, row: { id: newId(), sealed: await seal(secret), createdAt: clock.now(), activeAt } };
}

async function sealedHeaders(
  headers: StaticHeaders | undefined,
  { seal }: AdministrationParts,
): Promise<{ names: readonly string[]; sealed: Sealed } | undefined> {
  if (headers === undefined || headers.length === 0) return undefined;
  const names = headers.map(([name]) => name);
  return { names, sealed: await seal(JSON.stringify(Object.fromEntries(headers))) };
}

/** As it is answered: of headers the names, of secrets when they sign. */
function shown(endpoint: Endpoint, now: number): Record<string, unknown> {
  const active = signingSecret(endpoint.secrets, now);
  return {
    id: endpoint.id,
    url: endpoint.url,
    events: endpoint.events,
    description: endpoint.description,
    enabled: endpoint.enabled,
    headers: endpoint.headerNames,
    concurrency: endpoint.concurrency,
    timeoutMs: endpoint.timeoutMs,
    standardWebhooks: endpoint.standardWebhooks,
    secrets: endpoint.secrets.map((secret) => ({
      id: secret.id,
      createdAt: timeText(secret.createdAt),
      activeAt: timeText(secret.activeAt),
      signs: secret === active,
    })),
    createdAt: timeText(endpoint.createdAt),
    updatedAt: timeText(endpoint.updatedAt),
  };
}
