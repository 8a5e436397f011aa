import { assertEquals } from "@std/assert";
import { type Environment, readSettings, SettingsError } from "../../../src/settings/read_settings.ts";

interface RuleCase {
  readonly name: string;
  readonly env: Environment;
  readonly problems: readonly string[];
}

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

const kv = (KV_URL: string, KV_SOCKET_TYPE?: string): Environment => ({ KV_URL, KV_SOCKET_TYPE });
const sentinel = (url: string, type?: string) => ({ ...kv(url, type), KV_TYPE: "sentinel" });
const cluster = (url: string) => ({ ...kv(url), KV_TYPE: "cluster" });

const CASES: readonly RuleCase[] = [
  { name: "no back end and no address", env: {}, problems: [NO_URL] },
  {
    name: "memcached without nodes",
    env: { BACKEND_TYPE: "mc" },
    problems: [
      "Neither MC_HOST_PORT nor MC_SRV is set: expected MC_HOST_PORT=host:port,host:port or " +
      "MC_SRV=_mc._tcp.example.com",
    ],
  },
  { name: "key-value back end without address", env: { BACKEND_TYPE: "kv" }, problems: [NO_URL] },
  { name: "unknown back end without address", env: { BACKEND_TYPE: "redis" }, problems: [NO_URL] },
  { name: "workers on TCP", env: { BACKEND_TYPE: "memory", WORKERS: "64" }, problems: [] },
  {
    name: "workers on a unix socket",
    env: { BACKEND_TYPE: "memory", WORKERS: "2", GRPC_UDS: "/run/weir.sock" },
    problems: ['Invalid WORKERS "2": GRPC_UDS is set; expected 1 with a unix socket'],
  },
  {
    name: "one worker on a unix socket",
    env: { BACKEND_TYPE: "memory", WORKERS: "1", GRPC_UDS: "/run/weir.sock" },
    problems: [],
  },
  ...["0", "-1", "two", "1.5", "65", "1000"].map((WORKERS) => ({
    name: `workers ${WORKERS}`,
    env: { BACKEND_TYPE: "memory", WORKERS },
    problems: [`Invalid WORKERS "${WORKERS}": expected an integer from 1 to 64`],
  })),
  { name: "embedded back end without address", env: { BACKEND_TYPE: "memory" }, problems: [] },
  {
    name: "embedded back end, address unread",
    env: { BACKEND_TYPE: "memory", ...kv("?", "unix") },
    problems: [],
  },
  { name: "host and port", env: kv("localhost:6379"), problems: [] },
  { name: "IPv6 address and port", env: kv("[::1]:6379"), problems: [] },
  { name: "path alone", env: kv("/run/kv.sock"), problems: [] },
  { name: "URL with login and database", env: kv("redis://user:pass@host:6379/2"), problems: [] },
  { name: "URL with an escaped login", env: kv("redis://u%40:se%25kret%C3%A9@host:1"), problems: [] },
  { name: "URL with a bare % in the password", env: kv("redis://u:se%kret@h:1"), problems: [BARE_PERCENT] },
  {
    name: "URL with a bare % in the user name",
    env: kv("redis://100%@h:1", "tcp"),
    problems: [BARE_PERCENT],
  },
  { name: "URL with an escape that is no UTF-8", env: kv("redis://u:%ff@h:1"), problems: [BARE_PERCENT] },
  { name: "URL with a bare % as unix", env: kv("redis://u:%@h:1", "unix"), problems: [NOT_UNIX] },
  { name: "URL without port", env: kv("redis://host"), problems: [] },
  { name: "host and port as tcp", env: kv("localhost:6379", "tcp"), problems: [] },
  { name: "URL as tcp", env: kv("redis://host:6379", "tcp"), problems: [] },
  { name: "unix:// and a path", env: kv("unix:///run/kv.sock"), problems: [] },
  { name: "unix:// and a path as unix", env: kv("unix:///run/kv.sock", "unix"), problems: [] },
  { name: "unix:// without a path", env: kv("unix://kv.sock/x", "unix"), problems: [NOT_UNIX] },
  { name: "path as unix", env: kv("./kv.sock", "unix"), problems: [] },
  { name: "host without port", env: kv("localhost"), problems: [NEITHER] },
  { name: "relative path alone", env: kv("run/kv.sock"), problems: [NEITHER] },
  { name: "port 0", env: kv("localhost:0"), problems: [NEITHER] },
  { name: "login without scheme", env: kv("user:pass@localhost:6379"), problems: [NEITHER] },
  { name: "URL with a bad database", env: kv("redis://host/one"), problems: [NEITHER] },
  { name: "path as tcp", env: kv("/run/kv.sock", "tcp"), problems: [NOT_TCP] },
  { name: "host and port as unix", env: kv("localhost:6379", "unix"), problems: [NOT_UNIX] },
  { name: "URL as unix", env: kv("redis://host:6379", "unix"), problems: [NOT_UNIX] },
  { name: "URL with TLS", env: kv("rediss://user:pass@host:6379/1"), problems: [] },
  { name: "URL with TLS and a bare %", env: kv("rediss://u:%@h:1"), problems: [BARE_PERCENT] },
  { name: "URL with port 0", env: kv("redis://host:0"), problems: [NEITHER] },
  { name: "name and sentinels", env: sentinel("main,a:1,[::1]:2"), problems: [] },
  { name: "sentinels, whatever the socket type", env: sentinel("main, a:1", "unix"), problems: [] },
  { name: "name without sentinel", env: sentinel("main"), problems: [NOT_SENTINEL] },
  { name: "sentinels without name", env: sentinel("a:1,b:2"), problems: [NOT_SENTINEL] },
  { name: "sentinel without port", env: sentinel("main,a:1,b"), problems: [NOT_SENTINEL] },
  {
    name: "a login for a name",
    env: sentinel("redis://:secret@a:1,b:2"),
    problems: [`${NOT_SENTINEL}, and their login in KV_SENTINEL_AUTH`],
  },
  {
    name: "sentinels with a login",
    env: sentinel("main,redis://:secret@a:1,redis://:secret@b:2"),
    problems: [],
  },
  {
    name: "sentinels with several logins",
    env: sentinel("main,redis://:secret@a:1,redis://u:secret@b:2"),
    problems: [
      "Invalid KV_URL (value not shown): its sentinels have several logins; expected one, in KV_SENTINEL_AUTH",
    ],
  },
  {
    name: "sentinels over TLS by their URL",
    env: sentinel("main,rediss://:secret@a:1"),
    problems: [`${NOT_SENTINEL}, and their login in KV_SENTINEL_AUTH`],
  },
  { name: "cluster of one", env: cluster("a:1"), problems: [] },
  {
    name: "cluster, in another letter case",
    env: { ...cluster("a:1, [::1]:2,"), KV_TYPE: "Cluster" },
    problems: [],
  },
  { name: "cluster of nobody", env: cluster(","), problems: [NOT_CLUSTER] },
  { name: "cluster with a login", env: cluster("a:1,user:secret@b:2"), problems: [NOT_CLUSTER] },
  { name: "cluster by URL", env: cluster("redis://:secret@a:1"), problems: [NOT_CLUSTER] },
  {
    name: "certificate without key",
    env: { ...kv("h:1"), KV_TLS: "true", KV_TLS_CLIENT_CERT: "/c.pem" },
    problems: [
      'Invalid KV_TLS_CLIENT_CERT "/c.pem": KV_TLS_CLIENT_KEY is not set; expected both or none',
    ],
  },
  {
    name: "key without certificate",
    env: { ...kv("rediss://h:1"), KV_TLS_CLIENT_KEY: "/k.pem" },
    problems: [
      'Invalid KV_TLS_CLIENT_KEY "/k.pem": KV_TLS_CLIENT_CERT is not set; expected both or none',
    ],
  },
  {
    name: "certificate and key, and one alone that nobody reads",
    env: { ...kv("h:1"), KV_TLS_CLIENT_CERT: "/c", KV_TLS_CLIENT_KEY: "/k", MC_TLS_CLIENT_CERT: "/c" },
    problems: [],
  },
  {
    name: "half a pair that nobody reads without TLS",
    env: { ...kv("h:1"), KV_TLS_CLIENT_CERT: "/c.pem" },
    problems: [],
  },
  {
    name: "half a pair for memcached nodes without TLS",
    env: { BACKEND_TYPE: "mc", MC_HOST_PORT: "a:1", MC_TLS_CLIENT_CERT: "/c.pem" },
    problems: [],
  },
  {
    name: "certificate without key for memcached nodes",
    env: { BACKEND_TYPE: "mc", MC_HOST_PORT: "a:1", MC_TLS: "true", MC_TLS_CLIENT_CERT: "/c.pem" },
    problems: [
      'Invalid MC_TLS_CLIENT_CERT "/c.pem": MC_TLS_CLIENT_KEY is not set; expected both or none',
    ],
  },
  {
    name: "bad socket type does not bring a second complaint about the address",
    env: kv("/run/kv.sock", "udp"),
    problems: ['Invalid KV_SOCKET_TYPE "udp": expected tcp or unix'],
  },
  {
    name: "client authority without TLS",
    env: { BACKEND_TYPE: "memory", GRPC_CLIENT_TLS_CACERT: "/ca.pem" },
    problems: [WANTS_TLS],
  },
  {
    name: "client authority with TLS that cannot be read",
    env: { BACKEND_TYPE: "memory", GRPC_CLIENT_TLS_CACERT: "/ca.pem", GRPC_SERVER_USE_TLS: "yes" },
    problems: ['Invalid GRPC_SERVER_USE_TLS "yes": expected true or false'],
  },
  {
    name: "client authority with TLS",
    env: { BACKEND_TYPE: "memory", GRPC_CLIENT_TLS_CACERT: "/ca.pem", GRPC_SERVER_USE_TLS: "true" },
    problems: [
      'Invalid GRPC_SERVER_USE_TLS "true": GRPC_SERVER_TLS_CERT is not set; expected the path of a PEM file in it',
      'Invalid GRPC_SERVER_USE_TLS "true": GRPC_SERVER_TLS_KEY is not set; expected the path of a PEM file in it',
    ],
  },
  {
    name: "certificate for the configuration server without its key",
    env: {
      BACKEND_TYPE: "memory",
      CONFIG_TYPE: "GRPC_XDS_SOTW",
      CONFIG_GRPC_XDS_SERVER_USE_TLS: "true",
      CONFIG_GRPC_XDS_CLIENT_TLS_CERT: "/c.pem",
    },
    problems: [
      'Invalid CONFIG_GRPC_XDS_CLIENT_TLS_CERT "/c.pem": CONFIG_GRPC_XDS_CLIENT_TLS_KEY is not set; expected both or none',
    ],
  },
  {
    name: "both ways to name memcached nodes",
    env: { BACKEND_TYPE: "memory", MC_HOST_PORT: "a:1", MC_SRV: "_mc._tcp.a" },
    problems: ['Invalid MC_SRV "_mc._tcp.a": MC_HOST_PORT is set too; expected one of the two'],
  },
  {
    name: "second cache beside the embedded one",
    env: { BACKEND_TYPE: "memory", KV_PERSECOND: "true" },
    problems: [
      'Invalid KV_PERSECOND "true": BACKEND_TYPE is memory; expected BACKEND_TYPE=kv or no KV_PERSECOND',
    ],
  },
  {
    name: "second cache beside the key-value one",
    env: { ...kv("localhost:6379"), KV_PERSECOND: "true", KV_PERSECOND_URL: "/run/second.sock" },
    problems: [],
  },
  {
    name: "second cache without address",
    env: { ...kv("localhost:6379"), KV_PERSECOND: "true" },
    problems: [
      "KV_PERSECOND_URL is not set: expected KV_PERSECOND_URL=host:port or no KV_PERSECOND",
    ],
  },
  {
    name: "both addresses bad",
    env: { ...kv("user:secret@h"), KV_PERSECOND: "true", KV_PERSECOND_URL: "user:secret@h" },
    problems: [NEITHER, NEITHER.replace("KV_URL", "KV_PERSECOND_URL")],
  },
  {
    name: "second cache as tcp",
    env: { ...kv("h:1"), KV_PERSECOND: "true", KV_PERSECOND_URL: "/x", KV_PERSECOND_SOCKET_TYPE: "tcp" },
    problems: [NOT_TCP.replaceAll("KV_", "KV_PERSECOND_")],
  },
  {
    name: "second cache behind sentinels",
    env: { ...kv("h:1"), KV_PERSECOND: "true", KV_PERSECOND_URL: "x", KV_PERSECOND_TYPE: "sentinel" },
    problems: [NOT_SENTINEL.replaceAll("KV_", "KV_PERSECOND_")],
  },
  {
    name: "address of a second cache that is not used",
    env: { ...kv("h:1"), KV_PERSECOND_URL: "?" },
    problems: [],
  },
];

for (const { name, env, problems } of CASES) {
  Deno.test(`across settings: ${name}`, () => assertEquals(problemsOf(env), problems));
}

function problemsOf(env: Environment): readonly string[] {
  try {
    readSettings(env);
  } catch (error) {
    if (error instanceof SettingsError) return [...error.problems];
    throw error;
  }
  return [];
}
