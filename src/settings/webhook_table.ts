import { isPostgresAddress } from "../base/postgres_address.ts";
import { listenAddress, parseCidr, parseHttpUrl } from "./address_parsers.ts";
import { listOf, parseAesKey, parseBearerToken, parsePath, parseVariableName } from "./parsers.ts";
import { count, file, inGroup, time } from "./rows.ts";
import type { Parsed } from "./setting.ts";

const FORMS = "the path of a file, or postgres://user:password@host:port/database";
/** How an address of any kind begins; a path never does. */
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;
const WEBHOOKS = inGroup("Webhooks and workflows", {
  WEBHOOK_STORE: {
    parse: parseStore,
    whenUnset: "the webhook service is off",
    doc: "Database file of the webhook service, or the address of a PostgreSQL that several instances share.",
    secret: true, // the address may hold a password
  },
  WEBHOOK_STORE_POOL_SIZE: count("10", "Most connections to a PostgreSQL; no effect with a file.", {
    min: 1,
    max: 1_000,
  }),
  WEBHOOK_STORE_CONNECT_TIMEOUT: time(
    "5s",
    "Duration that connecting to a PostgreSQL may take; no effect with a file.",
    { min: "1ms" },
  ),
  WEBHOOK_STORE_STATEMENT_TIMEOUT: time(
    "10s",
    "Duration that one statement on a PostgreSQL may take; no effect with a file.",
    { min: "1ms" },
  ),
  WEBHOOK_STORE_LOCK_TIMEOUT: time(
    "5s",
    "Duration that a statement on a PostgreSQL may wait for a lock; no effect with a file.",
    { min: "1ms" },
  ),
  WEBHOOK_ENCRYPTION_KEY: {
    parse: listOf(parseAesKey),
    whenUnset: "the key file",
    doc: "Keys for stored secrets, each 32 bytes in base64, by comma; the first encrypts, all decrypt.",
    secret: true,
  },
  WEBHOOK_ENCRYPTION_KEY_FILE: file(
    "File of such a key, created when missing; with a PostgreSQL it or `WEBHOOK_ENCRYPTION_KEY` is required.",
    "<store>.key",
  ),
  WEBHOOK_MAX_BODY_BYTES: count("1048576", "Largest body of a trigger or an event, in bytes.", { min: 1 }),
  WEBHOOK_TIMEOUT: time("15s", "Duration that one attempt of a delivery may take.", { min: "1ms" }),
  WEBHOOK_CONNECT_TIMEOUT: time("5s", "Duration that connecting for an attempt may take.", { min: "1ms" }),
  WEBHOOK_RETENTION: time(
    "30d",
    "Duration for which finished work is kept; open work and idempotency below 24 h always are.",
  ),
  WEBHOOK_MAX_IN_FLIGHT: count("500", "How many attempts run concurrently over all endpoints.", { min: 1 }),
  WEBHOOK_ALLOW_CIDRS: {
    parse: listOf(parseCidr),
    default: "",
    doc: "Private address ranges to which deliveries may go, by comma, such as `10.0.0.0/8`.",
  },
  WEBHOOK_PROXY: {
    parse: parseHttpUrl,
    whenUnset: "none",
    doc: "URL of a proxy for deliveries, which then decides which addresses are reachable.",
    secret: true, // the URL may hold a password
  },
  WEBHOOK_CA_FILE: file(
    "PEM file of authorities that are trusted for deliveries in addition to the system's.",
    "the system's authorities",
  ),
  WORKFLOW_DIRECTORY: file("Folder of the workflow files, reloaded when they change.", "no workflows"),
  WORKFLOW_ENV: {
    parse: listOf(parseVariableName),
    default: "",
    doc: "Names of the environment variables that workflows may read, by comma.",
  },
  WORKFLOW_ALLOW_CIDRS: {
    parse: listOf(parseCidr),
    default: "",
    doc: "Private address ranges that requests of workflows may reach, by comma.",
  },
  WORKFLOW_MAX_RUNNING: count("200", "How many executions run concurrently; the rest stay queued.", {
    min: 1,
  }),
  TRIGGER_ADDR: {
    parse: listenAddress,
    whenUnset: "the HTTP port",
    doc: "Separate address for triggers and for `POST /api/v1/events`: `host:port` or `:port`.",
  },
});

const ADMINISTRATION = inGroup("Administration", {
  ADMIN_TOKEN: {
    parse: parseBearerToken,
    whenUnset: "administration answers 404",
    doc: "Bearer token of the administration, best of 32 characters or more; visible ASCII without a space.",
    secret: true,
  },
  ADMIN_ADDR: {
    parse: listenAddress,
    whenUnset: "the HTTP port",
    doc: "Separate address for the administration: `host:port` or `:port`.",
  },
  WEIR_URL: {
    parse: parseHttpUrl,
    default: "http://localhost:8080",
    doc: "Where the administration commands of the command line find the service.",
    secret: true, // the URL may hold a password
  },
});

/** Settings of the workflow webhook service and its administration. */
export const WEBHOOK_TABLE = { ...WEBHOOKS, ...ADMINISTRATION };

/** Takes the path of a database file, or the address of a PostgreSQL; what is wrong with the latter a rule tells. */
function parseStore(text: string): Parsed<string> {
  if (isPostgresAddress(text)) return { value: text };
  return SCHEME.test(text) ? { expected: FORMS } : parsePath(text);
}
