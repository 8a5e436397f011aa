import { KV_RULES } from "./kv_rules.ts";
import { mogrifierProblems } from "./mogrifier_rules.ts";
import type { SettingName, Settings } from "./table.ts";

/** A rule across settings; it is left out when one of those that it reads is bad by itself. */
export interface CrossRule {
  readonly reads: readonly SettingName[];
  /** What is wrong, a sentence each. */
  readonly problem: (settings: Settings) => string | readonly string[] | undefined;
}

const RULES: readonly CrossRule[] = [
  { reads: ["GRPC_CLIENT_TLS_CACERT", "GRPC_SERVER_USE_TLS"], problem: clientAuthorityProblem },
  { reads: ["MC_HOST_PORT", "MC_SRV"], problem: mcNodesProblem },
  { reads: ["BACKEND_TYPE", "MC_HOST_PORT", "MC_SRV"], problem: missingMcNodesProblem },
  {
    reads: ["BACKEND_TYPE", "MC_TLS_CLIENT_CERT", "MC_TLS_CLIENT_KEY"],
    problem: (settings) => settings.BACKEND_TYPE === "mc" ? pairProblem("MC", settings) : undefined,
  },
  {
    reads: ["BACKEND_TYPE", "KV_TLS_CLIENT_CERT", "KV_TLS_CLIENT_KEY"],
    problem: (settings) => settings.BACKEND_TYPE === "kv" ? pairProblem("KV", settings) : undefined,
  },
  ...KV_RULES,
  {
    reads: ["USE_TAGGED_PUSH_STATS", "TAGGED_PUSH_STATS_MOGRIFIERS", "USE_TAGGED_PUSH_STATS_MOGRIFIERS"],
    problem: mogrifierProblems,
  },
];

/** What is wrong between settings that are each right by themselves; `bad` names those that are not. */
export function crossProblems(settings: Settings, bad: ReadonlySet<string>): string[] {
  return RULES.filter((rule) => !rule.reads.some((name) => bad.has(name)))
    .flatMap((rule) => rule.problem(settings) ?? []);
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

function missingMcNodesProblem(settings: Settings): string | undefined {
  const { BACKEND_TYPE, MC_HOST_PORT, MC_SRV } = settings;
  if (BACKEND_TYPE !== "mc" || MC_HOST_PORT !== undefined || MC_SRV !== undefined) return undefined;
  return "Cannot use the memcached-style cache: neither MC_HOST_PORT nor MC_SRV is set; " +
    "MC_HOST_PORT=host:port,host:port or MC_SRV=_mc._tcp.example.com would be right";
}

/** A certificate is shown with its key, or none is. */
function pairProblem(cache: "KV" | "MC", settings: Settings): string | undefined {
  const pair = [`${cache}_TLS_CLIENT_CERT`, `${cache}_TLS_CLIENT_KEY`] as const;
  const [given, missing] = settings[pair[0]] === undefined ? [pair[1], pair[0]] : pair;
  if (settings[given] === undefined || settings[missing] !== undefined) return undefined;
  return `Cannot use ${given} ${JSON.stringify(settings[given])}: ${missing} is not set; ` +
    "both or none of the two would be right";
}
