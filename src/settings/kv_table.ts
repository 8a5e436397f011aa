import { duration, integer, oneOf, parseBoolean, parsePath, parseText } from "./parsers.ts";
import type { SettingTable } from "./setting.ts";

const SOCKET_TYPE = oneOf(["tcp", "unix"]);
const DEPLOYMENT = oneOf(["single", "sentinel", "cluster"], { anyCase: true });
const ON_EMPTY = oneOf(["CREATE", "ERROR", "WAIT"], { anyCase: true });
// A time-out of nothing would fail every call, so the least is a millisecond.
const TIMEOUT = duration({ min: "1ms" });
const PIPELINE_LIMIT_DEPRECATED =
  "batches have no fixed length; the pipeline window alone rules when they are sent";

/** Settings of the key-value cache, and of the second one for limits per second. */
export const KV_TABLE = {
  KV_URL: {
    parse: parseText,
    whenUnset: "required by `BACKEND_TYPE=kv`",
    doc: "Address of the key-value cache: `host:port`, the path of a unix socket (`unix:///path` too), or " +
      "`redis://user:password@host:port/db` (`rediss://` for TLS); comma lists for sentinel (master name " +
      "first) and cluster.",
    group: "Key-value cache",
    secret: true,
  },
  KV_SOCKET_TYPE: {
    parse: SOCKET_TYPE,
    whenUnset: "`KV_URL` decides",
    doc: "How `KV_URL` is read: `tcp` or `unix`.",
    group: "Key-value cache",
  },
  KV_TYPE: {
    parse: DEPLOYMENT,
    default: "single",
    doc: "What runs at `KV_URL`: `single`, `sentinel` or `cluster`, in any letter case.",
    group: "Key-value cache",
  },
  KV_AUTH: {
    parse: parseText,
    whenUnset: "no login",
    doc: "Login of the key-value cache: `password` or `user:password`.",
    group: "Key-value cache",
    secret: true,
  },
  KV_SENTINEL_AUTH: {
    parse: parseText,
    whenUnset: "no login",
    doc: "Login of the sentinel nodes: `password` or `user:password`.",
    group: "Key-value cache",
    secret: true,
  },
  KV_TIMEOUT: {
    parse: TIMEOUT,
    default: "10s",
    doc: "Duration that bounds connecting, writing and reading; no decision waits longer for the cache.",
    group: "Key-value cache",
  },
  KV_HEALTH_CHECK_ACTIVE_CONNECTION: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` makes health bad while no connection to the cache is open.",
    group: "Key-value cache",
  },
  KV_POOL_SIZE: {
    parse: integer({ min: 1 }),
    default: "10",
    doc: "How many connections are kept open, in a cluster to each node.",
    group: "Key-value cache",
  },
  KV_POOL_ON_EMPTY_BEHAVIOR: {
    parse: ON_EMPTY,
    default: "CREATE",
    doc:
      "When every connection stays taken for `KV_POOL_ON_EMPTY_WAIT_DURATION`: `CREATE` one more, fail with " +
      "`ERROR`, or `WAIT` on.",
    group: "Key-value cache",
  },
  KV_POOL_ON_EMPTY_WAIT_DURATION: {
    parse: duration(),
    default: "1s",
    doc:
      "Duration of the wait for a free connection; at or above `KV_TIMEOUT` it is half of the time that a call " +
      "has left.",
    group: "Key-value cache",
  },
  KV_PIPELINE_WINDOW: {
    parse: duration(),
    default: "0",
    doc:
      "Duration for which commands are gathered before they are sent, such as `150us`; 0 sends at once. Below " +
      "2ms the wait keeps the thread busy.",
    group: "Key-value cache",
  },
  KV_PIPELINE_LIMIT: {
    parse: integer({ min: 0 }),
    default: "0",
    doc: "Accepted and without effect.",
    group: "Key-value cache",
    deprecated: PIPELINE_LIMIT_DEPRECATED,
  },
  KV_CLUSTER_PIPELINE_PARALLELISM: {
    parse: integer({ min: 0 }),
    default: "0",
    doc: "How many cluster nodes one call asks at the same time; 0 asks all at once.",
    group: "Key-value cache",
  },
  KV_STARTUP_INITIAL_INTERVAL: {
    parse: duration(),
    default: "1s",
    doc: "Duration of the first wait between attempts to connect at start; it doubles each time.",
    group: "Key-value cache",
  },
  KV_STARTUP_MAX_INTERVAL: {
    parse: duration(),
    default: "30s",
    doc: "Duration of the longest wait between those attempts.",
    group: "Key-value cache",
  },
  KV_STARTUP_MAX_ELAPSED_TIME: {
    parse: duration(),
    default: "0",
    doc:
      "Duration after which those attempts are given up and the process ends with exit code 1; 0 means never.",
    group: "Key-value cache",
  },
  KV_TLS: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` speaks TLS to the key-value cache.",
    group: "Key-value cache",
  },
  KV_TLS_CLIENT_CERT: {
    parse: parsePath,
    doc: "PEM file with the certificate shown to the key-value caches, read at each connect.",
    group: "Key-value cache",
  },
  KV_TLS_CLIENT_KEY: {
    parse: parsePath,
    doc: "PEM file with the private key of that certificate.",
    group: "Key-value cache",
  },
  KV_TLS_CACERT: {
    parse: parsePath,
    whenUnset: "the system's authorities",
    doc: "PEM file of an authority that is trusted beside the system's.",
    group: "Key-value cache",
  },
  KV_TLS_SKIP_HOSTNAME_VERIFICATION: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` verifies the chain of the server's certificate and not its name.",
    group: "Key-value cache",
  },
  KV_PERSECOND: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` counts limits per second in a second key-value cache; only with the key-value back end.",
    group: "Per-second cache",
  },
  KV_PERSECOND_URL: {
    parse: parseText,
    whenUnset: "required by `KV_PERSECOND`",
    doc: "Address of the second cache, as `KV_URL`.",
    group: "Per-second cache",
    secret: true,
  },
  KV_PERSECOND_SOCKET_TYPE: {
    parse: SOCKET_TYPE,
    whenUnset: "`KV_PERSECOND_URL` decides",
    doc: "As `KV_SOCKET_TYPE`, for the second cache.",
    group: "Per-second cache",
  },
  KV_PERSECOND_TYPE: {
    parse: DEPLOYMENT,
    default: "single",
    doc: "As `KV_TYPE`, for the second cache.",
    group: "Per-second cache",
  },
  KV_PERSECOND_AUTH: {
    parse: parseText,
    whenUnset: "no login",
    doc: "As `KV_AUTH`, for the second cache.",
    group: "Per-second cache",
    secret: true,
  },
  KV_PERSECOND_SENTINEL_AUTH: {
    parse: parseText,
    whenUnset: "no login",
    doc: "As `KV_SENTINEL_AUTH`, for the second cache.",
    group: "Per-second cache",
    secret: true,
  },
  KV_PERSECOND_TIMEOUT: {
    parse: TIMEOUT,
    default: "10s",
    doc: "As `KV_TIMEOUT`, for the second cache.",
    group: "Per-second cache",
  },
  KV_PERSECOND_POOL_SIZE: {
    parse: integer({ min: 1 }),
    default: "10",
    doc: "As `KV_POOL_SIZE`, for the second cache.",
    group: "Per-second cache",
  },
  KV_PERSECOND_POOL_ON_EMPTY_BEHAVIOR: {
    parse: ON_EMPTY,
    default: "CREATE",
    doc: "As `KV_POOL_ON_EMPTY_BEHAVIOR`, for the second cache.",
    group: "Per-second cache",
  },
  KV_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION: {
    parse: duration(),
    default: "1s",
    doc: "As `KV_POOL_ON_EMPTY_WAIT_DURATION`, for the second cache.",
    group: "Per-second cache",
  },
  KV_PERSECOND_PIPELINE_WINDOW: {
    parse: duration(),
    default: "0",
    doc: "As `KV_PIPELINE_WINDOW`, for the second cache.",
    group: "Per-second cache",
  },
  KV_PERSECOND_PIPELINE_LIMIT: {
    parse: integer({ min: 0 }),
    default: "0",
    doc: "Accepted and without effect.",
    group: "Per-second cache",
    deprecated: PIPELINE_LIMIT_DEPRECATED,
  },
  KV_PERSECOND_CLUSTER_PIPELINE_PARALLELISM: {
    parse: integer({ min: 0 }),
    default: "0",
    doc: "As `KV_CLUSTER_PIPELINE_PARALLELISM`, for the second cache.",
    group: "Per-second cache",
  },
  KV_PERSECOND_TLS: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` speaks TLS to the second cache, with the same files as the first.",
    group: "Per-second cache",
  },
} as const satisfies SettingTable;
