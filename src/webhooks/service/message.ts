import type { WorkerPort } from "../../threads/supervised_worker.ts";
import type {
  AdministrationCall,
  EventCall,
  SignedTriggerCall,
  TriggerCall,
  TriggerCheck,
  WebhookAnswer,
} from "../api/calls.ts";
import type { PostgresStoreOptions } from "../store/postgres/store.ts";
import type { LimitDecision, LimitDescriptor } from "../model/limit_call.ts";
import type { OperationalBatch } from "../model/operational_event.ts";
import type { WebhookMetrics } from "./metrics.ts";
import type { StoreBoundSettings } from "./store_bounds.ts";
import type { TracedWork } from "../../base/traced_work.ts";

/** Settings of a store in PostgreSQL. */
export type PostgresSettings =
  & Pick<
    PostgresStoreOptions,
    "address" | "poolSize" | "connectTimeoutMs" | "statementTimeoutMs" | "lockTimeoutMs"
  >
  & {
    /** The file that the address was read from, if any. */
    readonly addressFile?: string | undefined;
  };

/** The store: a file, or a PostgreSQL that several machines share. */
export type StoreSettings =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "postgres" } & PostgresSettings;

/** The settings of the webhook service, as sent to its worker. */
export interface WebhookOptions extends StoreBoundSettings {
  readonly store: StoreSettings;
  /** Keys for secrets in base64, of which the first one seals; without any the key file is used. */
  readonly encryptionKeys: readonly string[];
  /** The key file; one next to the store when absent. */
  readonly encryptionKeyFile?: string | undefined;
  /** Of an attempt whose endpoint sets no timeout. */
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly retentionMs: number;
  /** An endpoint whose attempts only fail is disabled after this time; 0 for never. */
  readonly disableAfterMs: number;
  readonly maxInFlight: number;
  /** Ranges that deliveries may reach in addition to public addresses. */
  readonly allowCidrs: readonly string[];
  readonly proxy?: string | undefined;
  readonly caFile?: string | undefined;
  /** Absent for no workflows. */
  readonly workflowDirectory?: string | undefined;
  /** The environment variables that workflows may read; `undefined` for unset ones. */
  readonly workflowEnv: Readonly<Record<string, string | undefined>>;
  /** Ranges that requests of workflows may reach in addition to public addresses. */
  readonly workflowAllowCidrs: readonly string[];
  readonly maxRunning: number;
  /** Of triggers, without a slash at its end. */
  readonly publicUrl?: string | undefined;
  /** Of bodies that start workflows. */
  readonly maxBodyBytes?: number | undefined;
  /** True if spans are sent. */
  readonly isTraced: boolean;
  /** Of Weir, for the user agent. */
  readonly version: string;
}

/** A call by its method of `WebhookCalls`. */
export type WebhookRequest =
  | { readonly method: "acceptTrigger"; readonly call: TriggerCall }
  | { readonly method: "acceptSignedTrigger"; readonly call: SignedTriggerCall }
  | { readonly method: "checkTrigger"; readonly call: TriggerCheck }
  | { readonly method: "acceptEvent"; readonly call: EventCall }
  | { readonly method: "administer"; readonly call: AdministrationCall };

/** A request to the worker. */
export interface NumberedRequest {
  readonly id: number;
  readonly request: WebhookRequest;
}

/** The answer to the request of this number. */
export interface NumberedAnswer {
  readonly id: number;
  readonly answer: WebhookAnswer;
}

/** A message to the worker. `start` comes first and once. */
export type ToWebhookWorker =
  | { readonly type: "start"; readonly options: WebhookOptions }
  | { readonly type: "requests"; readonly requests: readonly NumberedRequest[] }
  /** A decision; absent where it failed. */
  | { readonly type: "limit"; readonly id: number; readonly decision?: LimitDecision | undefined }
  /** Operational events to write; sent after the answer to the batch before. */
  | { readonly type: "report"; readonly batch: OperationalBatch }
  | { readonly type: "stop"; readonly graceMs: number };

/** A message of the worker, in addition to those of every worker. */
export type FromWebhookWorker =
  /** It answers requests from now on. */
  | { readonly type: "ready" }
  /** It cannot start yet, and tries again. */
  | { readonly type: "waiting"; readonly reason: string }
  /** It cannot start, or continue. */
  | { readonly type: "failed"; readonly reason: string }
  | { readonly type: "answers"; readonly answers: readonly NumberedAnswer[] }
  | {
    readonly type: "limit";
    readonly id: number;
    readonly domain: string;
    readonly descriptors: readonly LimitDescriptor[];
  }
  /** True if the batch was written; one that was not is lost. */
  | { readonly type: "reported"; readonly isWritten: boolean }
  /** Every second, or as soon as the store answers; `alive` comes every second in any case. */
  | { readonly type: "metrics"; readonly metrics: WebhookMetrics }
  | { readonly type: "span"; readonly span: TracedWork };

/** The worker's side of its connection. */
export type WebhookWorkerPort = WorkerPort<ToWebhookWorker, FromWebhookWorker>;
