import type { GrpcEngine, GrpcEngineOptions } from "../grpc/engine.ts";
import { type GrpcService, withCallMetrics } from "../grpc/grpc_service.ts";
import { createHealthService } from "../grpc/health_service.ts";
import { KnownRequests } from "../grpc/known/known_requests.ts";
import type { ListenTarget } from "../grpc/listener.ts";
import { startNative } from "../grpc/native/native_engine.ts";
import { createRateLimitGrpcService, type Decide } from "../grpc/rate_limit_service.ts";
import type { QuotaHub } from "../quota/quota_hub.ts";
import type { QuotaShares } from "../quota/quota_shares.ts";
import type { RateLimitService } from "../ratelimit/decision/service.ts";
import { createReflectionServices } from "../grpc/reflection_service.ts";
import {
  addListenerMetrics,
  connectionMetrics,
  GRPC_TLS_METRICS,
  listenerReport,
} from "./listener_metrics.ts";
import type { ServiceParts } from "./parts.ts";
import { openQuotas } from "./quotas.ts";
import { serverCalls } from "../stats/store.ts";
import { ThrottledLog } from "../base/throttled_log.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import { openWatchedTls } from "./watched_tls.ts";

/** Loads the modules that gRPC requires with these settings. */
export async function loadGrpc(settings: ServiceParts["settings"]): Promise<void> {
  await Promise.all([
    ...(settings.GRPC_ENGINE === "native"
      ? []
      : [import("../grpc/grpc_js_engine.ts"), import("../net/node_listener.ts")]),
    settings.GRPC_UDS === undefined ? undefined : import("../grpc/unix_socket.ts"),
    ...(settings.GRPC_SERVER_USE_TLS
      ? [import("../grpc/listener_tls.ts"), import("../net/node_listener.ts"), import("../net/tls_files.ts")]
      : []),
  ]);
}

/** Parts that the services use. */
interface OpenGrpcOptions {
  readonly tracing: Pick<Tracing, "grpcService" | "isTraced" | "logFields">;
  readonly decide: Decide;
  readonly service: RateLimitService;
  readonly shares: QuotaShares | undefined;
}

/** The gRPC port. */
interface OpenGrpc {
  readonly address: GrpcEngine["address"];
  readonly close: GrpcEngine["close"];
  /** Undefined if quotas are refused. */
  readonly quotas: QuotaHub | undefined;
}

/** Serves decisions, quotas, health and reflection by gRPC. */
export async function openGrpc(
  parts: ServiceParts,
  { tracing, decide, service, shares }: OpenGrpcOptions,
): Promise<OpenGrpc> {
  const { settings, logger, clock, random, health, stats } = parts;
  const refusals = new ThrottledLog(logger, { clock });
  const decisions = createRateLimitGrpcService(decide, {
    known: new KnownRequests({ service, random, isExcluded: () => tracing.isTraced() }),
    onMalformed: () => void stats.service.serviceError++,
    onUnknownLimitField: unknownFieldLog(parts),
    onRefused: ({ code, message, cause }, call) => {
      const isTold = cause instanceof Error && cause.message === message;
      const facts = { code, message, ...(isTold ? {} : { cause }), ...tracing.logFields(call) };
      refusals.warning(code, "gRPC call refused", facts);
    },
  });
  const hasDomain = (domain: string) => service.rules?.domains.has(domain) === true;
  const secured = settings.GRPC_SERVER_USE_TLS ? await openTls(parts) : undefined;
  const quotas = openQuotas(parts, service, shares);
  const services: GrpcService[] = [
    tracing.grpcService(decisions),
    quotas.service,
    createHealthService(health, hasDomain),
  ];
  services.push(...createReflectionServices(() => services));
  const target: ListenTarget = settings.GRPC_UDS === undefined
    ? { kind: "tcp", host: settings.GRPC_HOST, port: settings.GRPC_PORT }
    : { kind: "unix", path: settings.GRPC_UDS, mode: settings.GRPC_UDS_MODE };
  const metricsOf = serverCalls(stats);
  const options: GrpcEngineOptions = {
    tls: secured?.tls,
    services: services.map((one) => withCallMetrics(one, metricsOf)),
    target,
    listen: {
      ...listenerReport(parts, "grpc"),
      maxConnections: settings.GRPC_MAX_CONNECTIONS === 0 ? Infinity : settings.GRPC_MAX_CONNECTIONS,
      isShared: settings.LISTEN_SHARED || settings.WORKERS > 1,
    },
    maxConnectionAgeMs: settings.GRPC_MAX_CONNECTION_AGE,
    maxConnectionAgeGraceMs: settings.GRPC_MAX_CONNECTION_AGE_GRACE,
    logger,
    clock,
    random,
  };
  const engine = await startEngine(settings.GRPC_ENGINE, options).catch(async (error: unknown) => {
    quotas.close();
    await secured?.close();
    throw error;
  });
  const { acceptor } = engine;
  stats.addMetrics(connectionMetrics("grpc"), {
    counters: { connections_refused: () => acceptor.refused },
    gauges: { connections: () => engine.connections },
  });
  addListenerMetrics(parts, "grpc", acceptor);
  const close = async (graceMs: number) => {
    quotas.close();
    await Promise.all([secured?.close(), engine.close(graceMs)]);
  };
  return { address: engine.address, quotas: quotas.hub, close };
}

/** Fields above this number are one kind, so that callers cannot fill the log. */
const MAX_FIELD_KIND = 16;

/** Logs each unknown field of the limits of requests once. */
function unknownFieldLog({ logger, clock }: ServiceParts): (field: number) => void {
  const log = new ThrottledLog(logger, { clock, intervalMs: Infinity });
  return (field) => {
    const kind = `${Math.min(field, MAX_FIELD_KIND)}`;
    const message = "RateLimitDescriptor.RateLimitOverride";
    log.warning(kind, "Ignoring an unknown field in the limit of a request", { message, field });
  };
}

async function startEngine(
  name: ServiceParts["settings"]["GRPC_ENGINE"],
  options: GrpcEngineOptions,
): Promise<GrpcEngine> {
  if (name === "native") return await startNative(options);
  const { startGrpcJs } = await import("../grpc/grpc_js_engine.ts");
  return await startGrpcJs(options);
}

/** TLS of the listener; the settings with only one of its files are refused. */
async function openTls(parts: ServiceParts) {
  const { ListenerTls } = await import("../grpc/listener_tls.ts");
  const { settings, logger, clock, stats } = parts;
  const { GRPC_SERVER_TLS_CERT: cert = "", GRPC_SERVER_TLS_KEY: key = "" } = settings;
  const opened = await openWatchedTls(parts, {
    name: "grpc",
    files: { cert, key, ca: settings.GRPC_CLIENT_TLS_CACERT },
    names: { cert: "GRPC_SERVER_TLS_CERT", key: "GRPC_SERVER_TLS_KEY", ca: "GRPC_CLIENT_TLS_CACERT" },
    create: (pair) => new ListenerTls(pair, { clientName: settings.GRPC_CLIENT_TLS_SAN, logger, clock }),
  });
  stats.addMetrics(GRPC_TLS_METRICS, { counters: { tls_refused: () => opened.tls.refused }, gauges: {} });
  return opened;
}
