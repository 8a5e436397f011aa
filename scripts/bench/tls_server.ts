import { parseArgs } from "node:util";
import { systemClock } from "../../src/base/clock.ts";
import { MemoryCache } from "../../src/cache/memory_cache.ts";
import { readRuleFile } from "../../src/config/rule_file.ts";
import type { GrpcEngineOptions } from "../../src/grpc/engine.ts";
import { startGrpcJs } from "../../src/grpc/grpc_js_engine.ts";
import { startNative } from "../../src/grpc/native/native_engine.ts";
import { createRateLimitGrpcService } from "../../src/grpc/rate_limit_service.ts";
import { compileRules } from "../../src/ratelimit/compile_rules.ts";
import { RateLimitService } from "../../src/ratelimit/service.ts";
import { StatsStore, statsText } from "../../src/stats/store.ts";
import { standardOutput } from "../../src/base/standard_streams.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import { DEFAULT_POLICY } from "./default_policy.ts";
import { oneOf } from "./flag_values.ts";
import { ENGINES } from "./options.ts";
import { RULES } from "../../tests/harness/load/rate_limit_message.ts";

/** The default of `MEMORY_MAX_KEYS`. */
const MAX_KEYS = 1_000_000;
const STARTS = { native: startNative, "grpc-js": startGrpcJs } as const;

/** The rate limit service with the embedded cache on an engine that speaks TLS; answers where it listens. */
export async function startTlsServer(options: {
  readonly engine: keyof typeof STARTS;
  readonly tls: NonNullable<GrpcEngineOptions["tls"]>;
}): Promise<{ grpc: string; debug: string }> {
  const clock = systemClock;
  const stats = new StatsStore(1_000);
  const cache = new MemoryCache({ maxKeys: MAX_KEYS, clock });
  const service = new RateLimitService({ cache, stats, policy: DEFAULT_POLICY, clock, random: Math.random });
  const { source } = readRuleFile("bench.yaml", RULES);
  const { rules } = compileRules(source === undefined ? [] : [source], { mergeDomains: false });
  if (rules === undefined) throw new Error("Cannot start TLS server: the rules of the bench are not right");
  service.setRules(rules);
  const engine = await STARTS[options.engine]({
    services: [createRateLimitGrpcService((request) => service.shouldRateLimit(request))],
    target: { kind: "tcp", host: "127.0.0.1", port: 0 },
    tls: options.tls,
    maxConnectionAgeMs: 0,
    maxConnectionAgeGraceMs: 0,
    logger: createLogger({ level: "warning", format: "text", clock, write: standardOutput.stderr }),
    clock,
    random: Math.random,
  });
  const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  const debug = Deno.serve(quiet, () => new Response(statsText(stats)));
  return { grpc: engine.address, debug: `127.0.0.1:${debug.addr.port}` };
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      engine: { type: "string", default: "native" },
      key: { type: "string", default: "key.pem" },
      cert: { type: "string", default: "cert.pem" },
    },
  });
  const [key, cert] = await Promise.all([Deno.readTextFile(values.key), Deno.readTextFile(values.cert)]);
  const engine = oneOf("engine", values.engine, ENGINES);
  const { grpc, debug } = await startTlsServer({ engine, tls: { key, cert } });
  const lines = `Listening for debug on '${debug}'\nListening for gRPC on '${grpc}'\n`;
  Deno.stdout.writeSync(new TextEncoder().encode(lines));
}
