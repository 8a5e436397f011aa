import { dialAddress, parseSrvName } from "./address_parsers.ts";
import { listOf } from "./parsers.ts";
import { choice, count, file, flag, inGroup, text, time } from "./rows.ts";
import type { Parsed } from "./setting.ts";

const CACHE = inGroup("Cache", {
  BACKEND_TYPE: {
    parse: parseBackendType,
    default: "kv",
    doc: "Where counters live: `kv` for a key-value cache, `memory` for this process alone, `mc` for a " +
      "memcached-style cache; any other value means `kv`.",
  },
  MEMORY_MAX_KEYS: count(
    "1000000",
    "How many counters the `memory` back end holds before those that expire first are evicted.",
    { min: 1 },
  ),
  CACHE_KEY_PREFIX: text("", "Prefix of every cache key."),
  EXPIRATION_JITTER_MAX_SECONDS: count(
    "300",
    "Counters are kept longer than their window by a random number of seconds below this; 0 switches it off.",
    { min: 0, max: 2_147_483_647 },
  ),
  LOCAL_CACHE_SIZE_IN_BYTES: count(
    "0",
    "Bytes for remembering keys over their limit, so that the cache is not asked for them; 0 switches it off.",
    { min: 0 },
  ),
  CACHE_ON_FAILURE: choice(
    ["error", "allow", "deny", "local"],
    "error",
    "The answer while the cache fails: `error` (unavailable), `allow` (OK), `deny` (OVER_LIMIT), or `local`, " +
      "which counts in this process; a rule's `on_cache_failure` takes precedence.",
  ),
  MAX_IN_FLIGHT: count(
    "10000",
    "How many hits may wait for the cache before further calls fail immediately.",
    { min: 1 },
  ),
});

const MEMCACHED_CACHE = inGroup("Memcached-style cache", {
  MC_HOST_PORT: {
    parse: listOf(dialAddress),
    whenUnset: "see `MC_SRV`",
    doc: "Nodes of the memcached-style cache, `host:port,host:port`, the same list for every instance.",
  },
  MC_SRV: {
    parse: parseSrvName,
    whenUnset: "see `MC_HOST_PORT`",
    doc: "SRV record that lists the nodes, instead of `MC_HOST_PORT`.",
  },
  MC_SRV_REFRESH: time("0", "Duration after which the SRV record is looked up again; 0 means never."),
  MC_MAX_IDLE_CONNS: count(
    "2",
    "How many connections are kept open to each node at most: the first one immediately, a further one when " +
      "all others wait for replies; 0 means 1.",
    { min: 0 },
  ),
  MC_TIMEOUT: time(
    "500ms",
    "Duration that bounds connecting, writing and reading; no decision waits longer for the cache.",
    { min: "1ms" },
  ),
  MC_KEY_DIGEST: flag(
    "false",
    "`true` stores keys that memcached cannot hold (blanks, control characters, over 250 bytes) under a " +
      "SHA-256 digest; `false` fails a call with such a key as INVALID_ARGUMENT.",
  ),
  MC_TLS: flag("false", "`true` enables TLS to the nodes."),
  MC_TLS_CLIENT_CERT: file("PEM file with the certificate shown to the nodes, read at each connect."),
  MC_TLS_CLIENT_KEY: file("PEM file with the private key of that certificate."),
  MC_TLS_CACERT: file(
    "PEM file of an authority that is trusted in addition to the system's.",
    "the system's authorities",
  ),
  MC_TLS_SKIP_HOSTNAME_VERIFICATION: flag(
    "false",
    "`true` verifies the chain of the nodes' certificates and not their names.",
  ),
});

/** Settings of the counters, whatever back end holds them, and of the memcached-style cache. */
export const CACHE_TABLE = { ...CACHE, ...MEMCACHED_CACHE };

/** Only `mc` and `memory` choose; every other text, a misspelt one too, means the key-value cache. */
function parseBackendType(text: string): Parsed<"kv" | "mc" | "memory"> {
  return { value: text === "mc" || text === "memory" ? text : "kv" };
}
