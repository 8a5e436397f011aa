import type { ComponentHealth } from "../../base/health.ts";
import type { CountReply, CountRequest } from "../../cache/counting_client.ts";
import type { PlaceAnswer, PlaceQuestion } from "../../cache/shared_places.ts";
import type { TallyDelta } from "../../ratelimit/decision_tally.ts";
import type { LimitReport } from "../../ratelimit/limit_episodes.ts";
import type { RuleSums } from "../../ratelimit/rule_counts.ts";
import type { Settings } from "../../settings/table.ts";
import type { StatsDelta } from "../../stats/stats_delta.ts";
import type { WorkerHandle, WorkerPort } from "../../base/supervised_worker.ts";

/** A message to a worker that decides. `start` comes first and once. */
export type ToDecidingWorker =
  | {
    readonly type: "start";
    readonly settings: Settings;
    readonly version: string;
    /** Shared by all threads. */
    readonly cells: BigInt64Array;
  }
  /** Rules to compile: all of their texts one by one, then their number. */
  | { readonly type: "rules"; readonly text: string }
  | { readonly type: "apply"; readonly rules: number }
  /** Opens the gRPC port. */
  | { readonly type: "listen"; readonly port: number; readonly isHealthy: boolean }
  /** Whether the rest of the process is healthy. */
  | { readonly type: "health"; readonly isHealthy: boolean }
  | { readonly type: "counted"; readonly reply: CountReply }
  | { readonly type: "places"; readonly answers: readonly PlaceAnswer[] }
  /** Removes keys from the local cache. */
  | { readonly type: "forget"; readonly keys: readonly string[] }
  /** Asks for the statistics. */
  | { readonly type: "report"; readonly id: number }
  | { readonly type: "stop"; readonly graceMs: number };

/** A component of a worker that fails or is degraded, and why. */
export type ComponentCause = Pick<ComponentHealth, "name" | "reason">;

/** The health of a worker. */
export interface WorkerHealth {
  readonly failing: readonly ComponentCause[];
  readonly degraded: readonly ComponentCause[];
}

/** What a worker adds to the statistics of the process. */
export interface WorkerReport {
  readonly stats: StatsDelta;
  readonly tally: TallyDelta;
  readonly sums: RuleSums;
}

/** A message of that worker, in addition to those of every worker. */
export type FromDecidingWorker =
  /** Everything but the port is open. */
  | { readonly type: "opened" }
  | { readonly type: "applied"; readonly rules: number }
  | { readonly type: "listening"; readonly address: string; readonly port: number }
  /** It cannot continue. */
  | { readonly type: "failed"; readonly reason: string }
  /** The settings end the attempts to connect to the cache. */
  | { readonly type: "given_up"; readonly reason: string }
  | { readonly type: "count"; readonly request: CountRequest }
  /** Asks where counters are in shared memory. */
  | { readonly type: "places"; readonly questions: readonly PlaceQuestion[] }
  | { readonly type: "health" } & WorkerHealth
  /** What rules with events report. */
  | { readonly type: "limit_events"; readonly reports: readonly LimitReport[]; readonly suppressed: number }
  /** Sent periodically, and as the answer to `report`. */
  | { readonly type: "report"; readonly id: number | undefined; readonly report: WorkerReport };

/** The worker's side of its connection. */
export type DecidingWorkerPort = WorkerPort<ToDecidingWorker, FromDecidingWorker>;

/** The supervisor's side of the connection to a worker. */
export type DecidingWorkerHandle = WorkerHandle<ToDecidingWorker, FromDecidingWorker>;
