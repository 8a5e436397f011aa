import type { Position, Problem } from "../../base/problem.ts";
import type { OperationalEvent } from "./operational_event.ts";
import type { WorkflowVersion } from "./records.ts";
import type { TextTemplate, ValueTemplate } from "./template.ts";
import type { TemplateCondition } from "./template_condition.ts";

/** A workflow: its steps run one after the other. */
export interface Workflow {
  /** Its name, by which triggers start it. */
  readonly id: string;
  /** Of a whole execution. */
  readonly timeoutMs: number;
  readonly steps: readonly WorkflowStep[];
}

/** One step of a workflow. Without its condition it runs always. */
export type WorkflowStep = (RequestStep | LimitStep | SetStep) & {
  readonly condition?: TemplateCondition | undefined;
};

/** Attempts of a step, and the wait before the second one, which doubles from attempt to attempt. */
export interface StepRetry {
  readonly attempts: number;
  readonly backoffMs: number;
}

/** A URL with templates in its path and query only. */
export interface UrlTemplate {
  /** Scheme, host and port, without templates. */
  readonly origin: string;
  /** From the first slash on. */
  readonly path: TextTemplate;
  /** The part behind the question mark; absent without one. */
  readonly query?: TextTemplate | undefined;
}

/** One HTTP call. */
export interface RequestStep {
  readonly kind: "request";
  readonly name: string;
  readonly method: string;
  readonly url: UrlTemplate;
  readonly headers: readonly (readonly [string, TextTemplate])[];
  /** A name may be repeated; so may it in `form`. */
  readonly query: readonly (readonly [string, TextTemplate])[];
  /** Sent as a form; absent with `body`. */
  readonly form?: RequestStep["query"] | undefined;
  /** Sent as JSON. */
  readonly body?: ValueTemplate | undefined;
  /** Of one attempt. */
  readonly timeoutMs: number;
  readonly retry: StepRetry;
}

/** A rate limit decision. */
export interface LimitStep {
  readonly kind: "limit";
  readonly name: string;
  readonly domain: string;
  readonly descriptors: readonly (readonly (readonly [string, TextTemplate])[])[];
  readonly onOver: "wait" | "fail";
}

/** A value made of templates. */
interface SetStep {
  readonly kind: "set";
  readonly name: string;
  readonly value: ValueTemplate;
}

/** A workflow of a file, and where the file has it. */
export interface LoadedWorkflow {
  readonly version: WorkflowVersion;
  readonly workflow: Workflow;
  readonly file: string;
  /** Of its name. */
  readonly at: Position;
  /** Of each step. */
  readonly stepPositions: readonly Position[];
  readonly loadedAt: number;
}

/** One workflow of the files, or a file without the name of a workflow. */
export interface WorkflowEntry {
  /** The name of the workflow; the name of the file where it has none. */
  readonly id: string;
  /** Absent where the file has no valid name. */
  readonly name?: string | undefined;
  readonly file: string;
  /** The current version; absent where no valid text was read. */
  readonly current?: LoadedWorkflow | undefined;
  readonly problems: readonly Problem[];
}

/** The workflow files of a folder. */
export interface WorkflowListing {
  /** Absent where no folder is set. */
  readonly folder?: string | undefined;
  /** Of the folder itself. */
  readonly problems: readonly Problem[];
  /** Sorted by their ids. */
  readonly entries: readonly WorkflowEntry[];
}

/** The source of workflows. */
export interface Workflows {
  /** The current text and its workflow; nothing where no file has it. */
  current(name: string): { readonly version: WorkflowVersion; readonly workflow: Workflow } | undefined;
  /** All files, those with errors included. */
  listing(): WorkflowListing;
  /** The workflow of a former text; throws where it cannot be read any more. */
  parse(version: WorkflowVersion): Workflow;
  /** Calls the listener with what was loaded and rejected so far, and with each change from now on. */
  onEvent?(listener: (event: OperationalEvent) => void): void;
}
