import {
  type AuditEntry,
  type Endpoint,
  type EndpointEdit,
  type EndpointSecret,
  MAX_ENDPOINT_SECRETS,
} from "../model/records.ts";
import { bytes, ENDPOINTS, SECRETS, text } from "./rows.ts";
import { listPageOf } from "./lists.ts";
import { beginRemoval } from "./removals.ts";
import { addAudit } from "./audit_log.ts";
import { all, get, type Row, run, sql, type Work } from "./work.ts";
import type { ChangeOptions, ListOptions, Page, RemovalOptions } from "./store.ts";

const DAY_MS = 86_400_000;

const LOCK = sql((d) => `SELECT id FROM endpoint WHERE id = ? ${d.lock()}`);
const REMOVE_SECRETS = sql((d) => `DELETE FROM endpoint_secret WHERE ${d.among("id")}`);
const SECRETS_OF = sql((d) =>
  `SELECT * FROM endpoint_secret WHERE ${d.among("endpoint_id")} ORDER BY seq DESC`
);

/** Writes a new endpoint with its secrets. */
export function* createEndpoint(endpoint: Endpoint, audit: AuditEntry): Work<void> {
  const { keyId, bytes } = endpoint.headers ?? {};
  yield* ENDPOINTS.insert(endpoint, { headers_key_id: keyId, headers_bytes: bytes });
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
    yield* all(SECRETS_OF, rows.map((row) => text(row, "id"))),
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
  const { headers, ...fields } = edit;
  const columns = headers === undefined
    ? {}
    : { headers_key_id: headers?.sealed.keyId ?? null, headers_bytes: headers?.sealed.bytes ?? null };
  const headerNames = headers === undefined ? undefined : headers?.names ?? [];
  const changed = yield* ENDPOINTS.update(id, { ...fields, headerNames, updatedAt: now }, columns);
  if (changed === 0) return undefined;
  yield* addAudit(audit);
  return yield* findEndpoint(id);
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
  const { keyId, bytes } = secret.sealed;
  yield* SECRETS.insert(secret, { endpoint_id: endpointId, key_id: keyId, bytes });
}

function endpointOf(row: Row, secrets: readonly Row[]): Endpoint {
  const headers = row["headers_bytes"] === null
    ? {}
    : { headers: { keyId: text(row, "headers_key_id"), bytes: bytes(row, "headers_bytes") } };
  return { ...ENDPOINTS.read(row), ...headers, secrets: secrets.map(secretOf) };
}

function secretOf(row: Row): EndpointSecret {
  return { ...SECRETS.read(row), sealed: { keyId: text(row, "key_id"), bytes: bytes(row, "bytes") } };
}
