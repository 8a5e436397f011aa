import type {
  AuditEntry,
  Credentials,
  DisabledReason,
  Endpoint,
  EndpointEdit,
  EndpointSecret,
  Sealed,
} from "../../model/records.ts";
import { signingSecrets } from "../../model/signing_secrets.ts";
import { MAX_ENDPOINT_SECRETS } from "../../resources/endpoint.ts";
import { type EndpointStatistics, endpointStatistics, forgetFailures } from "./endpoint_health.ts";
import { integer, RECORDS, sealedOf, text } from "../rows.ts";
import { listPageOf } from "./lists.ts";
import { beginRemoval } from "./removals.ts";
import { addAudit } from "./audit_log.ts";
import { all, get, type Row, run, sql, type Work } from "../work.ts";
import type { ChangeOptions, ListOptions, Page, RemovalOptions } from "../store.ts";

const DAY_MS = 86_400_000;

const LOCK = sql((d) => `SELECT id, enabled, rate_limit FROM endpoint WHERE id = ? ${d.lock()}`);
const REMOVE_SECRETS = sql((d) => `DELETE FROM endpoint_secret WHERE ${d.among("id")}`);
const SECRETS_OF = sql((d) =>
  `SELECT * FROM endpoint_secret WHERE ${d.among("endpoint_id")} ORDER BY seq DESC`
);

/** Creates an endpoint with its secrets. */
export function* createEndpoint(endpoint: Endpoint, audit: AuditEntry): Work<void> {
  const { headers, sealedAuthentication, sealedTls } = endpoint;
  yield* RECORDS.endpoints.insert(endpoint, {
    ...sealedColumns("headers", headers),
    ...sealedColumns("authentication", sealedAuthentication),
    ...sealedColumns("tls", sealedTls),
  });
  for (const secret of endpoint.secrets.toReversed()) yield* insertSecret(endpoint.id, secret);
  yield* addAudit(audit);
}

/** An endpoint by its id. */
export function* findEndpoint(id: string): Work<Endpoint | undefined> {
  return (yield* endpointsOf(yield* all("SELECT * FROM endpoint WHERE id = ?", id)))[0];
}

/** Endpoints, newest first. */
export function listEndpoints(options: ListOptions): Work<Page<Endpoint>> {
  return listPageOf("endpoints", options, endpointsOf);
}

/** An endpoint with the statistics of its attempts. */
export interface EndpointRecord {
  readonly endpoint: Endpoint;
  readonly statistics: EndpointStatistics;
}

/** An endpoint by its id, with its statistics. */
export function* findEndpointRecord(id: string, now: number): Work<EndpointRecord | undefined> {
  const endpoint = yield* findEndpoint(id);
  return endpoint && (yield* recordsOf([endpoint], now))[0];
}

/** Endpoints with their statistics, newest first. */
export function* listEndpointRecords(options: ListOptions, now: number): Work<Page<EndpointRecord>> {
  const { items, ...page } = yield* listEndpoints(options);
  return { ...page, items: yield* recordsOf(items, now) };
}

function* recordsOf(endpoints: readonly Endpoint[], now: number): Work<readonly EndpointRecord[]> {
  if (endpoints.length === 0) return [];
  const found = yield* endpointStatistics(endpoints.map(({ id }) => id), now);
  return endpoints.flatMap((endpoint) => {
    const statistics = found.get(endpoint.id);
    return statistics === undefined ? [] : [{ endpoint, statistics }];
  });
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

/** Changes an endpoint and returns it. */
export function* editEndpoint(
  id: string,
  edit: EndpointEdit,
  { now, audit }: ChangeOptions,
): Work<Endpoint | undefined> {
  const { headers, authentication, tls, ...others } = edit;
  const fields = { ...others, authentication: shownOf(authentication), tls: shownOf(tls) };
  const sealed = {
    ...sealedColumns("headers", sealedIn(headers)),
    ...sealedColumns("authentication", sealedIn(authentication)),
    ...sealedColumns("tls", sealedIn(tls)),
  };
  const headerNames = headers === undefined ? undefined : headers?.names ?? [];
  const current = yield* get(LOCK, id);
  if (current === undefined) return undefined;
  const isEnabled = integer(current, "enabled") !== 0;
  if (fields.enabled === true && !isEnabled) yield* forgetFailures(id);
  const disabling = disablingOf(isEnabled, fields.enabled, now);
  const columns = { ...sealed, ...rateColumns(current, fields.rateLimit) };
  yield* RECORDS.endpoints.update(id, { ...fields, ...disabling, headerNames, updatedAt: now }, columns);
  yield* addAudit(audit);
  return yield* findEndpoint(id);
}

/** Adds a secret; removes those that sign no longer, not second either, and are older than 24 hours, or too many. */
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
  const active = secrets.findIndex(({ activeAt }) => activeAt <= now);
  const signing = signingSecrets({ ...endpoint, secrets }, now);
  // The newest active secret signs, so older ones no longer do, but for the overlap.
  const kept = secrets.filter((one, index) =>
    active === -1 || index <= active ||
    index < MAX_ENDPOINT_SECRETS && (one.createdAt > now - DAY_MS || signing.includes(one))
  );
  if (kept.length > MAX_ENDPOINT_SECRETS) return "too_many";
  yield* run(REMOVE_SECRETS, secrets.filter((one) => !kept.includes(one)).map((one) => one.id));
  yield* insertSecret(id, secret);
  yield* addAudit(audit);
  return { ...endpoint, secrets: kept };
}

/** Removes an endpoint; its open deliveries fail with `endpoint_deleted`, in portions. False when there is none. */
export function* deleteEndpoint(
  id: string,
  { audit, ...options }: RemovalOptions & { readonly audit: AuditEntry },
): Work<boolean> {
  if ((yield* run("DELETE FROM endpoint WHERE id = ?", id)) === 0) return false;
  yield* addAudit(audit);
  yield* beginRemoval("endpoint", id, options);
  return true;
}

/** The further changes of a change of `enabled`; an endpoint that is disabled already keeps its reason. */
function disablingOf(isEnabled: boolean, enabled: boolean | undefined, now: number) {
  if (enabled === undefined || enabled === isEnabled) return {};
  return enabled
    ? { disabledAt: null, disabledReason: null }
    : { disabledAt: now, disabledReason: "admin" satisfies DisabledReason };
}

/** Another rate begins with a full bucket; the same one keeps its state. */
function rateColumns(current: Row, rate: EndpointEdit["rateLimit"]) {
  const isKept = rate === undefined || JSON.stringify(rate) === (current["rate_limit"] ?? "null");
  return isKept ? {} : { rate_state: null, rate_next_at: null };
}

/** The columns of an encrypted value: `null` removes it, and `undefined` leaves it as it is. */
function sealedColumns(prefix: string, sealed: Sealed | null | undefined) {
  return sealed === undefined
    ? {}
    : { [`${prefix}_key_id`]: sealed?.keyId ?? null, [`${prefix}_bytes`]: sealed?.bytes ?? null };
}

function sealedIn(edit: { readonly sealed: Sealed } | null | undefined): Sealed | null | undefined {
  return edit === null ? null : edit?.sealed;
}

function shownOf<T>(edit: Credentials<T> | null | undefined): T | null | undefined {
  return edit === null ? null : edit?.shown;
}

function* insertSecret(endpointId: string, secret: EndpointSecret): Work<void> {
  const { keyId, bytes } = secret.sealed;
  yield* RECORDS.secrets.insert(secret, { endpoint_id: endpointId, key_id: keyId, bytes });
}

function endpointOf(row: Row, secrets: readonly Row[]): Endpoint {
  const of = (prefix: string) => row[`${prefix}bytes`] === null ? undefined : sealedOf(row, prefix);
  const [headers, sealedAuthentication, sealedTls] = [of("headers_"), of("authentication_"), of("tls_")];
  return {
    ...RECORDS.endpoints.read(row),
    ...(headers === undefined ? {} : { headers }),
    ...(sealedAuthentication === undefined ? {} : { sealedAuthentication }),
    ...(sealedTls === undefined ? {} : { sealedTls }),
    secrets: secrets.map(secretOf),
  };
}

function secretOf(row: Row): EndpointSecret {
  return { ...RECORDS.secrets.read(row), sealed: sealedOf(row) };
}
