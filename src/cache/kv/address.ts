/** A host name or literal address without brackets, and a port. */
export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** Where one connection leads: over TCP, or over a unix socket. */
export type KvTarget = HostAndPort | { readonly path: string };

/** What every kind of address comes with. */
interface KvLogin {
  /** As it may be printed: no user name, no password. */
  readonly text: string;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Login of the sentinels, which do not know that of the servers. */
  readonly sentinelUsername: string | undefined;
  readonly sentinelPassword: string | undefined;
  /** Number of the database; always 0 where there may be no other. */
  readonly database: number;
  /** Whether every connection speaks TLS, those to sentinels included. */
  readonly tls: boolean;
}

/** One server. */
export interface KvSingle extends KvLogin {
  readonly kind: "single";
  readonly target: KvTarget;
}

/** A primary that sentinels know by its name. */
export interface KvSentinel extends KvLogin {
  readonly kind: "sentinel";
  readonly master: string;
  readonly sentinels: readonly HostAndPort[];
}

/** Nodes of a cluster, of which one that answers is enough to find the others. */
export interface KvCluster extends KvLogin {
  readonly kind: "cluster";
  readonly nodes: readonly HostAndPort[];
}

/** Where a key-value cache is, and as whom to log in. */
export type KvEndpoints = KvSingle | KvSentinel | KvCluster;

/** The settings beside the address that say how it is read. */
export interface KvAddressOptions {
  /** `unix` takes a single address as a path; the address decides when absent. */
  readonly socketType?: string | undefined;
  /** `password` or `user:password`, split at the first colon; wins over the address's own. */
  readonly auth?: string | undefined;
  /** The same for the sentinels. */
  readonly sentinelAuth?: string | undefined;
  /** Speak TLS; `rediss://` does so without it. */
  readonly tls?: boolean;
  /** Name of the setting in errors; `KV_URL` when absent. */
  readonly setting?: string;
}

const DEFAULT_PORT = 6379;
const HOST_AND_PORT = /^(?:\[([0-9A-Fa-f:.]+)\]|([^\s:@/[\],]+)):(\d{1,5})$/;
const MASTER_NAME = /^[^\s:@/,]+$/;
const SINGLE_FORMS = "host:port, [IPv6 address]:port or the path of a unix socket";
const LIST_FORMS = {
  sentinel: "the name of the primary and at least one sentinel, as in name,host:port,host:port,",
  cluster: "a comma list of host:port or [IPv6 address]:port",
} as const;

/**
 * Reads the address of a key-value cache. `single` takes `host:port`, `[::1]:port`, the path of a unix
 * socket (`unix:///path` too), or `redis://user:password@host:port/db`, with `rediss://` for TLS; `sentinel` takes
 * `name,host:port[,host:port…]`, and `cluster` a comma list of `host:port`. Throws a `SyntaxError` that
 * says what would be right, and shows nothing that may be a password.
 */
export function parseKvAddress(
  type: "single" | "sentinel" | "cluster",
  url: string,
  options: KvAddressOptions = {},
): KvEndpoints {
  const { auth, sentinelAuth, tls = false, setting = "KV_URL" } = options;
  const login = loginOf(auth);
  const sentinelLogin = loginOf(type === "sentinel" ? sentinelAuth : undefined);
  const base = {
    sentinelUsername: sentinelLogin.username,
    sentinelPassword: sentinelLogin.password,
    database: 0,
    tls,
    ...login,
  };
  if (type === "single") {
    const plain = url.replace(UNIX_SCHEME, "");
    const address = SCHEME.test(plain)
      ? parseUrl(plain, setting)
      : { ...parsePlain(plain, options.socketType, setting), ...NO_URL };
    const { target, text, database } = address;
    const own = auth === undefined ? { username: address.username, password: address.password } : login;
    return { ...base, ...own, kind: "single", target, text, database, tls: tls || address.tls };
  }
  const items = url.split(",").map((item) => item.trim()).filter((item) => item !== "");
  if (type === "cluster") {
    return { ...base, kind: "cluster", text: items.join(","), nodes: nodesOf(items, type, setting) };
  }
  const [master = "", ...rest] = items;
  if (!MASTER_NAME.test(master)) throw wrongList(type, setting);
  return {
    ...base,
    kind: "sentinel",
    text: items.join(","),
    master,
    sentinels: nodesOf(rest, type, setting),
  };
}

const SCHEME = /^[a-z]+:\/\//i;
/** What a path of a unix socket may begin with. */
const UNIX_SCHEME = /^unix:\/\/(?=\/)/i;
const NO_URL = { username: undefined, password: undefined, database: 0, tls: false };

/** An empty user name is none. */
function loginOf(auth: string | undefined): { username: string | undefined; password: string | undefined } {
  if (auth === undefined || auth === "") return { username: undefined, password: undefined };
  const colon = auth.indexOf(":");
  if (colon < 0) return { username: undefined, password: auth };
  return { username: colon === 0 ? undefined : auth.slice(0, colon), password: auth.slice(colon + 1) };
}

function parsePlain(
  url: string,
  socketType: string | undefined,
  setting: string,
): { text: string; target: KvTarget } {
  const isUnix = socketType === "unix" || (socketType === undefined && url.startsWith("/"));
  if (isUnix) return { text: url, target: { path: url } };
  const target = parseHostAndPort(url);
  if (target !== undefined) return { text: url, target };
  const shown = url.includes("@") ? "(value not shown)" : `"${url}"`;
  throw new SyntaxError(`Cannot use ${setting} ${shown}: ${SINGLE_FORMS} would be right`);
}

function parseHostAndPort(text: string): HostAndPort | undefined {
  const parts = HOST_AND_PORT.exec(text);
  const host = parts?.[1] ?? parts?.[2];
  const port = Number(parts?.[3]);
  return host !== undefined && port > 0 && port < 65_536 ? { host, port } : undefined;
}

function nodesOf(items: readonly string[], type: keyof typeof LIST_FORMS, setting: string): HostAndPort[] {
  const nodes = items.map(parseHostAndPort).filter((node) => node !== undefined);
  if (nodes.length === 0 || nodes.length < items.length) throw wrongList(type, setting);
  return nodes;
}

function wrongList(type: keyof typeof LIST_FORMS, setting: string): SyntaxError {
  return new SyntaxError(`Cannot use ${setting} (value not shown): ${LIST_FORMS[type]} would be right`);
}

function parseUrl(text: string, setting: string): Omit<KvSingle, "kind" | `sentinel${string}`> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const database = Number(url?.pathname.slice(1) ?? 0);
  const isScheme = url?.protocol === "redis:" || url?.protocol === "rediss:";
  if (url === undefined || !isScheme || url.hostname === "" || !Number.isInteger(database)) {
    throw new SyntaxError(`Cannot use ${setting}: redis://user:password@host:port/database would be right`);
  }
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const port = url.port === "" ? DEFAULT_PORT : Number(url.port);
  return {
    text: `${url.hostname}:${port}`,
    target: { host, port },
    username: url.username === "" ? undefined : decodeURIComponent(url.username),
    password: url.password === "" ? undefined : decodeURIComponent(url.password),
    database,
    tls: url.protocol === "rediss:",
  };
}
