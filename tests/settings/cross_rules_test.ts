import { assertEquals } from "@std/assert";
import { type Environment, readSettings, SettingsError } from "../../src/settings/read_settings.ts";

interface RuleCase {
  readonly name: string;
  readonly env: Environment;
  readonly problems: readonly string[];
}

const NO_URL =
  "Cannot use the key-value cache: KV_URL is not set; KV_URL=host:port, or BACKEND_TYPE=memory to count " +
  "in this process alone, would be right";
const TCP_FORMS = "host:port, [IPv6 address]:port or redis://user:password@host:port/db";
const NOT_TCP = `Cannot use KV_URL (value not shown): KV_SOCKET_TYPE is tcp; ${TCP_FORMS} would be right`;
const NOT_UNIX =
  "Cannot use KV_URL (value not shown): KV_SOCKET_TYPE is unix; the path of a unix socket would be right";
const NEITHER =
  `Cannot use KV_URL (value not shown): ${TCP_FORMS} or the path of a unix socket would be right`;
const BARE_PERCENT =
  "Cannot use KV_URL (value not shown): its user name or password has a % that escapes nothing; " +
  "to percent-encode % as %25 would be right";
const WANTS_TLS =
  'Cannot use GRPC_CLIENT_TLS_CACERT "/ca.pem": gRPC is served without TLS; GRPC_SERVER_USE_TLS=true beside it would be right';

const kv = (KV_URL: string, KV_SOCKET_TYPE?: string): Environment => ({ KV_URL, KV_SOCKET_TYPE });

const CASES: readonly RuleCase[] = [
  { name: "no back end and no address", env: {}, problems: [NO_URL] },
  { name: "key-value back end without address", env: { BACKEND_TYPE: "kv" }, problems: [NO_URL] },
  { name: "unknown back end without address", env: { BACKEND_TYPE: "redis" }, problems: [NO_URL] },
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
  { name: "path as unix", env: kv("./kv.sock", "unix"), problems: [] },
  { name: "host without port", env: kv("localhost"), problems: [NEITHER] },
  { name: "relative path alone", env: kv("run/kv.sock"), problems: [NEITHER] },
  { name: "port 0", env: kv("localhost:0"), problems: [NEITHER] },
  { name: "login without scheme", env: kv("user:pass@localhost:6379"), problems: [NEITHER] },
  { name: "URL with a bad database", env: kv("redis://host/one"), problems: [NEITHER] },
  { name: "path as tcp", env: kv("/run/kv.sock", "tcp"), problems: [NOT_TCP] },
  { name: "host and port as unix", env: kv("localhost:6379", "unix"), problems: [NOT_UNIX] },
  { name: "URL as unix", env: kv("redis://host:6379", "unix"), problems: [NOT_UNIX] },
  {
    name: "URL with TLS",
    env: kv("rediss://host:6379"),
    problems: [
      "Cannot use KV_URL (value not shown): TLS is not built yet, it comes with a later release; host:port without it would be right",
    ],
  },
  {
    name: "bad socket type does not bring a second complaint about the address",
    env: kv("/run/kv.sock", "udp"),
    problems: ['Cannot use KV_SOCKET_TYPE "udp": tcp or unix would be right'],
  },
  {
    name: "client authority without TLS",
    env: { BACKEND_TYPE: "memory", GRPC_CLIENT_TLS_CACERT: "/ca.pem" },
    problems: [WANTS_TLS],
  },
  {
    name: "client authority with TLS that cannot be read",
    env: { BACKEND_TYPE: "memory", GRPC_CLIENT_TLS_CACERT: "/ca.pem", GRPC_SERVER_USE_TLS: "yes" },
    problems: ['Cannot use GRPC_SERVER_USE_TLS "yes": true or false would be right'],
  },
  {
    name: "client authority with TLS",
    env: { BACKEND_TYPE: "memory", GRPC_CLIENT_TLS_CACERT: "/ca.pem", GRPC_SERVER_USE_TLS: "true" },
    problems: [
      'Cannot use GRPC_SERVER_USE_TLS "true": not built yet, it comes with a later release; GRPC_SERVER_USE_TLS=false would be right',
    ],
  },
  {
    name: "both ways to name memcached nodes",
    env: { BACKEND_TYPE: "memory", MC_HOST_PORT: "a:1", MC_SRV: "_mc._tcp.a" },
    problems: ['Cannot use MC_SRV "_mc._tcp.a": MC_HOST_PORT is set too; one of the two would be right'],
  },
  {
    name: "second cache beside the embedded one",
    env: { BACKEND_TYPE: "memory", KV_PERSECOND: "true" },
    problems: [
      'Cannot use KV_PERSECOND "true": not built yet, it comes with a later release; KV_PERSECOND=false would be right',
      'Cannot use KV_PERSECOND "true": BACKEND_TYPE is memory; BACKEND_TYPE=kv or no KV_PERSECOND would be right',
    ],
  },
  {
    name: "second cache beside the key-value one",
    env: { ...kv("localhost:6379"), KV_PERSECOND: "true" },
    problems: [
      'Cannot use KV_PERSECOND "true": not built yet, it comes with a later release; KV_PERSECOND=false would be right',
    ],
  },
];

for (const { name, env, problems } of CASES) {
  Deno.test(`across settings: ${name}`, () => assertEquals(problemsOf(env), problems));
}

function problemsOf(env: Environment): readonly string[] {
  try {
    readSettings(env);
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
  return [];
}
