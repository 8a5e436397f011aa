import type { AuditEntry, Endpoint, EndpointEdit, EndpointSecret } from "./records.ts";
import type { Parameter, Row, SqliteConnection } from "./sqlite_store_connection.ts";
import { endpointOf, text } from "./sqlite_store_rows.ts";
import { beginRemoval, type RemovalOptions } from "./sqlite_store_removals.ts";
import { addAudit } from "./sqlite_store_trail.ts";

const DAY_MS = 86_400_000;

/** Writes a new endpoint with its secrets. */
export function createEndpoint(connection: SqliteConnection, endpoint: Endpoint, audit: AuditEntry): void {
  connection.run(
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
  for (const secret of endpoint.secrets.toReversed()) insertSecret(connection, endpoint.id, secret);
  addAudit(connection, audit);
}

/** An endpoint by its id. */
export function findEndpoint(connection: SqliteConnection, id: string): Endpoint | undefined {
  return connection.all("SELECT * FROM endpoint WHERE id = ?", id).map(withSecrets(connection))[0];
}

/** Makes endpoints of their rows. */
export function withSecrets(connection: SqliteConnection): (row: Row) => Endpoint {
  return (row) => endpointOf(row, secretRows(connection, text(row, "id")));
}

/** Changes an endpoint; answers it as it is then. */
export function editEndpoint(
  connection: SqliteConnection,
  id: string,
  edit: EndpointEdit,
  { now, audit }: { readonly now: number; readonly audit: AuditEntry },
): Endpoint | undefined {
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
  if (setColumns(connection, "endpoint", id, columns) === 0) return undefined;
  addAudit(connection, audit);
  return findEndpoint(connection, id);
}

/** Sets the columns of a row whose value is given, to NULL too; answers how many rows there were. */
export function setColumns(
  connection: SqliteConnection,
  table: "endpoint" | "workflow_trigger",
  id: string,
  columns: readonly (readonly [name: string, value: Parameter])[],
): number {
  const given = columns.filter(([, value]) => value !== undefined);
  const names = given.map(([name]) => `${name} = ?`).join(", ");
  return connection.run(`UPDATE ${table} SET ${names} WHERE id = ?`, ...given.map(([, value]) => value), id);
}

/** Adds a secret; those that sign no longer and are older than 24 hours go. */
export function addEndpointSecret(
  connection: SqliteConnection,
  id: string,
  secret: EndpointSecret,
  audit: AuditEntry,
): Endpoint | undefined {
  if (findEndpoint(connection, id) === undefined) return undefined;
  insertSecret(connection, id, secret);
  const now = secret.createdAt;
  // The newest one that is active signs, so those before it sign no longer.
  connection.run(
    `DELETE FROM endpoint_secret WHERE endpoint_id = ? AND created_at <= ?
       AND seq < (SELECT max(seq) FROM endpoint_secret WHERE endpoint_id = ? AND active_at <= ?)`,
    id,
    now - DAY_MS,
    id,
    now,
  );
  addAudit(connection, audit);
  return findEndpoint(connection, id);
}

/** Removes an endpoint; its open deliveries fail from now on, in portions. */
export function deleteEndpoint(
  connection: SqliteConnection,
  id: string,
  { audit, ...options }: RemovalOptions & { readonly audit: AuditEntry },
): boolean {
  if (connection.run("DELETE FROM endpoint WHERE id = ?", id) === 0) return false;
  addAudit(connection, audit);
  beginRemoval(connection, "endpoint", id, options);
  return true;
}

function insertSecret(connection: SqliteConnection, endpointId: string, secret: EndpointSecret): void {
  connection.run(
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

function secretRows(connection: SqliteConnection, endpointId: string): readonly Row[] {
  return connection.all("SELECT * FROM endpoint_secret WHERE endpoint_id = ? ORDER BY seq DESC", endpointId);
}
