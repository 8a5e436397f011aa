import { integer, oneOf, parseText } from "./parsers.ts";
import { count, file, flag, inGroup, time } from "./rows.ts";
import type { Setting } from "./setting.ts";

const VENDORS = [["KV", "REDIS"]] as const;

const KEY_VALUE_ROWS = {
  KV_URL: {
    parse: parseText,
    whenUnset: "required by `BACKEND_TYPE=kv`",
    doc: "Address of the key-value cache: `host:port`, the path of a unix socket (or `unix:///path`), or " +
      "`redis://user:password@host:port/db` (`rediss://` for TLS). With `KV_TYPE=sentinel`: " +
      "`name-of-the-primary,host:port,host:port`. With `KV_TYPE=cluster`: `host:port,host:port`. A sentinel " +
      "may be `redis://user:password@host:port`.",
    secret: true,
    isAddress: true,
  },
  KV_SOCKET_TYPE: {
    parse: oneOf(["tcp", "unix"]),
    whenUnset: "derived from `KV_URL`",
    doc: "Type of the address in `KV_URL`: `tcp` or `unix`.",
  },
  KV_TYPE: {
    parse: oneOf(["single", "sentinel", "cluster"], { anyCase: true }),
    default: "single",
    doc: "Topology of the key-value cache: `single`, `sentinel` or `cluster`, in any letter case.",
  },
  KV_AUTH: {
    parse: parseText,
    whenUnset: "the credentials in `KV_URL`, if any",
    doc: "Credentials for the key-value cache, `password` or `user:password`; they take precedence over " +
      "those in `KV_URL`. Write a password that contains a colon as `:password` if there is no user.",
    secret: true,
  },
  KV_SENTINEL_AUTH: {
    parse: parseText,
    whenUnset: "the credentials of a sentinel in `KV_URL`, if any",
    doc: "Credentials for the sentinels, `password` or `user:password`; they take precedence over those in " +
      "`KV_URL`.",
    secret: true,
  },
  KV_TIMEOUT: time(
    "10s",
    "Timeout for connecting, writing and reading, and the longest time that a decision waits for the " +
      "cache; `1ms` or more.",
    { min: "1ms" },
  ),
  KV_HEALTH_CHECK_ACTIVE_CONNECTION: flag(
    "false",
    "`true` reports the service as unhealthy while it has no open connection to the cache.",
  ),
  KV_POOL_SIZE: count("10", "Number of connections to keep open, in a cluster to each node; 1 or more.", {
    min: 1,
  }),
  KV_POOL_ON_EMPTY_BEHAVIOR: {
    parse: oneOf(["CREATE", "ERROR", "WAIT"], { anyCase: true }),
    default: "CREATE",
    doc: "Action when no connection becomes free within `KV_POOL_ON_EMPTY_WAIT_DURATION`: `CREATE` opens " +
      "another connection, `ERROR` fails, `WAIT` continues to wait until `KV_TIMEOUT`.",
  },
  KV_POOL_ON_EMPTY_WAIT_DURATION: time(
    "1s",
    "Time to wait for a free connection before `KV_POOL_ON_EMPTY_BEHAVIOR` applies. If it is not less " +
      "than `KV_TIMEOUT`, Weir waits for half of the remaining time of the call.",
  ),
  KV_PIPELINE_WINDOW: time(
    "0",
    "Time for which commands are batched before they are sent, for example `150us`; less than " +
      "`KV_TIMEOUT`. 0 sends immediately. A window below `2ms` keeps the thread busy while a batch is " +
      "open.",
  ),
  KV_PIPELINE_LIMIT: {
    parse: integer({ min: 0 }),
    default: "0",
    doc: "Accepted for compatibility; has no effect.",
    deprecated: "batches have no fixed length; the pipeline window alone decides when they are sent",
  },
  KV_CLUSTER_PIPELINE_PARALLELISM: count(
    "0",
    "Maximum number of cluster nodes that one call queries concurrently; 0 means all.",
    { min: 0 },
  ),
  KV_STARTUP_INITIAL_INTERVAL: time(
    "1s",
    "First delay between attempts to connect to the cache at start; each further delay is twice as " +
      "long.",
  ),
  KV_STARTUP_MAX_INTERVAL: time("30s", "Longest delay between attempts to connect to the cache at start."),
  KV_STARTUP_MAX_ELAPSED_TIME: time(
    "0",
    "Time after which Weir stops trying to connect to the cache at start and exits with code 1; 0 " +
      "means never.",
  ),
  KV_TLS: flag("false", "`true` connects to the key-value cache over TLS."),
  KV_TLS_CLIENT_CERT: file(
    "PEM file with the client certificate for the key-value caches, read at each connection attempt; " +
      "requires `KV_TLS_CLIENT_KEY`.",
  ),
  KV_TLS_CLIENT_KEY: file("PEM file with the private key of `KV_TLS_CLIENT_CERT`."),
  KV_TLS_CACERT: file(
    "PEM file with certificate authorities that are trusted in addition to the system's.",
    "the system's certificate authorities",
  ),
  KV_TLS_SKIP_HOSTNAME_VERIFICATION: flag(
    "false",
    "`true` verifies the certificate chain of the server but not its host name.",
  ),
} as const;

const KEY_VALUE_CACHE = inGroup("Key-value cache", KEY_VALUE_ROWS, VENDORS);

/** The rows of the per-second cache, each with its differences from the row of the main cache. */
const PER_SECOND_ROWS = {
  KV_PERSECOND_URL: {
    doc: "Address of the per-second cache, in the forms of `KV_URL`.",
    whenUnset: "required by `KV_PERSECOND`",
  },
  KV_PERSECOND_SOCKET_TYPE: { whenUnset: "derived from `KV_PERSECOND_URL`" },
  KV_PERSECOND_TYPE: {},
  KV_PERSECOND_AUTH: { whenUnset: "the credentials in `KV_PERSECOND_URL`, if any" },
  KV_PERSECOND_SENTINEL_AUTH: {},
  KV_PERSECOND_TIMEOUT: {},
  KV_PERSECOND_POOL_SIZE: {},
  KV_PERSECOND_POOL_ON_EMPTY_BEHAVIOR: {},
  KV_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION: {},
  KV_PERSECOND_PIPELINE_WINDOW: {},
  KV_PERSECOND_PIPELINE_LIMIT: { doc: "Accepted for compatibility; has no effect." },
  KV_PERSECOND_CLUSTER_PIPELINE_PARALLELISM: {},
  KV_PERSECOND_TLS: {
    doc: "`true` connects to the per-second cache over TLS, with the same TLS files as the main cache.",
  },
} as const satisfies Readonly<Record<string, Partial<Setting>>>;

type FirstName<Name extends string> = Name extends `KV_PERSECOND_${infer Rest}`
  ? `KV_${Rest}` & keyof typeof KEY_VALUE_ROWS
  : never;

type PerSecondRows = {
  readonly [Name in keyof typeof PER_SECOND_ROWS]: typeof KEY_VALUE_ROWS[FirstName<Name>];
};

const PER_SECOND_CACHE = inGroup("Per-second cache", {
  KV_PERSECOND: flag(
    "false",
    "`true` stores the counters of per-second limits in a separate key-value cache; requires " +
      "`BACKEND_TYPE=kv`.",
  ),
  ...perSecondRows(),
}, VENDORS);

/** Settings of the key-value cache, and of the separate one for per-second limits. */
export const KV_TABLE = { ...KEY_VALUE_CACHE, ...PER_SECOND_CACHE };

function perSecondRows(): PerSecondRows {
  const rows: Readonly<Record<string, Omit<Setting, "group">>> = KEY_VALUE_ROWS;
  const derived = Object.entries(PER_SECOND_ROWS).map(([name, own]) => {
    const first = name.replace("_PERSECOND", "");
    const doc = `The same as \`${first}\`, for the per-second cache.`;
    return [name, { ...rows[first], doc, ...own }];
  });
  return Object.fromEntries(derived);
}
