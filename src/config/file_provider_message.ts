import type { WorkerPort } from "../base/supervised_worker.ts";
import type { RuleFolder } from "./file_provider.ts";
import type { SourceChecks } from "../ratelimit/rule_check.ts";
import type { LoadPart } from "./load_parts.ts";

/** A folder of rule files, and the checks of its rules. */
export type RuleFolderOptions = RuleFolder & SourceChecks;

/** A message to the worker that reads rule files. `start` comes first and once. */
export type ToRuleWorker =
  | { readonly type: "start"; readonly options: RuleFolderOptions; readonly known: string | undefined }
  | { readonly type: "reload" }
  /** A part of a load that was not its last was taken; the next one may come. */
  | { readonly type: "taken" }
  | { readonly type: "ping" }
  | { readonly type: "stop" };

/** A message of that worker, in addition to those of every worker. */
export type FromRuleWorker = { readonly type: "load"; readonly part: LoadPart };

/** The worker's side of its connection. */
export type RuleWorkerPort = WorkerPort<ToRuleWorker, FromRuleWorker>;
