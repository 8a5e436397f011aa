import { isPostgresAddress } from "../base/postgres_address.ts";
import { listenAddress, parseCidr, parseHttpUrl, parseProxyUrl, parsePublicUrl } from "./address_parsers.ts";
import { parseNamedToken } from "./administrator_tokens.ts";
import { listOf, parseAesKey, parseBearerToken, parsePath, parseVariableName } from "./parsers.ts";
import { count, file, inGroup, time } from "./rows.ts";
import type { Parsed } from "./setting.ts";

const FORMS = "the path of a file, or postgres://user:password@host:port/database";
/** The start of an address of any kind; a path has none. */
const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;
const WEBHOOKS = inGroup("Webhooks and workflows", {
  WEBHOOK_STORE: {
    parse: parseStore,
    whenUnset: "the webhook service is disabled",
    doc: "Store of the webhook service: the path of a database file, or " +
      "`postgres://user:password@host:port/database` for a PostgreSQL database that several instances " +
      "share.",
    secret: true,
    isAddress: true,
  },
  WEBHOOK_STORE_POOL_SIZE: count(
    "10",
    "Maximum number of connections to PostgreSQL, 1 to 1000; no effect with a file.",
    {
      min: 1,
      max: 1_000,
    },
  ),
  WEBHOOK_STORE_CONNECT_TIMEOUT: time(
    "5s",
    "Timeout for connecting to PostgreSQL, `1ms` or more; no effect with a file.",
    { min: "1ms" },
  ),
  WEBHOOK_STORE_STATEMENT_TIMEOUT: time(
    "10s",
    "Timeout of one statement in PostgreSQL, `1ms` or more; no effect with a file.",
    { min: "1ms" },
  ),
  WEBHOOK_STORE_LOCK_TIMEOUT: time(
    "5s",
    "Longest time that a statement waits for a lock in PostgreSQL, `1ms` or more; no effect with a " +
      "file.",
    { min: "1ms" },
  ),
  WEBHOOK_STORE_MAX_BYTES: count(
    "1099511627776",
    "Maximum size of the store in bytes; 0 for no maximum. While the store is larger, Weir rejects trigger " +
      "calls and events with 503 `store_full`, and everything else continues.",
    { min: 0 },
  ),
  WEBHOOK_MAX_BACKLOG: count(
    "1000000",
    "Maximum number of open deliveries of one endpoint; 0 for no maximum. While it is reached, Weir rejects " +
      "events for this endpoint with 503 `backlog_full`.",
    { min: 0 },
  ),
  WEBHOOK_ENCRYPTION_KEY: {
    parse: listOf(parseAesKey),
    whenUnset: "the key in `WEBHOOK_ENCRYPTION_KEY_FILE`",
    doc: "Encryption keys of stored secrets, each 32 bytes in base64, separated by commas. The first key " +
      "encrypts; all keys decrypt.",
    secret: true,
  },
  WEBHOOK_ENCRYPTION_KEY_FILE: file(
    "File with an encryption key; Weir creates it if it is missing. PostgreSQL requires this setting " +
      "or `WEBHOOK_ENCRYPTION_KEY`.",
    "`WEBHOOK_STORE` with the suffix `.key`",
  ),
  WEBHOOK_MAX_BODY_BYTES: count(
    "1048576",
    "Maximum size of the body of a trigger call or an event, in bytes.",
    { min: 1 },
  ),
  WEBHOOK_TIMEOUT: time(
    "15s",
    "Timeout of one delivery attempt, `1ms` or more; an endpoint can override it.",
    { min: "1ms" },
  ),
  WEBHOOK_CONNECT_TIMEOUT: time("5s", "Timeout for connecting in a delivery attempt, `1ms` or more.", {
    min: "1ms",
  }),
  WEBHOOK_RETENTION: time(
    "30d",
    "Time for which finished executions, deliveries, events and the audit log are kept. Unfinished " +
      "work is always kept.",
  ),
  WEBHOOK_DISABLE_AFTER: time(
    "5d",
    "Time after which an endpoint whose attempts have only failed is disabled; 0 for never.",
  ),
  WEBHOOK_MAX_IN_FLIGHT: count("500", "Maximum number of concurrent delivery attempts over all endpoints.", {
    min: 1,
  }),
  WEBHOOK_ALLOW_CIDRS: {
    parse: listOf(parseCidr),
    default: "",
    doc: "Private address ranges that deliveries may reach, separated by commas, for example `10.0.0.0/8`.",
  },
  WEBHOOK_PROXY: {
    parse: parseProxyUrl,
    whenUnset: "none",
    doc: "URL of an HTTP proxy for deliveries, `http://host:port`. The proxy then decides which addresses " +
      "are reachable.",
    secret: true,
    isAddress: true,
  },
  WEBHOOK_CA_FILE: file(
    "PEM file with certificate authorities that are trusted for deliveries in addition to the system's.",
    "the system's certificate authorities",
  ),
  WORKFLOW_DIRECTORY: file(
    "Folder of the workflow files, which are reloaded when they change.",
    "no workflows are loaded",
  ),
  WORKFLOW_ENV: {
    parse: listOf(parseVariableName),
    default: "",
    doc: "Names of the environment variables that workflows may read, separated by commas.",
  },
  WORKFLOW_ALLOW_CIDRS: {
    parse: listOf(parseCidr),
    default: "",
    doc: "Private address ranges that requests of workflows may reach, separated by commas.",
  },
  WORKFLOW_MAX_RUNNING: count(
    "200",
    "Maximum number of concurrent workflow executions; further executions stay queued.",
    {
      min: 1,
    },
  ),
  RATE_LIMIT_EVENTS_MAX_PER_SECOND: count(
    "10",
    "Maximum number of events per second that rules with `events` begin to report in this process, 0 to 1000. " +
      "Further ones are counted in a `ratelimit.events_suppressed` event.",
    { min: 0, max: 1_000 },
  ),
  TRIGGER_ADDR: {
    parse: listenAddress,
    whenUnset: "the HTTP port",
    doc: "Separate address for triggers and `POST /api/v1/events`: `host:port`, or `:port` for every " +
      "interface. The HTTP port then does not serve them.",
  },
  TRIGGER_PUBLIC_URL: {
    parse: parsePublicUrl,
    whenUnset: "signatures that cover the URL are rejected",
    doc:
      "URL at which senders reach the address of triggers, such as `https://hooks.example.com`, with the " +
      "path that a proxy removes, if any. Signatures that cover the URL of the call (`{url}`) require it.",
  },
});

const ADMINISTRATION = inGroup("Administration", {
  ADMIN_TOKEN: {
    parse: parseBearerToken,
    whenUnset: "the administration API returns 404",
    doc: "Bearer token of the administration API: visible ASCII characters without spaces, 32 or more " +
      "recommended, for example the output of `openssl rand -hex 32`.",
    secret: true,
  },
  ADMIN_TOKENS: {
    parse: listOf(parseNamedToken),
    whenUnset: "no further tokens",
    doc: "Named tokens of the administration API, `name:role:token`, separated by commas, for example " +
      "`alice:admin:TOKEN,ci:read:TOKEN`. The role `read` allows only calls that change nothing. Each name and each " +
      "token once; `ADMIN_TOKEN` has the name `admin`.",
    secret: true,
  },
  ADMIN_TOKENS_FILE: file(
    "File with further named tokens, one `name:role:token` per line; empty lines and lines that begin with `#` " +
      "are skipped. Weir applies changes within seconds.",
    "no further tokens",
  ),
  ADMIN_ADDR: {
    parse: listenAddress,
    whenUnset: "the HTTP port",
    doc: "Separate address for the administration API: `host:port`, or `:port` for every interface.",
  },
  WEIR_URL: {
    parse: parseHttpUrl,
    default: "http://localhost:8080",
    doc: "Base URL of the service that the administration commands of `weir` call.",
    secret: true,
    isAddress: true,
  },
});

/** Settings of the workflow webhook service and its administration. */
export const WEBHOOK_TABLE = { ...WEBHOOKS, ...ADMINISTRATION };

/** Accepts the path of a database file, or a PostgreSQL address, which `cross_rules.ts` checks in detail. */
function parseStore(text: string): Parsed<string> {
  if (isPostgresAddress(text)) return { value: text };
  return SCHEME.test(text) ? { expected: FORMS } : parsePath(text);
}
