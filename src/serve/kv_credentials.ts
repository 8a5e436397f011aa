import { type KvEndpoints, type KvLogin, parseKvAddress } from "../cache/kv/address.ts";
import type { KvCredentials } from "../cache/kv/connections.ts";
import { kvLoginMetrics, type KvPoolName } from "../cache/metrics.ts";
import { Credential } from "../net/credential.ts";
import { otherAddress, WatchedSecrets } from "../net/watched_secrets.ts";
import type { OpenCacheOptions } from "./cache_connections.ts";

/** The settings of one of the two caches begin so. */
export type KvPrefix = "KV" | "KV_PERSECOND";

/** The address of a cache and who logs in to it. */
interface OpenKvCredentials extends KvCredentials {
  readonly address: KvEndpoints;
  close(): Promise<void>;
}

/** Reads the address of a cache, and its credentials again when the files that hold them change. */
export function openKvCredentials(
  options: OpenCacheOptions,
  { prefix, metrics }: { readonly prefix: KvPrefix; readonly metrics: KvPoolName },
): OpenKvCredentials {
  const { settings, secretFiles, stats, logger } = options;
  const names = [`${prefix}_URL`, `${prefix}_AUTH`, `${prefix}_SENTINEL_AUTH`] as const;
  const parse = (valueOf: (name: typeof names[number]) => string | undefined) =>
    parseKvAddress(settings[`${prefix}_TYPE`], valueOf(`${prefix}_URL`) ?? "", {
      socketType: settings[`${prefix}_SOCKET_TYPE`],
      auth: valueOf(`${prefix}_AUTH`),
      sentinelAuth: valueOf(`${prefix}_SENTINEL_AUTH`),
      tls: settings[`${prefix}_TLS`],
      setting: `${prefix}_URL`,
    });
  const address = parse((name) => settings[name]);
  const files = names.flatMap((name) => {
    const path = secretFiles?.get(name);
    return path === undefined ? [] : { name, path, value: settings[name] ?? "" };
  });
  const onRefused = () => watched.readNow();
  const credential = (value: KvLogin, server: string) => new Credential(value, { server, logger, onRefused });
  const login = credential(loginOf(address), `key-value cache ${address.text}`);
  const sentinelLogin = credential(address.sentinelLogin, `sentinels ${address.text}`);
  const watched = new WatchedSecrets({
    ...options,
    files,
    onChange(values) {
      const next = orUndefined(() => parse((name) => values.get(name) ?? settings[name]));
      if (next === undefined || placeOf(next) !== placeOf(address)) throw otherAddress();
      replace(login, loginOf(next));
      replace(sentinelLogin, next.sentinelLogin);
    },
  });
  if (files.length > 0) void watched.start();
  stats.addMetrics(kvLoginMetrics(metrics), {
    counters: {
      credentials_reloaded: () => watched.metrics.reloaded,
      credentials_rejected: () => watched.metrics.rejected,
      logins_refused: () => login.refused + sentinelLogin.refused,
    },
    gauges: {},
  });
  return { address, login, sentinelLogin, close: () => watched.close() };
}

function loginOf({ username, password }: KvEndpoints): KvLogin {
  return { username, password };
}

/** Undefined for an invalid address: its error may quote a text that is a password in the wrong file. */
function orUndefined(parse: () => KvEndpoints): KvEndpoints | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}

/** The address without its credentials. */
function placeOf(address: KvEndpoints): string {
  const hidden = undefined;
  return JSON.stringify({ ...address, username: hidden, password: hidden, sentinelLogin: hidden });
}

function replace(credential: Credential<KvLogin>, { username, password }: KvLogin): void {
  const { current } = credential;
  if (current.username === username && current.password === password) return;
  credential.replace({ username, password });
}
