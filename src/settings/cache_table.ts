import { dialAddress, parseSrvName } from "./address_parsers.ts";
import { listOf } from "./parsers.ts";
import { choice, count, file, flag, inGroup, ours, text, time } from "./rows.ts";

const CACHE = inGroup("Cache", {
  BACKEND_TYPE: {
    parse: parseBackendType,
    default: "kv",
    doc: "Where counters are stored: `kv` (a key-value cache with the Redis protocol), `mc` (a " +
      "memcached-style cache) or `memory` (this process only). The values `redis` and `memcache` of envoyproxy/ratelimit are read as " +
      "`kv` and `mc`. Any other value means `kv` and logs a warning.",
  },
  MEMORY_MAX_KEYS: count(
    "1000000",
    "Maximum number of counters that are stored in this process, with `BACKEND_TYPE=memory` or " +
      "`CACHE_ON_FAILURE=local`. When it is reached, the counters that expire first are evicted.",
    { min: 1 },
  ),
  CACHE_KEY_PREFIX: text("", "Prefix of all cache keys, for example `staging_`."),
  EXPIRATION_JITTER_MAX_SECONDS: count(
    "300",
    "Upper bound of the random number of seconds for which a counter is stored after its window, so " +
      "that counters do not all expire together; 0 disables it.",
    { min: 0, max: 2_147_483_647 },
  ),
  LOCAL_CACHE_SIZE_IN_BYTES: count(
    "0",
    "Size in bytes of the local cache of keys that are over their limit, which saves round trips to " +
      "the shared cache; 0 disables it.",
    { min: 0 },
  ),
  CACHE_ON_FAILURE: choice(
    ["error", "allow", "deny", "local"],
    "error",
    "Decision while the cache fails: `error` (fail with UNAVAILABLE or 503), `allow` (OK), `deny` " +
      "(OVER_LIMIT) or `local` (count in this process). The `on_cache_failure` of a rule takes " +
      "precedence.",
  ),
  MAX_IN_FLIGHT: count(
    "10000",
    "Maximum number of hits that wait for the cache; further hits are OVER_LIMIT, or a cache failure if the " +
      "cache has not replied for a second.",
    { min: 1 },
  ),
});

const MEMCACHED_CACHE = inGroup("Memcached-style cache", {
  MC_HOST_PORT: {
    parse: listOf(dialAddress),
    whenUnset: "see `MC_SRV`",
    doc: "Nodes of the memcached-style cache, as `host:port,host:port`; the same list in the same order on " +
      "every instance.",
  },
  MC_SRV: {
    parse: parseSrvName,
    whenUnset: "see `MC_HOST_PORT`",
    doc: "SRV record that lists the nodes, for example `_mc._tcp.example.com`, instead of `MC_HOST_PORT`.",
  },
  MC_SRV_REFRESH: time("0", "Interval at which the SRV record is resolved again; 0 means never."),
  MC_MAX_IDLE_CONNS: count(
    "2",
    "Maximum number of open connections to each node; 0 means 1. A further connection is opened when " +
      "all others wait for responses.",
    { min: 0 },
  ),
  MC_TIMEOUT: ours(time(
    "500ms",
    "Timeout for connecting, writing and reading, and the longest time that a decision waits for the " +
      "cache; `1ms` or more.",
    { min: "1ms" },
  )),
  MC_KEY_DIGEST: ours(flag(
    "false",
    "`true` stores a key that memcached does not accept (spaces, control characters, more than 250 " +
      "bytes) under its SHA-256 digest; `false` fails a call with such a key as INVALID_ARGUMENT. Use " +
      "the same value on every instance.",
  )),
  MC_TLS: flag("false", "`true` connects to the nodes over TLS."),
  MC_TLS_CLIENT_CERT: file(
    "PEM file with the client certificate for the nodes, read at each connection attempt; requires " +
      "`MC_TLS_CLIENT_KEY`.",
  ),
  MC_TLS_CLIENT_KEY: file("PEM file with the private key of `MC_TLS_CLIENT_CERT`."),
  MC_TLS_CACERT: file(
    "PEM file with certificate authorities that are trusted in addition to the system's.",
    "the system's certificate authorities",
  ),
  MC_TLS_SKIP_HOSTNAME_VERIFICATION: flag(
    "false",
    "`true` verifies the certificate chain of a node but not its host name.",
  ),
}, [["MC", "MEMCACHE"]]);

/** Settings of the counters, whatever back end holds them, and of the memcached-style cache. */
export const CACHE_TABLE = { ...CACHE, ...MEMCACHED_CACHE };

/** The values of envoyproxy/ratelimit. */
export const BACKEND_ALIASES: ReadonlyMap<string, "kv" | "mc"> = new Map([["redis", "kv"], [
  "memcache",
  "mc",
]]);

/** Every text without a meaning, a misspelt one too, means the key-value cache. */
export function parseBackendType(text: string): { readonly value: "kv" | "mc" | "memory" } {
  return { value: text === "mc" || text === "memory" ? text : BACKEND_ALIASES.get(text) ?? "kv" };
}
