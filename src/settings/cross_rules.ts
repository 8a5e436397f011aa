import { errorText } from "../base/error_text.ts";
import { isPostgresAddress, parsePostgresAddress } from "../base/postgres_address.ts";
import { configuredTokens, namedTokensProblem } from "./administrator_tokens.ts";
import { KV_RULES } from "./kv_rules.ts";
import { mogrifierProblems } from "./mogrifier_rules.ts";
import { quotasRefused } from "./rule_support.ts";
import { type Environment, isSet } from "./setting.ts";
import type { CrossRule, SettingName, Settings } from "./table.ts";

const POSTGRES_ONLY = [
  "WEBHOOK_STORE_POOL_SIZE",
  "WEBHOOK_STORE_CONNECT_TIMEOUT",
  "WEBHOOK_STORE_STATEMENT_TIMEOUT",
  "WEBHOOK_STORE_LOCK_TIMEOUT",
] as const;

const QUOTA_ONLY = [
  "QUOTA_MAX_STREAMS",
  "QUOTA_MAX_BUCKETS_PER_STREAM",
  "QUOTA_MAX_BUCKETS",
  "QUOTA_OVERFLOW",
] as const;

const RULES: readonly CrossRule[] = [
  {
    reads: [
      "CONFIG_TYPE",
      "CONFIG_GRPC_XDS_SERVER_USE_TLS",
      "CONFIG_GRPC_XDS_CLIENT_TLS_CERT",
      "CONFIG_GRPC_XDS_CLIENT_TLS_KEY",
    ],
    problem: xdsClientPairProblem,
  },
  {
    reads: ["HTTP_SERVER_USE_TLS", "HTTP_SERVER_TLS_CERT", "HTTP_SERVER_TLS_KEY"],
    problem: (settings) => missingPairProblems("HTTP", settings),
  },
  {
    reads: ["GRPC_SERVER_TLS_CERT", "GRPC_SERVER_TLS_KEY", "GRPC_SERVER_USE_TLS"],
    problem: (settings) => missingPairProblems("GRPC", settings),
  },
  { reads: ["GRPC_CLIENT_TLS_CACERT", "GRPC_SERVER_USE_TLS"], problem: clientAuthorityProblem },
  {
    reads: ["GRPC_CLIENT_TLS_CACERT", "GRPC_CLIENT_TLS_SAN", "GRPC_SERVER_USE_TLS"],
    problem: clientNameProblem,
  },
  { reads: ["WORKERS", "GRPC_UDS", "BACKEND_TYPE"], problem: workersProblem },
  { reads: ["MC_HOST_PORT", "MC_SRV"], problem: mcNodesProblem },
  { reads: ["BACKEND_TYPE", "MC_HOST_PORT", "MC_SRV"], problem: missingMcNodesProblem },
  {
    reads: ["BACKEND_TYPE", "MC_TLS", "MC_TLS_CLIENT_CERT", "MC_TLS_CLIENT_KEY"],
    problem: (settings) => settings.BACKEND_TYPE === "mc" ? pairProblem("MC", settings) : undefined,
  },
  {
    reads: [
      "BACKEND_TYPE",
      ...["KV_TLS", "KV_PERSECOND_TLS", "KV_URL", "KV_PERSECOND_URL"] as const,
      ...["KV_TLS_CLIENT_CERT", "KV_TLS_CLIENT_KEY"] as const,
    ],
    problem: (settings) => settings.BACKEND_TYPE === "kv" ? pairProblem("KV", settings) : undefined,
  },
  ...KV_RULES,
  {
    reads: ["USE_TAGGED_PUSH_STATS", "TAGGED_PUSH_STATS_MOGRIFIERS", "USE_TAGGED_PUSH_STATS_MOGRIFIERS"],
    problem: mogrifierProblems,
  },
  { reads: ["WEBHOOK_STORE"], problem: storeAddressProblem },
  { reads: ["ADMIN_TOKEN", "ADMIN_TOKENS"], problem: administratorsProblem },
  {
    reads: ["WEBHOOK_STORE", "WEBHOOK_ENCRYPTION_KEY", "WEBHOOK_ENCRYPTION_KEY_FILE"],
    problem: missingKeyProblem,
  },
];

/** The problems between valid settings; `bad` names settings that could not be read. */
export function crossProblems(settings: Settings, bad: ReadonlySet<string>): string[] {
  return RULES.filter((rule) => !rule.reads.some((name) => bad.has(name)))
    .flatMap((rule) => rule.problem(settings) ?? []);
}

function xdsClientPairProblem(settings: Settings): string | undefined {
  if (settings.CONFIG_TYPE !== "GRPC_XDS_SOTW" || !settings.CONFIG_GRPC_XDS_SERVER_USE_TLS) return undefined;
  return halfPairProblem(settings, ["CONFIG_GRPC_XDS_CLIENT_TLS_CERT", "CONFIG_GRPC_XDS_CLIENT_TLS_KEY"]);
}

function missingPairProblems(server: "GRPC" | "HTTP", settings: Settings): string[] {
  const use = `${server}_SERVER_USE_TLS` as const;
  const pair = [`${server}_SERVER_TLS_CERT`, `${server}_SERVER_TLS_KEY`] as const;
  if (!settings[use]) return [];
  return pair.filter((name) => settings[name] === undefined)
    .map((name) => `Invalid ${use} "true": ${name} is not set; expected the path of a PEM file in it`);
}

function clientNameProblem(settings: Settings): string | undefined {
  const { GRPC_CLIENT_TLS_SAN: name, GRPC_CLIENT_TLS_CACERT: authority, GRPC_SERVER_USE_TLS: tls } = settings;
  if (name === undefined || (tls && authority !== undefined)) return undefined;
  const [state, expected] = tls
    ? ["client certificates are not asked for", "GRPC_CLIENT_TLS_CACERT"]
    : ["gRPC is served without TLS", "GRPC_SERVER_USE_TLS=true and GRPC_CLIENT_TLS_CACERT"];
  return `Invalid GRPC_CLIENT_TLS_SAN ${JSON.stringify(name)}: ${state}; expected ${expected}`;
}

function clientAuthorityProblem(settings: Settings): string | undefined {
  const path = settings.GRPC_CLIENT_TLS_CACERT;
  if (path === undefined || settings.GRPC_SERVER_USE_TLS) return undefined;
  return `Invalid GRPC_CLIENT_TLS_CACERT ${JSON.stringify(path)}: gRPC is served without TLS; ` +
    "expected GRPC_SERVER_USE_TLS=true";
}

function workersProblem({ WORKERS, GRPC_UDS, BACKEND_TYPE }: Settings): string | undefined {
  if (WORKERS === 1) return undefined;
  if (BACKEND_TYPE === "memory") {
    return `Invalid WORKERS "${WORKERS}": BACKEND_TYPE is "memory", and threads do not share these counters; ` +
      "expected 1, or BACKEND_TYPE=kv or mc";
  }
  // Several threads cannot listen on one unix socket.
  if (GRPC_UDS === undefined) return undefined;
  return `Invalid WORKERS "${WORKERS}": GRPC_UDS is set; expected 1 with a unix socket`;
}

function mcNodesProblem(settings: Settings): string | undefined {
  if (settings.MC_HOST_PORT === undefined || settings.MC_SRV === undefined) return undefined;
  return `Invalid MC_SRV ${
    JSON.stringify(settings.MC_SRV)
  }: MC_HOST_PORT is set too; expected one of the two`;
}

function missingMcNodesProblem(settings: Settings): string | undefined {
  const { BACKEND_TYPE, MC_HOST_PORT, MC_SRV } = settings;
  if (BACKEND_TYPE !== "mc" || MC_HOST_PORT !== undefined || MC_SRV !== undefined) return undefined;
  return "Neither MC_HOST_PORT nor MC_SRV is set: expected MC_HOST_PORT=host:port,host:port or " +
    "MC_SRV=_mc._tcp.example.com";
}

function pairProblem(cache: "KV" | "MC", settings: Settings): string | undefined {
  if (!(cache === "MC" ? settings.MC_TLS : isTlsToKv(settings))) return undefined;
  return halfPairProblem(settings, [`${cache}_TLS_CLIENT_CERT`, `${cache}_TLS_CLIENT_KEY`]);
}

function halfPairProblem(settings: Settings, pair: readonly [SettingName, SettingName]): string | undefined {
  const [missing, given] = settings[pair[0]] === undefined ? pair : pair.toReversed();
  if (given === undefined || missing === undefined) return undefined;
  if (settings[given] === undefined || settings[missing] !== undefined) return undefined;
  return `Invalid ${given} ${JSON.stringify(settings[given])}: ${missing} is not set; expected both or none`;
}

function isTlsToKv({ KV_TLS, KV_PERSECOND_TLS, KV_URL, KV_PERSECOND_URL }: Settings): boolean {
  return KV_TLS || KV_PERSECOND_TLS || [KV_URL, KV_PERSECOND_URL].some((url) => url?.startsWith("rediss:"));
}

/** Warnings about settings of PostgreSQL without it; `bad` names settings that could not be read. */
export function storeWarnings(
  { WEBHOOK_STORE: store }: Settings,
  env: Environment,
  bad: ReadonlySet<string>,
): string[] {
  if (bad.has("WEBHOOK_STORE") || (store !== undefined && isPostgresAddress(store))) return [];
  return POSTGRES_ONLY.filter((name) => isSet(env, name) && !bad.has(name))
    .map((name) => `${name} has no effect: WEBHOOK_STORE is not a PostgreSQL address`);
}

/** Warnings about settings of quotas with a cache that has none; `bad` names settings that could not be read. */
export function quotaWarnings(
  { BACKEND_TYPE }: Settings,
  env: Environment,
  bad: ReadonlySet<string>,
): string[] {
  const refused = quotasRefused(BACKEND_TYPE);
  if (refused === undefined || bad.has("BACKEND_TYPE")) return [];
  return QUOTA_ONLY.filter((name) => isSet(env, name) && !bad.has(name))
    .map((name) => `${name} has no effect: ${refused}`);
}

/** The value is never shown, because it may hold a password. */
function storeAddressProblem({ WEBHOOK_STORE: store }: Settings): string | undefined {
  if (store === undefined || !isPostgresAddress(store)) return undefined;
  try {
    parsePostgresAddress(store);
    return undefined;
  } catch (error) {
    const [, state = ""] = /^[^:]*: (.*)$/s.exec(errorText(error)) ?? [];
    return `Invalid WEBHOOK_STORE (value not shown): ${state}`;
  }
}

function administratorsProblem(settings: Settings): string | undefined {
  const problem = namedTokensProblem(configuredTokens(settings));
  return problem === undefined ? undefined : `Invalid ADMIN_TOKENS (value not shown): ${problem}`;
}

/** Instances with separate keys could not decrypt each other's secrets. */
function missingKeyProblem(settings: Settings): string | undefined {
  const { WEBHOOK_STORE: store, WEBHOOK_ENCRYPTION_KEY: keys = [] } = settings;
  if (store === undefined || !isPostgresAddress(store)) return undefined;
  if (keys.length > 0 || settings.WEBHOOK_ENCRYPTION_KEY_FILE !== undefined) return undefined;
  return "Invalid WEBHOOK_STORE (value not shown): WEBHOOK_ENCRYPTION_KEY is not set; expected the same 32 bytes in " +
    "base64 for every instance that shares the store";
}
