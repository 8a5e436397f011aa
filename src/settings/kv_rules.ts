import { dialAddress } from "./address_parsers.ts";
import { type Environment, isSet } from "./setting.ts";
import type { CrossRule, Settings } from "./table.ts";

type Prefix = "KV" | "KV_PERSECOND";

/** The rules between the settings of the key-value caches, in the order of their problems. */
export const KV_RULES: readonly CrossRule[] = [
  { reads: ["KV_PERSECOND", "BACKEND_TYPE"], problem: perSecondProblem },
  { reads: ["BACKEND_TYPE", "KV_URL"], problem: missingUrlProblem },
  {
    reads: ["BACKEND_TYPE", "KV_URL", "KV_SOCKET_TYPE", "KV_TYPE"],
    problem: (settings) => addressProblem("KV", settings),
  },
  { reads: ["BACKEND_TYPE", "KV_PERSECOND", "KV_PERSECOND_URL"], problem: missingPerSecondUrlProblem },
  {
    reads: [
      ...["BACKEND_TYPE", "KV_PERSECOND", "KV_PERSECOND_URL"] as const,
      ...["KV_PERSECOND_SOCKET_TYPE", "KV_PERSECOND_TYPE"] as const,
    ],
    problem: (settings) => addressProblem("KV_PERSECOND", settings),
  },
  {
    reads: ["BACKEND_TYPE", "KV_PIPELINE_WINDOW", "KV_TIMEOUT"],
    problem: (settings) => windowProblem("KV", settings),
  },
  {
    reads: ["BACKEND_TYPE", "KV_PERSECOND", "KV_PERSECOND_PIPELINE_WINDOW", "KV_PERSECOND_TIMEOUT"],
    problem: (settings) => windowProblem("KV_PERSECOND", settings),
  },
];

const TCP_FORMS = "host:port, [IPv6 address]:port or redis://user:password@host:port/db";
/** A name of a primary; another text may be a login. */
const MASTER_NAME = /^[^\s:@/,]+$/;

/** Warnings about valid settings of the cache; `bad` names settings that could not be read. */
export function cacheWarnings(settings: Settings, env: Environment, bad: ReadonlySet<string>): string[] {
  if (settings.BACKEND_TYPE === "mc" && !settings.MC_KEY_DIGEST && !bad.has("MC_KEY_DIGEST")) {
    return [
      "MC_KEY_DIGEST is false: a blank, a control character or a long value in one descriptor fails the " +
      "whole call as INVALID_ARGUMENT; MC_KEY_DIGEST=true stores such keys under a digest",
    ];
  }
  return (["KV", "KV_PERSECOND"] as const).flatMap((prefix) => waitWarning(prefix, settings, env) ?? []);
}

/** A wait that outlasts the timeout would leave none of it for what follows. */
function waitWarning(prefix: Prefix, settings: Settings, env: Environment): string | undefined {
  const behavior = settings[`${prefix}_POOL_ON_EMPTY_BEHAVIOR`];
  const name = `${prefix}_POOL_ON_EMPTY_WAIT_DURATION` as const;
  const waitMs = settings[name];
  const timeoutMs = settings[`${prefix}_TIMEOUT`];
  if (!isUsed(prefix, settings) || behavior === "WAIT" || waitMs < timeoutMs) return undefined;
  // The default is shortened without a word.
  if (!isSet(env, name)) return undefined;
  return `${name} is ${waitMs} ms, but ${prefix}_TIMEOUT is ${timeoutMs} ms: calls wait for half of their remaining ` +
    `time, then ${behavior} applies; set it below ${prefix}_TIMEOUT`;
}

function isUsed(prefix: Prefix, { BACKEND_TYPE, KV_PERSECOND }: Settings): boolean {
  return BACKEND_TYPE === "kv" && (prefix === "KV" || KV_PERSECOND);
}

function perSecondProblem({ KV_PERSECOND, BACKEND_TYPE: backend }: Settings): string | undefined {
  if (!KV_PERSECOND || backend === "kv") return undefined;
  return `Invalid KV_PERSECOND "true": BACKEND_TYPE is ${backend}; expected BACKEND_TYPE=kv or no KV_PERSECOND`;
}

/** Commands that are gathered for longer than their timeout would never be answered. */
function windowProblem(prefix: Prefix, settings: Settings): string | undefined {
  const windowMs = settings[`${prefix}_PIPELINE_WINDOW`];
  const timeoutMs = settings[`${prefix}_TIMEOUT`];
  if (!isUsed(prefix, settings) || windowMs < timeoutMs) return undefined;
  return `Invalid ${prefix}_PIPELINE_WINDOW of ${windowMs} ms: expected less than ${prefix}_TIMEOUT, ${timeoutMs} ms`;
}

function missingUrlProblem(settings: Settings): string | undefined {
  if (!isUsed("KV", settings) || settings.KV_URL !== undefined) return undefined;
  return "KV_URL is not set: expected KV_URL=host:port, or BACKEND_TYPE=memory to count only in this process";
}

function missingPerSecondUrlProblem(settings: Settings): string | undefined {
  if (!isUsed("KV_PERSECOND", settings) || settings.KV_PERSECOND_URL !== undefined) return undefined;
  return "KV_PERSECOND_URL is not set: expected KV_PERSECOND_URL=host:port or no KV_PERSECOND";
}

/** The value is never shown, because it may hold a password. */
function addressProblem(prefix: Prefix, settings: Settings): string | undefined {
  const url = settings[`${prefix}_URL`];
  if (!isUsed(prefix, settings) || url === undefined) return undefined;
  const type = settings[`${prefix}_TYPE`];
  const problem = type === "single"
    ? singleProblem(url, prefix, settings[`${prefix}_SOCKET_TYPE`])
    : listProblem(url, prefix, type);
  return problem === undefined ? undefined : `Invalid ${prefix}_URL (value not shown): ${problem}`;
}

function listProblem(url: string, prefix: Prefix, type: "cluster" | "sentinel"): string | undefined {
  const items = url.split(",").map((item) => item.trim()).filter((item) => item !== "");
  if (type === "cluster") {
    if (items.length > 0 && items.every((item) => "value" in dialAddress(item))) return undefined;
    return `${prefix}_TYPE is cluster; expected a comma list of host:port or [IPv6 address]:port`;
  }
  const isNamed = MASTER_NAME.test(items.shift() ?? "");
  const auth = `${prefix}_SENTINEL_AUTH`;
  if (!isNamed || items.length === 0 || !items.every(isSentinel)) {
    return `${prefix}_TYPE is sentinel; expected name-of-the-primary,host:port with at least one host:port of a ` +
      `sentinel${url.includes("@") ? `, and their login in ${auth}` : ""}`;
  }
  const logins = new Set(items.map((item) => /^redis:\/\/(.*)@/i.exec(item)?.[1] ?? ""));
  logins.delete("");
  return logins.size < 2 ? undefined : `its sentinels have several logins; expected one, in ${auth}`;
}

/** `host:port`, or a URL without TLS and database. */
function isSentinel(item: string): boolean {
  if (!/^redis:\/\//i.test(item)) return "value" in dialAddress(item);
  return isRedisUrl(item) && /^\/?0?$/.test(new URL(item).pathname) && isLoginDecodable(item);
}

function singleProblem(
  url: string,
  prefix: Prefix,
  socketType: Settings["KV_SOCKET_TYPE"],
): string | undefined {
  const isUrl = /^rediss?:\/\//i.test(url);
  const isTcp = isUrl ? isRedisUrl(url) : "value" in dialAddress(url);
  const path = url.replace(/^unix:\/\/(?=\/)/i, "");
  const isScheme = /^[a-z]+:\/\//i.test(path);
  const isPath = !isScheme && (socketType === "unix" ? path.includes("/") : path.startsWith("/"));
  if (isUrl && isTcp && socketType !== "unix" && !isLoginDecodable(url)) {
    return "its user name or password has a % that escapes nothing; expected %25 for a %";
  }
  if (socketType === "tcp") return isTcp ? undefined : `${prefix}_SOCKET_TYPE is tcp; expected ${TCP_FORMS}`;
  if (socketType === "unix") {
    return isPath ? undefined : `${prefix}_SOCKET_TYPE is unix; expected the path of a unix socket`;
  }
  return isTcp || isPath ? undefined : `expected ${TCP_FORMS} or the path of a unix socket`;
}

function isRedisUrl(url: string): boolean {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  return parsed !== undefined && /^rediss?:\/\//i.test(url) && parsed.hostname !== "" &&
    parsed.port !== "0" &&
    /^\/?\d*$/.test(parsed.pathname);
}

/** Returns whether every % in the user name and the password begins the escape of a character. */
function isLoginDecodable(url: string): boolean {
  const { username, password } = new URL(url);
  try {
    decodeURIComponent(username);
    decodeURIComponent(password);
    return true;
  } catch {
    return false;
  }
}
