import type { IOtlpExportDelegate } from "@opentelemetry/otlp-exporter-base";
import type { IExporterMetricsHelper, ISerializer } from "@opentelemetry/otlp-transformer";
import { otlpGrpcOptions } from "./otlp_grpc_options.ts";
import type { OtlpProtocol, OtlpSignal } from "./otlp_settings.ts";

/** The serializers and the metrics of a signal. */
export interface OtlpSerializers<Internal> {
  readonly signal: OtlpSignal;
  readonly json: ISerializer<Internal, unknown>;
  readonly protobuf: ISerializer<Internal, unknown>;
  readonly metricsHelper: IExporterMetricsHelper<Internal>;
}

/** More than all threads have waiting at the end: the queue of each thread is the limit. */
const LIMITS = { concurrencyLimit: 1_000 };
const SERVICES: Readonly<Record<OtlpSignal, string>> = { TRACES: "Trace", METRICS: "Metrics" };

/**
 * The delegate of the SDK that exports a signal over a protocol. `otlp` has the options of gRPC; those of HTTP come from
 * the environment.
 */
export async function openOtlpDelegate<Internal>(
  protocol: OtlpProtocol,
  otlp: ReadonlyMap<string, string>,
  { signal, json, protobuf, metricsHelper }: OtlpSerializers<Internal>,
): Promise<IOtlpExportDelegate<Internal>> {
  if (protocol === "grpc") return await openGrpc(otlp, { signal, protobuf, metricsHelper });
  const base = await import("@opentelemetry/otlp-exporter-base/node-http");
  const isJson = protocol === "http/json";
  const type = isJson ? "application/json" : "application/x-protobuf";
  return base.createOtlpHttpExportDelegate(
    base.convertLegacyHttpOptions(LIMITS, signal, `v1/${signal.toLowerCase()}`, { "Content-Type": type }),
    isJson ? json : protobuf,
    "otlp_http_exporter",
    metricsHelper,
    undefined,
  );
}

async function openGrpc<Internal>(
  otlp: ReadonlyMap<string, string>,
  { signal, protobuf, metricsHelper }: Omit<OtlpSerializers<Internal>, "json">,
): Promise<IOtlpExportDelegate<Internal>> {
  const [base, environment, { OtlpGrpcTransport }] = await Promise.all([
    import("@opentelemetry/otlp-exporter-base"),
    import("@opentelemetry/otlp-exporter-base/node-http"),
    import("./otlp_grpc_transport.ts"),
  ]);
  const options = otlpGrpcOptions(signal, otlp);
  const service = SERVICES[signal];
  const path = `/opentelemetry.proto.collector.${service.toLowerCase()}.v1.${service}Service/Export`;
  return base.createOtlpNetworkExportDelegate(
    base.mergeOtlpSharedConfigurationWithDefaults(
      LIMITS,
      environment.getSharedConfigurationFromEnvironment(signal),
      base.getSharedConfigurationDefaults(),
    ),
    protobuf,
    new base.ExporterMetrics({
      componentType: "otlp_grpc_exporter",
      metricsHelper,
      url: undefined,
      meterProvider: undefined,
      responseAttributesFromError: () => ({}),
    }),
    new OtlpGrpcTransport({ ...options, path }),
  );
}
