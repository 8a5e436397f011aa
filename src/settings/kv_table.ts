import { integer, oneOf, parseText } from "./parsers.ts";
import { count, file, flag, inGroup, time } from "./rows.ts";
import type { Setting } from "./setting.ts";

const KEY_VALUE_CACHE = inGroup("Key-value cache", {
  KV_URL: {
    parse: parseText,
    whenUnset: "required by `BACKEND_TYPE=kv`",
    doc: "Address of the key-value cache: `host:port`, the path of a unix socket (`unix:///path` too), or " +
      "`redis://user:password@host:port/db` (`rediss://` for TLS); comma lists for sentinel (master name " +
      "first) and cluster.",
    secret: true,
  },
  KV_SOCKET_TYPE: {
    parse: oneOf(["tcp", "unix"]),
    whenUnset: "`KV_URL` decides",
    doc: "How `KV_URL` is read: `tcp` or `unix`.",
  },
  KV_TYPE: {
    parse: oneOf(["single", "sentinel", "cluster"], { anyCase: true }),
    default: "single",
    doc: "What runs at `KV_URL`: `single`, `sentinel` or `cluster`, in any letter case.",
  },
  KV_AUTH: {
    parse: parseText,
    whenUnset: "no login",
    doc: "Login of the key-value cache: `password` or `user:password`.",
    secret: true,
  },
  KV_SENTINEL_AUTH: {
    parse: parseText,
    whenUnset: "no login",
    doc: "Login of the sentinel nodes: `password` or `user:password`.",
    secret: true,
  },
  KV_TIMEOUT: time(
    "10s",
    "Duration that bounds connecting, writing and reading; no decision waits longer for the cache.",
    { min: "1ms" },
  ),
  KV_HEALTH_CHECK_ACTIVE_CONNECTION: flag(
    "false",
    "`true` makes the service unhealthy while no connection to the cache is open.",
  ),
  KV_POOL_SIZE: count("10", "How many connections are kept open, in a cluster to each node.", { min: 1 }),
  KV_POOL_ON_EMPTY_BEHAVIOR: {
    parse: oneOf(["CREATE", "ERROR", "WAIT"], { anyCase: true }),
    default: "CREATE",
    doc:
      "When every connection stays taken for `KV_POOL_ON_EMPTY_WAIT_DURATION`: `CREATE` one more, fail with " +
      "`ERROR`, or `WAIT` on.",
  },
  KV_POOL_ON_EMPTY_WAIT_DURATION: time(
    "1s",
    "Duration of the wait for a free connection; at or above `KV_TIMEOUT` it is half of the time that a call " +
      "has left.",
  ),
  KV_PIPELINE_WINDOW: time(
    "0",
    "Duration for which commands are batched before they are sent, such as `150us`; 0 sends immediately. Below " +
      "2ms the wait keeps the thread busy.",
  ),
  KV_PIPELINE_LIMIT: {
    parse: integer({ min: 0 }),
    default: "0",
    doc: "Accepted and without effect.",
    deprecated: "batches have no fixed length; the pipeline window alone decides when they are sent",
  },
  KV_CLUSTER_PIPELINE_PARALLELISM: count(
    "0",
    "How many cluster nodes one call asks concurrently; 0 means all.",
    { min: 0 },
  ),
  KV_STARTUP_INITIAL_INTERVAL: time(
    "1s",
    "Duration of the first wait between attempts to connect at start; it doubles each time.",
  ),
  KV_STARTUP_MAX_INTERVAL: time("30s", "Duration of the longest wait between those attempts."),
  KV_STARTUP_MAX_ELAPSED_TIME: time(
    "0",
    "Duration after which those attempts are given up and the process ends with exit code 1; 0 means never.",
  ),
  KV_TLS: flag("false", "`true` enables TLS to the key-value cache."),
  KV_TLS_CLIENT_CERT: file(
    "PEM file with the certificate shown to the key-value caches, read at each connect.",
  ),
  KV_TLS_CLIENT_KEY: file("PEM file with the private key of that certificate."),
  KV_TLS_CACERT: file(
    "PEM file of an authority that is trusted in addition to the system's.",
    "the system's authorities",
  ),
  KV_TLS_SKIP_HOSTNAME_VERIFICATION: flag(
    "false",
    "`true` verifies the chain of the server's certificate and not its name.",
  ),
});

/** The rows of the second cache, each with what differs from the row of the first. */
const PER_SECOND_ROWS = {
  KV_PERSECOND_URL: {
    doc: "Address of the second cache, as `KV_URL`.",
    whenUnset: "required by `KV_PERSECOND`",
  },
  KV_PERSECOND_SOCKET_TYPE: { whenUnset: "`KV_PERSECOND_URL` decides" },
  KV_PERSECOND_TYPE: {},
  KV_PERSECOND_AUTH: {},
  KV_PERSECOND_SENTINEL_AUTH: {},
  KV_PERSECOND_TIMEOUT: {},
  KV_PERSECOND_POOL_SIZE: {},
  KV_PERSECOND_POOL_ON_EMPTY_BEHAVIOR: {},
  KV_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION: {},
  KV_PERSECOND_PIPELINE_WINDOW: {},
  KV_PERSECOND_PIPELINE_LIMIT: { doc: "Accepted and without effect." },
  KV_PERSECOND_CLUSTER_PIPELINE_PARALLELISM: {},
  KV_PERSECOND_TLS: { doc: "`true` enables TLS to the second cache, with the files of the first." },
} as const satisfies Readonly<Record<string, Partial<Setting>>>;

type FirstName<Name extends string> = Name extends `KV_PERSECOND_${infer Rest}`
  ? `KV_${Rest}` & keyof typeof KEY_VALUE_CACHE
  : never;

type PerSecondRows = {
  readonly [Name in keyof typeof PER_SECOND_ROWS]: typeof KEY_VALUE_CACHE[FirstName<Name>];
};

const PER_SECOND_CACHE = inGroup("Per-second cache", {
  KV_PERSECOND: flag(
    "false",
    "`true` counts limits per second in a second key-value cache; requires `BACKEND_TYPE=kv`.",
  ),
  ...perSecondRows(),
});

/** Settings of the key-value cache, and of the second one for limits per second. */
export const KV_TABLE = { ...KEY_VALUE_CACHE, ...PER_SECOND_CACHE };

function perSecondRows(): PerSecondRows {
  const rows: Readonly<Record<string, Setting>> = KEY_VALUE_CACHE;
  const derived = Object.entries(PER_SECOND_ROWS).map(([name, own]) => {
    const first = name.replace("_PERSECOND", "");
    const doc = `As \`${first}\`, for the second cache.`;
    return [name, { ...rows[first], doc, ...own }];
  });
  return Object.fromEntries(derived);
}
