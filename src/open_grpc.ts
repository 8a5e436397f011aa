import type { GrpcEngine } from "./grpc/engine.ts";
import { type GrpcService, withCallFigures } from "./grpc/grpc_service.ts";
import { createHealthService } from "./grpc/health_service.ts";
import type { ListenTarget } from "./grpc/listener.ts";
import { startNative } from "./grpc/native/native_engine.ts";
import { createRateLimitGrpcService, type Decide } from "./grpc/rate_limit_service.ts";
import { createReflectionServices } from "./grpc/reflection_service.ts";
import type { ServiceParts } from "./service_parts.ts";
import { serverCalls } from "./stats/server_calls.ts";
import { ThrottledLog } from "./telemetry/throttled_log.ts";
import type { Tracing } from "./telemetry/tracing.ts";

/** Serves gRPC where the settings say: decisions, health and reflection. */
export async function openGrpc(
  { settings, logger, clock, random, health, stats }: ServiceParts,
  tracing: Pick<Tracing, "grpcService">,
  decide: Decide,
): Promise<GrpcEngine> {
  const refusals = new ThrottledLog(logger, { clock });
  const decisions = createRateLimitGrpcService(decide, {
    onRefused: ({ code, message, cause }) => {
      const isTold = cause instanceof Error && cause.message === message;
      refusals.warning(code, "gRPC call refused", { code, message, ...(isTold ? {} : { cause }) });
    },
  });
  const services: GrpcService[] = [tracing.grpcService(decisions), createHealthService(health)];
  services.push(...createReflectionServices(() => services));
  const target: ListenTarget = settings.GRPC_UDS === undefined
    ? { kind: "tcp", host: settings.GRPC_HOST, port: settings.GRPC_PORT }
    : { kind: "unix", path: settings.GRPC_UDS, mode: settings.GRPC_UDS_MODE };
  // A package is loaded only by who uses it.
  const start = settings.GRPC_ENGINE === "native"
    ? startNative
    : (await import("./grpc/grpc_js_engine.ts")).startGrpcJs;
  const figuresOf = serverCalls(stats);
  return await start({
    services: services.map((one) => withCallFigures(one, figuresOf)),
    target,
    maxConnectionAgeMs: settings.GRPC_MAX_CONNECTION_AGE,
    maxConnectionAgeGraceMs: settings.GRPC_MAX_CONNECTION_AGE_GRACE,
    logger,
    clock,
    random,
  });
}
