import { timeText, timeTextIf } from "../../base/rfc3339.ts";
import type { AttemptSums } from "../model/endpoint_health.ts";
import { newEndpointSecret } from "../model/keys.ts";
import type { Endpoint, EndpointEdit, EndpointSecret, Sealed } from "../model/records.ts";
import { signingSecrets } from "../model/signing_secrets.ts";
import {
  ATTEMPT_HOUR,
  ENDPOINT_CHECK,
  ENDPOINT_FIELDS,
  ENDPOINT_RECOVERY,
  ENDPOINT_ROTATION,
  ENDPOINTS,
  MAX_ENDPOINT_SECRETS,
} from "../resources/endpoint.ts";
import { changeFields, newFields, newValues, type Sent } from "../resources/field.ts";
import { addAudit } from "../store/operations/audit_log.ts";
import * as deliveries from "../store/operations/deliveries.ts";
import * as endpoints from "../store/operations/endpoints.ts";
import type { EndpointRecord } from "../store/operations/endpoints.ts";
import { attemptHours, NO_STATISTICS } from "../store/operations/endpoint_health.ts";
import { checkCredentials, sentAuthentication, sentTls } from "./endpoint_credentials.ts";
import { type ENDPOINT_OPERATIONS, MAX_RECOVERED } from "./endpoint_operations.ts";
import { lister } from "./list_query.ts";
import { found, invalidField, notFound, refusal } from "./problem.ts";
import {
  adminAudit,
  type AdministrationParts,
  jsonAnswer,
  NO_CONTENT,
  type RoutedCall,
  type RoutesOf,
  shownRecord,
} from "./route.ts";

const DAY_MS = 86_400_000;
/** The caller waits for the answer of a dry run. */
const MAX_CHECK_MS = 15_000;

const NEW = newFields(ENDPOINT_FIELDS);
const CHANGE = changeFields(ENDPOINT_FIELDS);
type SentHeaders = Sent<typeof NEW>["headers"];

/** `/endpoints`. */
export const ENDPOINT_ROUTES: RoutesOf<typeof ENDPOINT_OPERATIONS> = {
  "POST /endpoints": createEndpoint,
  "GET /endpoints": lister(
    ENDPOINTS,
    endpoints.listEndpointRecords,
    (one, { clock }) => shown(one, clock.now()),
  ),
  "GET /endpoints/:id": getEndpoint,
  "GET /endpoints/:id/attempts": listAttempts,
  "PATCH /endpoints/:id": editEndpoint,
  "DELETE /endpoints/:id": deleteEndpoint,
  "POST /endpoints/:id/rotate": rotateSecret,
  "POST /endpoints/:id/test": checkEndpoint,
  "POST /endpoints/:id/recover": recoverDeliveries,
};

async function createEndpoint(call: RoutedCall) {
  const sent = await call.fields(NEW);
  const { url, enabled } = sent;
  checkForm(sent);
  await checkUrl(url, call);
  const now = call.clock.now();
  const { secret, row } = await newSecret(call, now);
  const headers = await sealedHeaders(sent.headers, call);
  const authentication = await sentAuthentication(sent.authentication, call) ?? undefined;
  const tls = await sentTls(sent.tls, call) ?? undefined;
  const endpoint: Endpoint = {
    ...newValues(ENDPOINT_FIELDS, sent),
    id: call.newId(),
    ...(enabled === false ? { disabledAt: now, disabledReason: "admin" } : {}),
    createdAt: now,
    updatedAt: now,
    headerNames: headers?.names ?? [],
    headers: headers?.sealed,
    authentication: authentication?.shown,
    sealedAuthentication: authentication?.sealed,
    tls: tls?.shown,
    sealedTls: tls?.sealed,
    secrets: [row],
  };
  checkCredentials(endpoint);
  const details = { url, events: endpoint.events };
  const audit = adminAudit(call, "endpoint.created", `endpoint:${endpoint.id}`, details);
  await call.store.write(endpoints.createEndpoint, endpoint, audit);
  call.wakeDispatcher();
  return jsonAnswer(201, { ...shown({ endpoint, statistics: NO_STATISTICS }, now), secret });
}

async function getEndpoint(call: RoutedCall) {
  const now = call.clock.now();
  return jsonAnswer(200, shown(await recordOf(call, now), now));
}

async function listAttempts(call: RoutedCall) {
  const { id } = await endpointOf(call);
  const hours = await call.store.read(attemptHours, id, call.clock.now());
  return jsonAnswer(200, { items: hours.map((hour) => shownRecord(ATTEMPT_HOUR, hour)) });
}

async function editEndpoint(call: RoutedCall) {
  const { id, store, clock } = call;
  const { headers, authentication, tls, ...sent } = await call.fields(CHANGE);
  const { url, enabled } = sent;
  const now = clock.now();
  const current = await recordOf(call, now);
  const { format = current.endpoint.format, template = current.endpoint.template } = sent;
  checkForm({ format, template });
  if (url !== undefined) await checkUrl(url, call);
  const isCleared = headers === null || headers?.length === 0;
  const edit: EndpointEdit = {
    ...sent,
    headers: isCleared ? null : await sealedHeaders(headers, call),
    authentication: await sentAuthentication(authentication, call),
    tls: await sentTls(tls, call),
  };
  checkEdit(current.endpoint, edit);
  const changed = Object.entries(edit).filter(([, value]) => value !== undefined).map(([name]) => name);
  if (changed.length === 0) return jsonAnswer(200, shown(current, now));
  const audit = adminAudit(call, "endpoint.changed", `endpoint:${id}`, {
    fields: changed,
    ...(url === undefined ? {} : { url }),
    ...(enabled === undefined ? {} : { enabled }),
  });
  const isEnabling = enabled === true && !current.endpoint.enabled;
  const missed = isEnabling ? await missedBy(current, call, now) : {};
  found(await store.write(endpoints.editEndpoint, id, edit, { now, audit }), ENDPOINT);
  call.retryNow(id);
  return jsonAnswer(200, { ...shown(await recordOf(call, now), now), ...missed });
}

async function deleteEndpoint(call: RoutedCall) {
  const { id, store, clock, newId } = call;
  const audit = adminAudit(call, "endpoint.deleted", `endpoint:${id}`);
  const isDeleted = await store.write(endpoints.deleteEndpoint, id, { now: clock.now(), audit, newId });
  if (!isDeleted) throw notFound(ENDPOINT);
  call.wakeDispatcher();
  return NO_CONTENT;
}

async function rotateSecret(call: RoutedCall) {
  const { activeIn: activeInMs = DAY_MS } = await call.fields(ENDPOINT_ROTATION, { optional: true });
  const { id } = await endpointOf(call);
  const { secret, row } = await newSecret(call, call.clock.now() + activeInMs);
  const activeAt = timeText(row.activeAt);
  const audit = adminAudit(call, "endpoint.rotated", `endpoint:${id}`, { secretId: row.id, activeAt });
  const endpoint = await call.store.write(endpoints.addEndpointSecret, id, row, audit);
  if (found(endpoint, ENDPOINT) === "too_many") {
    const state =
      `it has ${MAX_ENDPOINT_SECRETS} signing secrets that sign now or later; activeIn 0 replaces them`;
    throw refusal("too_many_secrets", `Cannot rotate the secret of the endpoint: ${state}`);
  }
  call.retryNow(id);
  return jsonAnswer(200, { secret, activeAt });
}

async function checkEndpoint(call: RoutedCall) {
  const { event: kind, data } = await call.fields(ENDPOINT_CHECK, { optional: true });
  const endpoint = await endpointOf(call);
  const timeoutMs = Math.min(endpoint.timeoutMs ?? MAX_CHECK_MS, MAX_CHECK_MS);
  const stages = await call.check({ ...endpoint, timeoutMs }, { kind, data });
  const { id, url } = endpoint;
  const ok = stages.every((stage) => stage.ok);
  await call.store.write(addAudit, adminAudit(call, "endpoint.checked", `endpoint:${id}`, { url, ok }));
  return jsonAnswer(200, { url, ok, stages });
}

async function recoverDeliveries(call: RoutedCall) {
  const { id: endpointId, store, clock } = call;
  const { since, until, dryRun = false } = await call.fields(ENDPOINT_RECOVERY);
  if (until <= since) throw invalidField("until", "expected a time after since");
  const range = { endpointId, since, until, max: MAX_RECOVERED, now: clock.now() };
  const details = { since: timeText(since), until: timeText(until) };
  const audit = adminAudit(call, "endpoint.recovered", `endpoint:${endpointId}`, details);
  const count = found(await store.write(deliveries.recoverDeliveries, { ...range, dryRun, audit }), ENDPOINT);
  if (!dryRun) call.retryNow(endpointId);
  return jsonAnswer(dryRun ? 200 : 202, { count });
}

const ENDPOINT = "this endpoint";

async function endpointOf({ id, store }: RoutedCall): Promise<Endpoint> {
  return found(await store.read(endpoints.findEndpoint, id), ENDPOINT);
}

async function recordOf({ id, store }: RoutedCall, now: number): Promise<EndpointRecord> {
  return found(await store.read(endpoints.findEndpointRecord, id, now), ENDPOINT);
}

/** The number of deliveries that failed since the endpoint began to fail or was disabled, and the start of their recovery. */
async function missedBy({ endpoint, statistics }: EndpointRecord, { store }: RoutedCall, now: number) {
  const { id: endpointId, disabledAt = now } = endpoint;
  const failedSince = Math.min(disabledAt, statistics.run.failingSince ?? now);
  const missed = await store.read(deliveries.missedDeliveries, { endpointId, failedSince, until: now });
  return { missed: missed.count, missedSince: timeTextIf(missed.since) };
}

/** Checks the credentials of the endpoint as it will be. */
function checkEdit(endpoint: Endpoint, { url, headers, authentication, tls }: EndpointEdit): void {
  if ([url, headers, authentication, tls].every((part) => part === undefined)) return;
  checkCredentials({
    url: url ?? endpoint.url,
    headerNames: headers === undefined ? endpoint.headerNames : headers?.names ?? [],
    authentication: authentication === undefined ? endpoint.authentication : authentication?.shown,
    tls: tls === undefined ? endpoint.tls : tls?.shown,
  });
}

/** A body has one form. */
function checkForm({ format, template }: Pick<Sent<typeof CHANGE>, "format" | "template">): void {
  if ((format ?? undefined) === undefined || (template ?? undefined) === undefined) return;
  throw invalidField("template", "expected either format or template; set the other one to null");
}

async function checkUrl(url: string, { urlProblem }: AdministrationParts): Promise<void> {
  const problem = await urlProblem(url);
  if (problem !== undefined) throw invalidField("url", problem);
}

async function newSecret(
  { newId, clock, randomBytes, seal }: AdministrationParts,
  activeAt: number,
): Promise<{ secret: string; row: EndpointSecret }> {
  const secret = newEndpointSecret(randomBytes);
  return { secret, row: { id: newId(), sealed: await seal(secret), createdAt: clock.now(), activeAt } };
}

async function sealedHeaders(
  headers: SentHeaders,
  { seal }: AdministrationParts,
): Promise<{ names: readonly string[]; sealed: Sealed } | undefined> {
  if (headers === undefined || headers === null || headers.length === 0) return undefined;
  const names = headers.map(([name]) => name);
  return { names, sealed: await seal(JSON.stringify(Object.fromEntries(headers))) };
}

/** Shows of headers the names only, and of secrets when they sign. */
function shown({ endpoint, statistics }: EndpointRecord, now: number): Record<string, unknown> {
  const { enabled, headerNames, secrets, disabledAt, disabledReason = "admin" } = endpoint;
  const { run, hour, day } = statistics;
  const periods = [sumsOf("1h", hour), sumsOf("24h", day)].filter(({ attempts }) => attempts > 0);
  const signing = signingSecrets(endpoint, now);
  const active = secrets.findIndex((secret) => secret === signing[0]);
  return shownRecord(ENDPOINT_FIELDS, {
    ...endpoint,
    disabledReason: enabled ? undefined : disabledReason,
    disabledAt: enabled ? undefined : disabledAt,
    failingSince: run.failingSince,
    consecutiveFailures: run.failures === 0 ? undefined : run.failures,
    headers: headerNames,
    attempts: periods.length === 0 ? undefined : periods,
    secrets: secrets.map((secret, index) => ({
      ...secret,
      signs: signing.includes(secret),
      // The newest comes first.
      state: index === active ? "signing" : index < active ? "pending" : "retired",
    })),
  });
}

function sumsOf(period: string, { succeeded, failed, answered, totalMs, maxMs }: AttemptSums) {
  const attempts = succeeded + failed;
  const times = answered === 0 ? {} : { meanMs: Math.round(totalMs / answered), maxMs };
  return { period, attempts, failures: failed, successRate: rounded(succeeded / attempts), ...times };
}

/** Rounded down, so that a failure always shows. */
function rounded(rate: number): number {
  return Math.floor(rate * 10_000) / 10_000;
}
