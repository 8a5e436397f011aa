import { assert, assertEquals } from "#assert";
import { type Environment, readSettings } from "../../../src/settings/read_settings.ts";
import { problemsOf } from "./settings_problems.ts";

const NO_URL =
  "KV_URL is not set: expected KV_URL=host:port, or BACKEND_TYPE=memory to count only in this process";
const TCP_FORMS = "host:port, [IPv6 address]:port or redis://user:password@host:port/db";
const NOT_TCP = `Invalid KV_URL (value not shown): KV_SOCKET_TYPE is tcp; expected ${TCP_FORMS}`;
const NOT_UNIX =
  "Invalid KV_URL (value not shown): KV_SOCKET_TYPE is unix; expected the path of a unix socket";
const NEITHER = `Invalid KV_URL (value not shown): expected ${TCP_FORMS} or the path of a unix socket`;
const BARE_PERCENT =
  "Invalid KV_URL (value not shown): its user name or password has a % that escapes nothing; " +
  "expected %25 for a %";
const WANTS_TLS =
  'Invalid GRPC_CLIENT_TLS_CACERT "/ca.pem": gRPC is served without TLS; expected GRPC_SERVER_USE_TLS=true';

const NOT_SENTINEL =
  "Invalid KV_URL (value not shown): KV_TYPE is sentinel; expected name-of-the-primary,host:port with at least " +
  "one host:port of a sentinel";
const NOT_CLUSTER =
  "Invalid KV_URL (value not shown): KV_TYPE is cluster; expected a comma list of host:port or " +
  "[IPv6 address]:port";

const MEMORY: Environment = { BACKEND_TYPE: "memory" };
const KEY = new Uint8Array(32).fill(7).toBase64();
const SECRET = "hunter2";
const WEBHOOK_STORE = `postgres://weir:${SECRET}@db.example:5432/weir`;
const NOT_SHOWN = "Invalid WEBHOOK_STORE (value not shown):";
const FORMS = `${NOT_SHOWN} expected the path of a file, or postgres://user:password@host:port/database`;
const NO_KEY =
  `${NOT_SHOWN} WEBHOOK_ENCRYPTION_KEY is not set; expected the same 32 bytes in base64 for every ` +
  "instance that shares the store";
const NO_PORT = `${NOT_SHOWN} expected a port from 1 to 65535 (write a / or ? in a password as %2F or %3F)`;
const NO_USER = `${NOT_SHOWN} expected a user, as in postgres://user:password@host/database`;

const kv = (KV_URL: string, KV_SOCKET_TYPE?: string): Environment => ({ KV_URL, KV_SOCKET_TYPE });
const sentinel = (url: string, type?: string) => ({ ...kv(url, type), KV_TYPE: "sentinel" });
const cluster = (url: string) => ({ ...kv(url), KV_TYPE: "cluster" });

const CASES: readonly (readonly [name: string, env: Environment, ...problems: string[]])[] = [
  ["no back end and no address", {}, NO_URL],
  [
    "memcached without nodes",
    { BACKEND_TYPE: "mc" },
    "Neither MC_HOST_PORT nor MC_SRV is set: expected MC_HOST_PORT=host:port,host:port or " +
    "MC_SRV=_mc._tcp.example.com",
  ],
  ["key-value back end without address", { BACKEND_TYPE: "kv" }, NO_URL],
  ["unknown back end without address", { BACKEND_TYPE: "redis" }, NO_URL],
  ["workers on TCP", { BACKEND_TYPE: "mc", MC_HOST_PORT: "a:1", WORKERS: "64" }],
  [
    "workers that count in memory",
    { BACKEND_TYPE: "memory", WORKERS: "2" },
    'Invalid WORKERS "2": BACKEND_TYPE is "memory", and threads do not share these counters; expected 1, ' +
    "or BACKEND_TYPE=kv or mc",
  ],
  [
    "workers on a unix socket",
    { BACKEND_TYPE: "mc", MC_HOST_PORT: "a:1", WORKERS: "2", GRPC_UDS: "/run/weir.sock" },
    'Invalid WORKERS "2": GRPC_UDS is set; expected 1 with a unix socket',
  ],
  ["one worker on a unix socket", { BACKEND_TYPE: "memory", WORKERS: "1", GRPC_UDS: "/run/weir.sock" }],
  ["embedded back end without address", { BACKEND_TYPE: "memory" }],
  ["embedded back end, address unread", { BACKEND_TYPE: "memory", ...kv("?", "unix") }],
  ["host and port", kv("localhost:6379")],
  ["IPv6 address and port", kv("[::1]:6379")],
  ["path alone", kv("/run/kv.sock")],
  ["URL with login and database", kv("redis://user:pass@host:6379/2")],
  ["URL with an escaped login", kv("redis://u%40:se%25kret%C3%A9@host:1")],
  ["URL with a bare % in the password", kv("redis://u:se%kret@h:1"), BARE_PERCENT],
  ["URL with a bare % in the user name", kv("redis://100%@h:1", "tcp"), BARE_PERCENT],
  ["URL with an escape that is no UTF-8", kv("redis://u:%ff@h:1"), BARE_PERCENT],
  ["URL with a bare % as unix", kv("redis://u:%@h:1", "unix"), NOT_UNIX],
  ["URL without port", kv("redis://host")],
  ["host and port as tcp", kv("localhost:6379", "tcp")],
  ["URL as tcp", kv("redis://host:6379", "tcp")],
  ["unix:// and a path", kv("unix:///run/kv.sock")],
  ["unix:// and a path as unix", kv("unix:///run/kv.sock", "unix")],
  ["unix:// without a path", kv("unix://kv.sock/x", "unix"), NOT_UNIX],
  ["path as unix", kv("./kv.sock", "unix")],
  ["host without port", kv("localhost"), NEITHER],
  ["relative path alone", kv("run/kv.sock"), NEITHER],
  ["port 0", kv("localhost:0"), NEITHER],
  ["login without scheme", kv("user:pass@localhost:6379"), NEITHER],
  ["URL with a bad database", kv("redis://host/one"), NEITHER],
  ["path as tcp", kv("/run/kv.sock", "tcp"), NOT_TCP],
  ["host and port as unix", kv("localhost:6379", "unix"), NOT_UNIX],
  ["URL as unix", kv("redis://host:6379", "unix"), NOT_UNIX],
  ["URL with TLS", kv("rediss://user:pass@host:6379/1")],
  ["URL with TLS and a bare %", kv("rediss://u:%@h:1"), BARE_PERCENT],
  ["URL with port 0", kv("redis://host:0"), NEITHER],
  ["name and sentinels", sentinel("main,a:1,[::1]:2")],
  ["sentinels, whatever the socket type", sentinel("main, a:1", "unix")],
  ["name without sentinel", sentinel("main"), NOT_SENTINEL],
  ["sentinels without name", sentinel("a:1,b:2"), NOT_SENTINEL],
  ["sentinel without port", sentinel("main,a:1,b"), NOT_SENTINEL],
  [
    "a login for a name",
    sentinel("redis://:secret@a:1,b:2"),
    `${NOT_SENTINEL}, and their login in KV_SENTINEL_AUTH`,
  ],
  ["sentinels with a login", sentinel("main,redis://:secret@a:1,redis://:secret@b:2")],
  [
    "sentinels with several logins",
    sentinel("main,redis://:secret@a:1,redis://u:secret@b:2"),
    "Invalid KV_URL (value not shown): its sentinels have several logins; expected one, in KV_SENTINEL_AUTH",
  ],
  [
    "sentinels over TLS by their URL",
    sentinel("main,rediss://:secret@a:1"),
    `${NOT_SENTINEL}, and their login in KV_SENTINEL_AUTH`,
  ],
  ["cluster of one", cluster("a:1")],
  ["cluster, in another letter case", { ...cluster("a:1, [::1]:2,"), KV_TYPE: "Cluster" }],
  ["cluster without nodes", cluster(","), NOT_CLUSTER],
  ["cluster with a login", cluster("a:1,user:secret@b:2"), NOT_CLUSTER],
  ["cluster by URL", cluster("redis://:secret@a:1"), NOT_CLUSTER],
  [
    "certificate without key",
    { ...kv("h:1"), KV_TLS: "true", KV_TLS_CLIENT_CERT: "/c.pem" },
    'Invalid KV_TLS_CLIENT_CERT "/c.pem": KV_TLS_CLIENT_KEY is not set; expected both or none',
  ],
  [
    "key without certificate",
    { ...kv("rediss://h:1"), KV_TLS_CLIENT_KEY: "/k.pem" },
    'Invalid KV_TLS_CLIENT_KEY "/k.pem": KV_TLS_CLIENT_CERT is not set; expected both or none',
  ],
  ["certificate and key, and one alone that is not read", {
    ...kv("h:1"),
    KV_TLS_CLIENT_CERT: "/c",
    KV_TLS_CLIENT_KEY: "/k",
    MC_TLS_CLIENT_CERT: "/c",
  }],
  ["half a pair that is not read without TLS", { ...kv("h:1"), KV_TLS_CLIENT_CERT: "/c.pem" }],
  ["half a pair for memcached nodes without TLS", {
    BACKEND_TYPE: "mc",
    MC_HOST_PORT: "a:1",
    MC_TLS_CLIENT_CERT: "/c.pem",
  }],
  ["certificate without key for memcached nodes", {
    BACKEND_TYPE: "mc",
    MC_HOST_PORT: "a:1",
    MC_TLS: "true",
    MC_TLS_CLIENT_CERT: "/c.pem",
  }, 'Invalid MC_TLS_CLIENT_CERT "/c.pem": MC_TLS_CLIENT_KEY is not set; expected both or none'],
  [
    "bad socket type does not bring a second complaint about the address",
    kv("/run/kv.sock", "udp"),
    'Invalid KV_SOCKET_TYPE "udp": expected tcp or unix',
  ],
  ["client authority without TLS", { BACKEND_TYPE: "memory", GRPC_CLIENT_TLS_CACERT: "/ca.pem" }, WANTS_TLS],
  ["client authority with TLS that cannot be read", {
    BACKEND_TYPE: "memory",
    GRPC_CLIENT_TLS_CACERT: "/ca.pem",
    GRPC_SERVER_USE_TLS: "yes",
  }, 'Invalid GRPC_SERVER_USE_TLS "yes": expected true or false'],
  [
    "client authority with TLS",
    { BACKEND_TYPE: "memory", GRPC_CLIENT_TLS_CACERT: "/ca.pem", GRPC_SERVER_USE_TLS: "true" },
    'Invalid GRPC_SERVER_USE_TLS "true": GRPC_SERVER_TLS_CERT is not set; expected the path of a PEM file in it',
    'Invalid GRPC_SERVER_USE_TLS "true": GRPC_SERVER_TLS_KEY is not set; expected the path of a PEM file in it',
  ],
  [
    "certificate for the configuration server without its key",
    {
      BACKEND_TYPE: "memory",
      CONFIG_TYPE: "GRPC_XDS_SOTW",
      CONFIG_GRPC_XDS_SERVER_USE_TLS: "true",
      CONFIG_GRPC_XDS_CLIENT_TLS_CERT: "/c.pem",
    },
    'Invalid CONFIG_GRPC_XDS_CLIENT_TLS_CERT "/c.pem": CONFIG_GRPC_XDS_CLIENT_TLS_KEY is not set; expected both or none',
  ],
  [
    "both ways to name memcached nodes",
    { BACKEND_TYPE: "memory", MC_HOST_PORT: "a:1", MC_SRV: "_mc._tcp.a" },
    'Invalid MC_SRV "_mc._tcp.a": MC_HOST_PORT is set too; expected one of the two',
  ],
  [
    "second cache next to the embedded one",
    { BACKEND_TYPE: "memory", KV_PERSECOND: "true" },
    'Invalid KV_PERSECOND "true": BACKEND_TYPE is memory; expected BACKEND_TYPE=kv or no KV_PERSECOND',
  ],
  ["second cache next to the key-value one", {
    ...kv("localhost:6379"),
    KV_PERSECOND: "true",
    KV_PERSECOND_URL: "/run/second.sock",
  }],
  [
    "second cache without address",
    { ...kv("localhost:6379"), KV_PERSECOND: "true" },
    "KV_PERSECOND_URL is not set: expected KV_PERSECOND_URL=host:port or no KV_PERSECOND",
  ],
  [
    "both addresses bad",
    { ...kv("user:secret@h"), KV_PERSECOND: "true", KV_PERSECOND_URL: "user:secret@h" },
    NEITHER,
    NEITHER.replace("KV_URL", "KV_PERSECOND_URL"),
  ],
  ["second cache as tcp", {
    ...kv("h:1"),
    KV_PERSECOND: "true",
    KV_PERSECOND_URL: "/x",
    KV_PERSECOND_SOCKET_TYPE: "tcp",
  }, NOT_TCP.replaceAll("KV_", "KV_PERSECOND_")],
  ["second cache behind sentinels", {
    ...kv("h:1"),
    KV_PERSECOND: "true",
    KV_PERSECOND_URL: "x",
    KV_PERSECOND_TYPE: "sentinel",
  }, NOT_SENTINEL.replaceAll("KV_", "KV_PERSECOND_")],
  [
    "an administrator with the name of ADMIN_TOKEN",
    { ...MEMORY, ADMIN_TOKEN: `${KEY}1`, ADMIN_TOKENS: `admin:read:${KEY}` },
    'Invalid ADMIN_TOKENS (value not shown): two tokens have the name "admin"; expected each name once',
  ],
  [
    "an administrator with the token of ADMIN_TOKEN",
    { ...MEMORY, ADMIN_TOKEN: KEY, ADMIN_TOKENS: `ci:read:${KEY}` },
    'Invalid ADMIN_TOKENS (value not shown): "admin" and "ci" have the same token; expected each token once',
  ],
  ["address of a second cache that is not used", { ...kv("h:1"), KV_PERSECOND_URL: "?" }],
];

/** The place of the store of webhooks, and its keys. */
const STORES: typeof CASES = [
  ["a path", { ...MEMORY, WEBHOOK_STORE: "data/weir.db" }],
  ["a path with a colon and an @", { ...MEMORY, WEBHOOK_STORE: "data:1/weir@2.db" }],
  ["an address and a key", { ...MEMORY, WEBHOOK_STORE, WEBHOOK_ENCRYPTION_KEY: KEY }],
  ["the other word, several hosts and parameters", {
    ...MEMORY,
    WEBHOOK_STORE: `postgresql://weir:${SECRET}@a:1,b:2/weir?sslmode=require`,
    WEBHOOK_ENCRYPTION_KEY: `${KEY},${KEY}`,
  }],
  ["an address and a key file", { ...MEMORY, WEBHOOK_STORE, WEBHOOK_ENCRYPTION_KEY_FILE: "/run/weir.key" }],
  ["an address without a key", { ...MEMORY, WEBHOOK_STORE }, NO_KEY],
  ["an empty list of keys", { ...MEMORY, WEBHOOK_STORE, WEBHOOK_ENCRYPTION_KEY: "," }, NO_KEY],
  ["an address that is wrong", {
    ...MEMORY,
    WEBHOOK_STORE: `postgres://weir:${SECRET}@db:port/weir`,
    WEBHOOK_ENCRYPTION_KEY: KEY,
  }, NO_PORT],
  ["a password with a /", {
    ...MEMORY,
    WEBHOOK_STORE: `postgres://weir:hun/${SECRET}@db/weir`,
    WEBHOOK_ENCRYPTION_KEY: KEY,
  }, NO_USER],
  ["another database", { ...MEMORY, WEBHOOK_STORE: `mysql://weir:${SECRET}@db/weir` }, FORMS],
  ["capitals", { ...MEMORY, WEBHOOK_STORE: `POSTGRES://weir:${SECRET}@db/weir` }, FORMS],
  ["settings of a PostgreSQL with one", {
    ...MEMORY,
    WEBHOOK_STORE,
    WEBHOOK_ENCRYPTION_KEY: KEY,
    WEBHOOK_STORE_POOL_SIZE: "3",
  }],
];

for (const [name, env, ...problems] of [...CASES, ...STORES]) {
  Deno.test(`across settings: ${name}`, () => {
    assertEquals(problemsOf(env), problems);
    assert(!problems.join().includes(SECRET), "a password is not shown");
  });
}

Deno.test("settings of a PostgreSQL have no effect on a store in a file", () => {
  const settings = { WEBHOOK_STORE_LOCK_TIMEOUT: "1s", WEBHOOK_STORE_POOL_SIZE: "3" };
  const server = { ...MEMORY, ...settings, WEBHOOK_STORE, WEBHOOK_ENCRYPTION_KEY: KEY };
  assertEquals(readSettings(server).warnings, []);
  assertEquals(
    readSettings({ ...MEMORY, ...settings, WEBHOOK_STORE: "a.db" }).warnings,
    ["POOL_SIZE", "LOCK_TIMEOUT"].map((name) =>
      `WEBHOOK_STORE_${name} has no effect: WEBHOOK_STORE is not a PostgreSQL address`
    ),
  );
});

Deno.test("settings of quotas have no effect with memcached", () => {
  const settings = { QUOTA_MAX_STREAMS: "3", QUOTA_OVERFLOW: "allow" };
  assertEquals(readSettings({ ...MEMORY, ...settings }).warnings, []);
  assertEquals(
    readSettings({ ...settings, BACKEND_TYPE: "mc", MC_HOST_PORT: "a:1", MC_KEY_DIGEST: "true" }).warnings,
    Object.keys(settings).map((name) =>
      `${name} has no effect: quotas require BACKEND_TYPE=kv or memory: memcached cannot divide a limit among instances`
    ),
  );
});
