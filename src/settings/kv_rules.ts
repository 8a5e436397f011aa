import { dialAddress } from "./parsers.ts";
import type { CrossRule, Settings } from "./table.ts";

/** The rules between the settings of the key-value caches, in the order in which problems are told. */
export const KV_RULES: readonly CrossRule[] = [
  { reads: ["KV_PERSECOND", "BACKEND_TYPE"], problem: perSecondProblem },
  { reads: ["BACKEND_TYPE", "KV_URL"], problem: missingKvUrlProblem },
  { reads: ["BACKEND_TYPE", "KV_URL", "KV_SOCKET_TYPE", "KV_TYPE"], problem: kvUrlProblem },
  { reads: ["BACKEND_TYPE", "KV_PERSECOND", "KV_PERSECOND_URL"], problem: missingPerSecondUrlProblem },
  {
    reads: [
      "BACKEND_TYPE",
      "KV_PERSECOND",
      "KV_PERSECOND_URL",
      "KV_PERSECOND_SOCKET_TYPE",
      "KV_PERSECOND_TYPE",
    ],
    problem: perSecondUrlProblem,
  },
  {
    reads: ["BACKEND_TYPE", "KV_PIPELINE_WINDOW", "KV_TIMEOUT"],
    problem: (settings) => windowProblem("KV", settings),
  },
  {
    reads: ["BACKEND_TYPE", "KV_PERSECOND", "KV_PERSECOND_PIPELINE_WINDOW", "KV_PERSECOND_TIMEOUT"],
    problem: (settings) => settings.KV_PERSECOND ? windowProblem("KV_PERSECOND", settings) : undefined,
  },
];

const TCP_FORMS = "host:port, [IPv6 address]:port or redis://user:password@host:port/db";
/** What sentinels take as a name; whatever else stands there may be a login. */
const MASTER_NAME = /^[^\s:@/,]+$/;

/** One address, and the settings that say how it is read; their names begin with `prefix`. */
interface KvAddressReading {
  readonly prefix: "KV" | "KV_PERSECOND";
  readonly url: string;
  readonly type: Settings["KV_TYPE"];
  readonly socketType: Settings["KV_SOCKET_TYPE"];
}

function perSecondProblem(settings: Settings): string | undefined {
  const backend = settings.BACKEND_TYPE;
  if (!settings.KV_PERSECOND || backend === "kv") return undefined;
  return `Cannot use KV_PERSECOND "true": BACKEND_TYPE is ${backend}; BACKEND_TYPE=kv or no KV_PERSECOND would be right`;
}

/** What gathers for longer than it may take could never be answered. */
function windowProblem(prefix: "KV" | "KV_PERSECOND", settings: Settings): string | undefined {
  const windowMs = settings[`${prefix}_PIPELINE_WINDOW`];
  const timeoutMs = settings[`${prefix}_TIMEOUT`];
  if (settings.BACKEND_TYPE !== "kv" || windowMs < timeoutMs) return undefined;
  return `Cannot use ${prefix}_PIPELINE_WINDOW of ${windowMs} ms: ${prefix}_TIMEOUT is ${timeoutMs} ms; ` +
    "a shorter window would be right";
}

function missingKvUrlProblem(settings: Settings): string | undefined {
  if (settings.BACKEND_TYPE !== "kv" || settings.KV_URL !== undefined) return undefined;
  return "Cannot use the key-value cache: KV_URL is not set; KV_URL=host:port, or BACKEND_TYPE=memory " +
    "to count in this process alone, would be right";
}

function missingPerSecondUrlProblem(settings: Settings): string | undefined {
  if (!hasPerSecond(settings) || settings.KV_PERSECOND_URL !== undefined) return undefined;
  return 'Cannot use KV_PERSECOND "true": KV_PERSECOND_URL is not set; ' +
    "KV_PERSECOND_URL=host:port or no KV_PERSECOND would be right";
}

function hasPerSecond(settings: Settings): boolean {
  return settings.BACKEND_TYPE === "kv" && settings.KV_PERSECOND;
}

function kvUrlProblem(settings: Settings): string | undefined {
  const url = settings.KV_URL;
  if (settings.BACKEND_TYPE !== "kv" || url === undefined) return undefined;
  const { KV_TYPE: type, KV_SOCKET_TYPE: socketType } = settings;
  return addressProblem({ prefix: "KV", url, type, socketType });
}

function perSecondUrlProblem(settings: Settings): string | undefined {
  const url = settings.KV_PERSECOND_URL;
  if (!hasPerSecond(settings) || url === undefined) return undefined;
  const { KV_PERSECOND_TYPE: type, KV_PERSECOND_SOCKET_TYPE: socketType } = settings;
  return addressProblem({ prefix: "KV_PERSECOND", url, type, socketType });
}

/** The value is never shown, because it may hold a password. */
function addressProblem(reading: KvAddressReading): string | undefined {
  const wanted = reading.type === "single" ? wantedSingle(reading) : wantedList(reading);
  if (wanted === undefined) return undefined;
  return `Cannot use ${reading.prefix}_URL (value not shown): ${wanted} would be right`;
}

function wantedList({ prefix, url, type }: KvAddressReading): string | undefined {
  const items = url.split(",").map((item) => item.trim()).filter((item) => item !== "");
  const isNamed = type === "cluster" || MASTER_NAME.test(items.shift() ?? "");
  if (isNamed && items.length > 0 && items.every((item) => "value" in dialAddress(item))) return undefined;
  return type === "cluster"
    ? `${prefix}_TYPE is cluster; a comma list of host:port or [IPv6 address]:port`
    : `${prefix}_TYPE is sentinel; name-of-the-primary,host:port with at least one host:port of a sentinel`;
}

function wantedSingle({ prefix, url, socketType }: KvAddressReading): string | undefined {
  const isUrl = /^rediss?:\/\//i.test(url);
  const isTcp = isUrl ? isRedisUrl(url) : "value" in dialAddress(url);
  const path = url.replace(/^unix:\/\/(?=\/)/i, "");
  const isScheme = /^[a-z]+:\/\//i.test(path);
  const isPath = !isScheme && (socketType === "unix" ? path.includes("/") : path.startsWith("/"));
  if (isUrl && isTcp && socketType !== "unix" && !isLoginDecodable(url)) {
    return "its user name or password has a % that escapes nothing; to percent-encode % as %25";
  }
  if (socketType === "tcp") return isTcp ? undefined : `${prefix}_SOCKET_TYPE is tcp; ${TCP_FORMS}`;
  if (socketType === "unix") {
    return isPath ? undefined : `${prefix}_SOCKET_TYPE is unix; the path of a unix socket`;
  }
  return isTcp || isPath ? undefined : `${TCP_FORMS} or the path of a unix socket`;
}

function isRedisUrl(url: string): boolean {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  return parsed !== undefined && /^rediss?:\/\//i.test(url) && parsed.hostname !== "" &&
    parsed.port !== "0" &&
    /^\/?\d*$/.test(parsed.pathname);
}

/** Whether every % in the user name and the password begins the escape of a character. */
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
