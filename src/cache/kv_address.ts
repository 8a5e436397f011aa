/** Where a key-value cache listens, and as whom to log in. */
export interface KvAddress {
  /** As it may be printed: no user name, no password. */
  readonly text: string;
  readonly target: { readonly host: string; readonly port: number } | { readonly path: string };
  readonly username: string | undefined;
  readonly password: string | undefined;
  readonly database: number;
}

const DEFAULT_PORT = 6379;
const HOST_AND_PORT = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/;

/**
 * Reads `host:port`, `[::1]:port`, a path of a unix socket, or `redis://user:password@host:port/db`.
 * `auth` is `password` or `user:password`, split at the first colon, and wins over the URL's own.
 */
export function parseKvAddress(
  url: string,
  socketType: string | undefined,
  auth: string | undefined,
): KvAddress {
  const address = /^[a-z]+:\/\//i.test(url) ? parseUrl(url) : parsePlain(url, socketType);
  if (auth === undefined) return address;
  const colon = auth.indexOf(":");
  if (colon < 0) return { ...address, username: undefined, password: auth };
  return { ...address, username: auth.slice(0, colon), password: auth.slice(colon + 1) };
}

function parsePlain(url: string, socketType: string | undefined): KvAddress {
  const anonymous = { username: undefined, password: undefined, database: 0 };
  const isUnix = socketType === "unix" || (socketType === undefined && url.startsWith("/"));
  if (isUnix) return { ...anonymous, text: url, target: { path: url } };
  const parts = HOST_AND_PORT.exec(url);
  const host = parts?.[1] ?? parts?.[2];
  const port = Number(parts?.[3]);
  if (host === undefined || !(port > 0 && port < 65_536)) {
    const shown = url.includes("@") ? "(value not shown)" : `"${url}"`;
    throw new SyntaxError(
      `Cannot use KV_URL ${shown}: host:port, [IPv6 address]:port or the path of a unix socket would be right`,
    );
  }
  return { ...anonymous, text: url, target: { host, port } };
}

function parseUrl(text: string): KvAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const database = Number(url?.pathname.slice(1) ?? 0);
  if (url?.protocol !== "redis:" || url.hostname === "" || !Number.isInteger(database)) {
    throw new SyntaxError("Cannot use KV_URL: redis://user:password@host:port/database would be right");
  }
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const port = url.port === "" ? DEFAULT_PORT : Number(url.port);
  return {
    text: `${url.hostname}:${port}`,
    target: { host, port },
    username: url.username === "" ? undefined : decodeURIComponent(url.username),
    password: url.password === "" ? undefined : decodeURIComponent(url.password),
    database,
  };
}
