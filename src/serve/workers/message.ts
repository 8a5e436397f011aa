import type { WorkerHandle, WorkerPort } from "../../threads/supervised_worker.ts";
import type { QuotaFilter, QuotaView } from "../../quota/quota_view.ts";
import type { TallyDelta } from "../../ratelimit/decision/decision_tally.ts";
import type { LimitReport } from "../../ratelimit/decision/limit_episodes.ts";
import type { RuleSums } from "../../ratelimit/decision/rule_counts.ts";
import type { Settings } from "../../settings/table.ts";
import type { OtlpBatch } from "../../telemetry/otlp_exporter.ts";
import type { OtlpProtocol } from "../../telemetry/otlp_settings.ts";
import type { StatsDelta } from "../../stats/stats_delta.ts";

/** A command to a worker that decides; `start` comes first and once. */
export type WorkerCommand =
  | {
    readonly type: "start";
    readonly settings: Settings;
    readonly version: string;
    /** As those of the parts. */
    readonly secretFiles: ReadonlyMap<string, string> | undefined;
    /** Undefined if spans are not exported. */
    readonly spanProtocol: OtlpProtocol | undefined;
  }
  /** A text of rules; `apply` follows the last one. */
  | { readonly type: "rules"; readonly text: string }
  | { readonly type: "apply" }
  /** Opens the gRPC port, which the main thread listens on. */
  | { readonly type: "listen"; readonly port: number }
  /** The health of the rest of the process. */
  | { readonly type: "health"; readonly isHealthy: boolean }
  /** Removes keys from the local cache. */
  | { readonly type: "forget"; readonly keys: readonly string[] }
  /** Asks for a report, in addition to those of every second. */
  | { readonly type: "report" }
  /** Asks for the buckets of quotas. */
  | { readonly type: "quotas"; readonly filter: QuotaFilter };

/** A message to that worker, which answers a command by its number once it is done. */
export type ToDecidingWorker =
  | WorkerCommand & { readonly id: number }
  /** The end of the export of spans with this number. */
  | { readonly type: "exported"; readonly id: number; readonly isAccepted: boolean }
  | { readonly type: "stop"; readonly graceMs: number };

/** The counts of a worker since its previous report, and its health. */
export interface WorkerReport {
  readonly stats: StatsDelta;
  readonly tally: TallyDelta;
  readonly sums: RuleSums;
  /** Of rules with events. */
  readonly limits: readonly LimitReport[];
  /** Limit episodes that were suppressed because there were too many. */
  readonly suppressed: number;
  /** Why components of the worker fail or are degraded, one text for each cause. */
  readonly failing: readonly string[];
  readonly degraded: readonly string[];
}

/** A message of that worker, in addition to those of every worker. */
export type FromDecidingWorker =
  /** With the answer to `quotas`. */
  | { readonly type: "done"; readonly id: number; readonly quotas?: QuotaView | undefined }
  /** It cannot continue. */
  | { readonly type: "failed"; readonly reason: string }
  /** Spans that the exporting thread of the process sends; answered by `exported`. */
  | { readonly type: "export"; readonly id: number; readonly batch: OtlpBatch }
  | { readonly type: "report"; readonly report: WorkerReport };

/** The worker's side of the connection. */
export type DecidingWorkerPort = WorkerPort<ToDecidingWorker, FromDecidingWorker>;
/** The supervisor's side of the connection. */
export type DecidingWorkerHandle = WorkerHandle<ToDecidingWorker, FromDecidingWorker>;
