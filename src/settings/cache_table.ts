import {
  dialAddress,
  duration,
  integer,
  listOf,
  oneOf,
  parseBoolean,
  parsePath,
  parseSrvName,
  parseText,
} from "./parsers.ts";
import type { Parsed, SettingTable } from "./setting.ts";

/** Settings of the counters, whatever back end holds them, and of the memcached-style cache. */
export const CACHE_TABLE = {
  BACKEND_TYPE: {
    parse: parseBackendType,
    default: "kv",
    doc: "Where counters live: `kv` for a key-value cache, `memory` for this process alone, `mc` for a " +
      "memcached-style cache; anything else is taken as `kv`.",
    group: "Cache",
  },
  MEMORY_MAX_KEYS: {
    parse: integer({ min: 1 }),
    default: "1000000",
    doc: "How many counters the `memory` back end holds before those nearest their end give way.",
    group: "Cache",
  },
  CACHE_KEY_PREFIX: {
    parse: parseText,
    default: "",
    doc: "Text that stands before every cache key.",
    group: "Cache",
  },
  EXPIRATION_JITTER_MAX_SECONDS: {
    parse: integer({ min: 0, max: 2_147_483_647 }),
    default: "300",
    doc:
      "Counters are kept longer than their window by a random number of seconds below this; 0 switches it off.",
    group: "Cache",
  },
  LOCAL_CACHE_SIZE_IN_BYTES: {
    parse: integer({ min: 0 }),
    default: "0",
    doc:
      "Bytes for remembering keys over their limit, so that the cache is not asked for them; 0 switches it off.",
    group: "Cache",
  },
  CACHE_ON_FAILURE: {
    parse: oneOf(["error", "allow", "deny", "local"]),
    default: "error",
    doc:
      "The answer while the cache fails: `error` (unavailable), `allow` (OK), `deny` (OVER_LIMIT), or `local`, " +
      "which counts in this process; a rule's `on_cache_failure` wins.",
    group: "Cache",
  },
  MAX_IN_FLIGHT: {
    parse: integer({ min: 1 }),
    default: "10000",
    doc: "How many hits may wait for the cache before further calls fail at once.",
    group: "Cache",
  },
  MC_HOST_PORT: {
    parse: listOf(dialAddress),
    whenUnset: "see `MC_SRV`",
    doc: "Nodes of the memcached-style cache, `host:port,host:port`, the same list for every instance.",
    group: "Memcached-style cache",
  },
  MC_SRV: {
    parse: parseSrvName,
    whenUnset: "see `MC_HOST_PORT`",
    doc: "SRV record that lists the nodes, in place of `MC_HOST_PORT`.",
    group: "Memcached-style cache",
  },
  MC_SRV_REFRESH: {
    parse: duration(),
    default: "0",
    doc: "Duration after which the SRV record is looked up again; 0 means never.",
    group: "Memcached-style cache",
  },
  MC_MAX_IDLE_CONNS: {
    parse: integer({ min: 0 }),
    default: "2",
    doc:
      "How many connections are kept open to each node at most: the first one at once, a further one when all " +
      "others wait for replies; 0 is taken as 1.",
    group: "Memcached-style cache",
  },
  MC_TIMEOUT: {
    parse: duration({ min: "1ms" }),
    default: "500ms",
    doc: "Duration that bounds connecting, writing and reading; no decision waits longer for the cache.",
    group: "Memcached-style cache",
  },
  MC_KEY_DIGEST: {
    parse: parseBoolean,
    default: "false",
    doc:
      "`true` stores keys that memcached cannot hold (blanks, control characters, over 250 bytes) under a " +
      "SHA-256 digest; `false` fails a call with such a key as INVALID_ARGUMENT.",
    group: "Memcached-style cache",
  },
  MC_TLS: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` speaks TLS to the nodes.",
    group: "Memcached-style cache",
  },
  MC_TLS_CLIENT_CERT: {
    parse: parsePath,
    doc: "PEM file with the certificate shown to the nodes, read at each connect.",
    group: "Memcached-style cache",
  },
  MC_TLS_CLIENT_KEY: {
    parse: parsePath,
    doc: "PEM file with the private key of that certificate.",
    group: "Memcached-style cache",
  },
  MC_TLS_CACERT: {
    parse: parsePath,
    whenUnset: "the system's authorities",
    doc: "PEM file of an authority that is trusted beside the system's.",
    group: "Memcached-style cache",
  },
  MC_TLS_SKIP_HOSTNAME_VERIFICATION: {
    parse: parseBoolean,
    default: "false",
    doc: "`true` verifies the chain of the nodes' certificates and not their names.",
    group: "Memcached-style cache",
  },
} as const satisfies SettingTable;

/** Only `mc` and `memory` choose; every other text, a misspelt one too, means the key-value cache. */
function parseBackendType(text: string): Parsed<"kv" | "mc" | "memory"> {
  return { value: text === "mc" || text === "memory" ? text : "kv" };
}
