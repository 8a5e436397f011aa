import type { OtlpExporter } from "../telemetry/otlp_exporter.ts";
import type { OtlpProtocol, OtlpSignal } from "../telemetry/otlp_settings.ts";
import type { ServiceParts } from "./parts.ts";

/** Opens the export of spans and metrics over OTLP where one of them is enabled. Throws for invalid settings. */
export async function openOtlp(
  { settings, version, logger, clock }: ServiceParts,
): Promise<OtlpExporter | undefined> {
  const hasMetrics = settings.OTEL_METRICS_EXPORTER === "otlp" && !settings.DISABLE_STATS;
  if (!settings.TRACING_ENABLED && !hasMetrics) return undefined;
  const [{ OtlpExporter }, { checkOtlp, resourceOf }] = await Promise.all([
    import("../telemetry/otlp_exporter.ts"),
    import("../telemetry/otlp_settings.ts"),
  ]);
  const otlp = settings["OTEL_EXPORTER_OTLP_<OPTION>"];
  const protocols: Partial<Record<OtlpSignal, OtlpProtocol>> = {};
  if (settings.TRACING_ENABLED) {
    protocols.TRACES = checkOtlp({ protocol: settings.TRACING_EXPORTER_PROTOCOL, otlp }, logger, "TRACES");
  }
  if (hasMetrics) protocols.METRICS = checkOtlp({ protocol: undefined, otlp }, logger, "METRICS");
  const attributes = resourceOf({
    serviceName: settings.TRACING_SERVICE_NAME,
    serviceNamespace: settings.TRACING_SERVICE_NAMESPACE,
    serviceInstanceId: settings.TRACING_SERVICE_INSTANCE_ID,
    version,
  });
  return new OtlpExporter({ protocols, otlp, attributes, version }, { clock, logger });
}
