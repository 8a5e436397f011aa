import { type DialAddress, type HostAndPort, hostPort } from "../../base/host_port.ts";

/** Who logs in to a server. */
export interface KvLogin {
  readonly username: string | undefined;
  /** No login when absent. */
  readonly password: string | undefined;
}

/** The fields of every kind of address. */
interface KvAddressBase extends KvLogin {
  /** For errors and logs; holds no login. */
  readonly text: string;
  readonly sentinelLogin: KvLogin;
  /** Number of the database; 0 where there is no other. */
  readonly database: number;
  /** Every connection uses TLS, those to sentinels included. */
  readonly tls: boolean;
}

/** One server. */
interface KvSingle extends KvAddressBase {
  readonly kind: "single";
  readonly target: DialAddress;
}

/** A primary that sentinels know by its name. */
export interface KvSentinel extends KvAddressBase {
  readonly kind: "sentinel";
  readonly master: string;
  readonly sentinels: readonly HostAndPort[];
}

/** Some nodes of a cluster, from which the others are found. */
interface KvCluster extends KvAddressBase {
  readonly kind: "cluster";
  readonly nodes: readonly HostAndPort[];
}

/** The address of a key-value cache, with its login. */
export type KvEndpoints = KvSingle | KvSentinel | KvCluster;

/** The settings that the reading of an address depends on. */
export interface KvAddressOptions {
  /** `unix` reads a single address as a path; the address decides when absent. */
  readonly socketType?: string | undefined;
  /** `password` or `user:password`; takes precedence over a login in the address. */
  readonly auth?: string | undefined;
  /** The same for the sentinels. */
  readonly sentinelAuth?: string | undefined;
  /** Use TLS, which `rediss://` does without it. */
  readonly tls?: boolean;
  /** Name of the setting in errors; `KV_URL` when absent. */
  readonly setting?: string;
}

const DEFAULT_PORT = 6379;
const HOST_AND_PORT = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:@/[\],]+)):(\d{1,5})$/;
const MASTER_NAME = /^[^\s:@/,]+$/;
const SCHEME = /^[a-z]+:\/\//i;
const UNIX_SCHEME = /^unix:\/\/(?=\/)/i;
const FORMS = {
  single: "host:port, [IPv6 address]:port or the path of a unix socket",
  url: "redis://user:password@host:port/database",
  sentinel: "the name of the primary and at least one sentinel, such as name,host:port,host:port",
  cluster: "a comma-separated list of host:port or [IPv6 address]:port",
} as const;

/** One item of a list of servers. */
interface ListedNode {
  readonly target: HostAndPort;
  readonly text: string;
  readonly login: KvLogin | undefined;
}

/**
 * Reads the address of a key-value cache. `single` takes `host:port`, `[::1]:port`, the path of a unix
 * socket (`unix:///path` too), or `redis://user:password@host:port/db`, with `rediss://` for TLS; `sentinel`
 * takes `name,host:port[,host:port…]`, and `cluster` a comma-separated list of `host:port`. A sentinel may be a URL
 * without a database, whose login is that of all. Throws a
 * `SyntaxError` that says what was expected, and shows nothing that may be a password.
 */
export function parseKvAddress(
  type: "single" | "sentinel" | "cluster",
  url: string,
  options: KvAddressOptions = {},
): KvEndpoints {
  const { auth, sentinelAuth, tls = false, setting = "KV_URL" } = options;
  const sentinelLogin = parseLogin(type === "sentinel" ? sentinelAuth : undefined);
  const base = { ...parseLogin(auth), sentinelLogin, database: 0, tls };
  if (type === "single") {
    const plain = url.replace(UNIX_SCHEME, "");
    if (SCHEME.test(plain)) {
      const { login, ...parts } = parseUrl(plain, setting);
      return { ...base, ...(auth === undefined ? login : {}), kind: type, ...parts, tls: tls || parts.tls };
    }
    const { socketType = plain.startsWith("/") ? "unix" : "tcp" } = options;
    const target = socketType === "unix" ? { path: plain } : parseHostAndPort(plain);
    if (target !== undefined) return { ...base, kind: type, text: plain, target };
    throw invalid(setting, plain.includes("@") ? "(value not shown)" : `"${plain}"`, type);
  }
  const items = url.split(",").map((item) => item.trim()).filter((item) => item !== "");
  const [master = ""] = type === "sentinel" ? items.splice(0, 1) : ["-"];
  const parse = type === "sentinel" ? parseSentinel : parseNode;
  const nodes = items.map((item) => parse(item, setting)).filter((node) => node !== undefined);
  if (!MASTER_NAME.test(master) || nodes.length === 0 || nodes.length < items.length) {
    throw invalid(setting, "(value not shown)", type);
  }
  const text = nodes.map(({ text }) => text).join(",");
  const endpoints = nodes.map(({ target }) => target);
  if (type === "cluster") return { ...base, kind: type, text, nodes: endpoints };
  const login = sentinelAuth === undefined
    ? nodes.find(({ login }) => login !== undefined)?.login
    : undefined;
  return {
    ...base,
    sentinelLogin: login ?? sentinelLogin,
    kind: type,
    text: `${master},${text}`,
    master,
    sentinels: endpoints,
  };
}

function parseNode(text: string): ListedNode | undefined {
  const target = parseHostAndPort(text);
  return target === undefined ? undefined : { target, text, login: undefined };
}

function parseSentinel(text: string, setting: string): ListedNode | undefined {
  if (!SCHEME.test(text)) return parseNode(text);
  const { target, database, tls, login } = parseUrl(text, setting);
  if (database !== 0 || tls) return undefined;
  return { target, text: hostPort(target), login: login.password === undefined ? undefined : login };
}

function parseLogin(auth = ""): KvLogin {
  const colon = auth.indexOf(":");
  const [username, password] = [auth.slice(0, Math.max(0, colon)), auth.slice(colon + 1)];
  return { username: username || undefined, password: auth === "" ? undefined : password };
}

function parseHostAndPort(text: string): HostAndPort | undefined {
  const parts = HOST_AND_PORT.exec(text);
  const host = parts?.[1] ?? parts?.[2];
  const port = Number(parts?.[3]);
  return host !== undefined && port > 0 && port < 65_536 ? { host, port } : undefined;
}

function parseUrl(
  text: string,
  setting: string,
): Pick<KvSingle, "text" | "database" | "tls"> & { readonly target: HostAndPort; readonly login: KvLogin } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const database = Number(url?.pathname.slice(1) ?? 0);
  const isScheme = url?.protocol === "redis:" || url?.protocol === "rediss:";
  if (url === undefined || !isScheme || url.hostname === "" || !Number.isInteger(database)) {
    throw invalid(setting, "(value not shown)", "url");
  }
  const port = url.port === "" ? DEFAULT_PORT : Number(url.port);
  return {
    text: `${url.hostname}:${port}`,
    target: { host: url.hostname.replace(/^\[|\]$/g, ""), port },
    login: {
      username: decodeURIComponent(url.username) || undefined,
      password: decodeURIComponent(url.password) || undefined,
    },
    database,
    tls: url.protocol === "rediss:",
  };
}

function invalid(setting: string, shown: string, form: keyof typeof FORMS): SyntaxError {
  return new SyntaxError(`Invalid ${setting} ${shown}: expected ${FORMS[form]}`);
}
