import { dialAddress } from "./parsers.ts";
import type { SettingName, Settings } from "./table.ts";

/** A rule across settings; it is left out when one of those that it reads is bad by itself. */
interface CrossRule {
  readonly reads: readonly SettingName[];
  readonly problem: (settings: Settings) => string | undefined;
}

const RULES: readonly CrossRule[] = [
  { reads: ["GRPC_CLIENT_TLS_CACERT", "GRPC_SERVER_USE_TLS"], problem: clientAuthorityProblem },
  { reads: ["MC_HOST_PORT", "MC_SRV"], problem: mcNodesProblem },
  { reads: ["KV_PERSECOND", "BACKEND_TYPE"], problem: perSecondProblem },
  { reads: ["BACKEND_TYPE", "KV_URL"], problem: missingKvUrlProblem },
  { reads: ["BACKEND_TYPE", "KV_URL", "KV_SOCKET_TYPE", "KV_TYPE"], problem: kvUrlProblem },
];

/** What is wrong between settings that are each right by themselves; `bad` names those that are not. */
export function crossProblems(settings: Settings, bad: ReadonlySet<string>): string[] {
  return RULES.filter((rule) => !rule.reads.some((name) => bad.has(name)))
    .map((rule) => rule.problem(settings))
    .filter((problem) => problem !== undefined);
}

function clientAuthorityProblem(settings: Settings): string | undefined {
  const path = settings.GRPC_CLIENT_TLS_CACERT;
  if (path === undefined || settings.GRPC_SERVER_USE_TLS) return undefined;
  return `Cannot use GRPC_CLIENT_TLS_CACERT ${JSON.stringify(path)}: gRPC is served without TLS; ` +
    "GRPC_SERVER_USE_TLS=true beside it would be right";
}

function mcNodesProblem(settings: Settings): string | undefined {
  if (settings.MC_HOST_PORT === undefined || settings.MC_SRV === undefined) return undefined;
  return `Cannot use MC_SRV ${JSON.stringify(settings.MC_SRV)}: MC_HOST_PORT is set too; ` +
    "one of the two would be right";
}

function perSecondProblem(settings: Settings): string | undefined {
  const backend = settings.BACKEND_TYPE;
  if (!settings.KV_PERSECOND || backend === "kv") return undefined;
  return `Cannot use KV_PERSECOND "true": BACKEND_TYPE is ${backend}; BACKEND_TYPE=kv or no KV_PERSECOND would be right`;
}

function missingKvUrlProblem(settings: Settings): string | undefined {
  if (settings.BACKEND_TYPE !== "kv" || settings.KV_URL !== undefined) return undefined;
  return "Cannot use the key-value cache: KV_URL is not set; KV_URL=host:port, or BACKEND_TYPE=memory " +
    "to count in this process alone, would be right";
}

/** The value is never shown, because it may hold a password. */
function kvUrlProblem(settings: Settings): string | undefined {
  const url = settings.KV_URL;
  // The comma lists of the other two deployments have forms of their own.
  if (settings.BACKEND_TYPE !== "kv" || url === undefined || settings.KV_TYPE !== "single") return undefined;
  const wanted = wantedKvUrl(url, settings.KV_SOCKET_TYPE);
  return wanted === undefined ? undefined : `Cannot use KV_URL (value not shown): ${wanted} would be right`;
}

function wantedKvUrl(url: string, socketType: "tcp" | "unix" | undefined): string | undefined {
  if (/^rediss:/i.test(url)) {
    return "TLS is not built yet, it comes with a later release; host:port without it";
  }
  const isUrl = /^redis:/i.test(url);
  const isTcp = isUrl ? isRedisUrl(url) : "value" in dialAddress(url);
  const isPath = !isUrl && (socketType === "unix" ? url.includes("/") : url.startsWith("/"));
  if (isUrl && isTcp && socketType !== "unix" && !isLoginDecodable(url)) {
    return "its user name or password has a % that escapes nothing; to percent-encode % as %25";
  }
  const asTcp = "host:port, [IPv6 address]:port or redis://user:password@host:port/db";
  if (socketType === "tcp") return isTcp ? undefined : `KV_SOCKET_TYPE is tcp; ${asTcp}`;
  if (socketType === "unix") return isPath ? undefined : "KV_SOCKET_TYPE is unix; the path of a unix socket";
  return isTcp || isPath ? undefined : `${asTcp} or the path of a unix socket`;
}

function isRedisUrl(url: string): boolean {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  return parsed !== undefined && /^redis:\/\//i.test(url) && parsed.hostname !== "" &&
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
