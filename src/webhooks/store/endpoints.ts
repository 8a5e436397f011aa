import {
  type AuditEntry,
  type Endpoint,
  type EndpointEdit,
  type EndpointSecret,
  MAX_ENDPOINT_SECRETS,
} from "../model/records.ts";
import { endpointOf, text } from "./rows.ts";
import { listPageOf } from "./lists.ts";
import { beginRemoval } from "./removals.ts";
import { addAudit } from "./audit_log.ts";
import { all, get, type Parameter, type Row, run, sql, type Work } from "./work.ts";
import type { ChangeOptions, ListOptions, Page, RemovalOptions } from "./store.ts";

const DAY_MS = 86_400_000;

const LOCK = sql((d) => `SELECT id FROM endpoint WHERE id = ? ${d.lock()}`);
const REMOVE_SECRETS = sql((d) => `DELETE FROM endpoint_secret WHERE ${d.among("id")}`);
const SECRETS = sql((d) => `SELECT * FROM endpoint_secret WHERE ${d.among("endpoint_id")} ORDER BY seq DESC`);

/** Writes a new endpoint with its secrets. */
export function* createEndpoint(endpoint: Endpoint, audit: AuditEntry): Work<void> {
  yield* run(
    `INSERT INTO endpoint (id, url, events, description, enabled, created_at, updated_at, header_names,
       headers_key_id, headers_bytes, concurrency, timeout_ms, standard_webhooks)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    endpoint.id,
    endpoint.url,
    JSON.stringify(endpoint.events),
    endpoint.description,
    endpoint.enabled,
    endpoint.createdAt,
    endpoint.updatedAt,
    JSON.stringify(endpoint.headerNames),
    endpoint.headers?.keyId,
    endpoint.headers?.bytes,
    endpoint.concurrency,
    endpoint.timeoutMs,
    endpoint.standardWebhooks,
  );
  for (const secret of endpoint.secrets.toReversed()) yield* insertSecret(endpoint.id, secret);
  yield* addAudit(audit);
}

/** An endpoint by its id. */
export function* findEndpoint(id: string): Work<Endpoint | undefined> {
  const [endpoint] = yield* endpointsOf(yield* all("SELECT * FROM endpoint WHERE id = ?", id));
  return endpoint;
}

/** Endpoints, newest first. */
export function listEndpoints(options: ListOptions): Work<Page<Endpoint>> {
  return listPageOf("endpoints", options, endpointsOf);
}

/** Reads the endpoints of rows with their secrets. */
export function* endpointsOf(rows: readonly Row[]): Work<readonly Endpoint[]> {
  if (rows.length === 0) return [];
  const secrets = Map.groupBy(
    yield* all(SECRETS, rows.map((row) => text(row, "id"))),
    (secret) => text(secret, "endpoint_id"),
  );
  return rows.map((row) => endpointOf(row, secrets.get(text(row, "id")) ?? []));
}

/** Changes an endpoint; answers it as it is then. */
export function* editEndpoint(
  id: string,
  edit: EndpointEdit,
  { now, audit }: ChangeOptions,
): Work<Endpoint | undefined> {
  const { headers, events } = edit;
  const columns: readonly (readonly [string, Parameter])[] = [
    ["updated_at", now],
    ["url", edit.url],
    ["events", events && JSON.stringify(events)],
    ["description", edit.description],
    ["enabled", edit.enabled],
    ["header_names", headers === undefined ? undefined : JSON.stringify(headers?.names ?? [])],
    ["headers_key_id", headers && headers.sealed.keyId],
    ["headers_bytes", headers && headers.sealed.bytes],
    ["concurrency", edit.concurrency],
    ["timeout_ms", edit.timeoutMs],
    ["standard_webhooks", edit.standardWebhooks],
  ];
  if ((yield* setColumns("endpoint", id, columns)) === 0) return undefined;
  yield* addAudit(audit);
  return yield* findEndpoint(id);
}

/** Sets the columns of a row whose value is given, to NULL too; answers how many rows there were. */
export function* setColumns(
  table: "endpoint" | "workflow_trigger",
  id: string,
  columns: readonly (readonly [name: string, value: Parameter])[],
): Work<number> {
  const given = columns.filter(([, value]) => value !== undefined);
  const names = given.map(([name]) => `${name} = ?`).join(", ");
  return yield* run(`UPDATE ${table} SET ${names} WHERE id = ?`, ...given.map(([, value]) => value), id);
}

/** Adds a secret; those that sign no longer go when they are older than 24 hours, or too many. */
export function* addEndpointSecret(
  id: string,
  secret: EndpointSecret,
  audit: AuditEntry,
): Work<Endpoint | "too_many" | undefined> {
  if ((yield* get(LOCK, id)) === undefined) return undefined;
  const endpoint = yield* findEndpoint(id);
  if (endpoint === undefined) return undefined;
  const now = secret.createdAt;
  const secrets = [secret, ...endpoint.secrets];
  const signing = secrets.findIndex(({ activeAt }) => activeAt <= now);
  // The newest one that is active signs, so those before it sign no longer.
  const kept = secrets.filter(({ createdAt }, index) =>
    signing === -1 || index <= signing || index < MAX_ENDPOINT_SECRETS && createdAt > now - DAY_MS
  );
  if (kept.length > MAX_ENDPOINT_SECRETS) return "too_many";
  yield* run(REMOVE_SECRETS, secrets.filter((one) => !kept.includes(one)).map((one) => one.id));
  yield* insertSecret(id, secret);
  yield* addAudit(audit);
  return { ...endpoint, secrets: kept };
}

/** Removes an endpoint; its open deliveries fail from now on, in portions. */
export function* deleteEndpoint(
  id: string,
  { audit, ...options }: RemovalOptions & { readonly audit: AuditEntry },
): Work<boolean> {
  if ((yield* run("DELETE FROM endpoint WHERE id = ?", id)) === 0) return false;
  yield* addAudit(audit);
  yield* beginRemoval("endpoint", id, options);
  return true;
}

function* insertSecret(endpointId: string, secret: EndpointSecret): Work<void> {
  yield* run(
    `INSERT INTO endpoint_secret (id, endpoint_id, key_id, bytes, created_at, active_at)
     VALUES (?, ?, ?, ?, ?, ?)`,
    secret.id,
    endpointId,
    secret.sealed.keyId,
    secret.sealed.bytes,
    secret.createdAt,
    secret.activeAt,
  );
}
