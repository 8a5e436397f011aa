import type { LogFields } from "../base/log.ts";
import type { SpanPack } from "./tracing_span_pack.ts";

/** Where spans go and what all of them say, as the worker that exports them is told. */
export interface ExportOptions {
  readonly protocol: "http" | "grpc";
  /** The values of `OTEL_EXPORTER_OTLP_<OPTION>` by option. */
  readonly otlp: ReadonlyMap<string, string>;
  /** Attributes of the resource; they win over `OTEL_RESOURCE_ATTRIBUTES`. */
  readonly attributes: Readonly<Record<string, string>>;
  readonly version: string;
}

/** What the main thread tells the worker that exports spans. `start` comes first and once. */
export type ToExporter =
  | { readonly type: "start"; readonly options: ExportOptions }
  /** Is answered by `taken` at once. */
  | { readonly type: "spans"; readonly pack: SpanPack }
  /** Is answered by `closed` when everything is exported, after which nothing comes any more. */
  | { readonly type: "close" };

/** What the worker tells the main thread. */
export type FromExporter =
  /** It may be sent spans. */
  | { readonly type: "ready" }
  /** It cannot be used as it was started. */
  | { readonly type: "refused"; readonly error: Error }
  | { readonly type: "taken" }
  /** The collector took some spans. */
  | { readonly type: "exported" }
  | {
    readonly type: "log";
    readonly level: "warning" | "error";
    readonly message: string;
    readonly fields: LogFields;
  }
  /** With what went wrong with the last spans, if something did. */
  | { readonly type: "closed"; readonly error: Error | undefined };
