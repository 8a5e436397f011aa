import type { WorkflowVersion } from "./records.ts";
import type { TextTemplate, ValueTemplate } from "./template.ts";

/** What an execution does, one step after the other. */
export interface Workflow {
  /** Its name, by which triggers start it. */
  readonly id: string;
  /** Of a whole execution. */
  readonly timeoutMs: number;
  readonly steps: readonly WorkflowStep[];
}

/** One step of a workflow. */
export type WorkflowStep = RequestStep | LimitStep | SetStep;

/** How often a step is tried, and the wait before its second attempt; it doubles from attempt to attempt. */
export interface StepRetry {
  readonly attempts: number;
  readonly backoffMs: number;
}

/** A URL with templates in its path and query only. */
export interface UrlTemplate {
  /** Scheme, host and port, in which no template stands. */
  readonly origin: string;
  /** From the first slash on. */
  readonly path: TextTemplate;
  /** What follows the question mark; absent without one. */
  readonly query?: TextTemplate | undefined;
}

/** One HTTP call. */
export interface RequestStep {
  readonly kind: "request";
  readonly name: string;
  readonly method: string;
  readonly url: UrlTemplate;
  readonly headers: readonly (readonly [string, TextTemplate])[];
  readonly query: readonly (readonly [string, TextTemplate])[];
  /** Sent as JSON. */
  readonly body?: ValueTemplate | undefined;
  /** Of one attempt. */
  readonly timeoutMs: number;
  readonly retry: StepRetry;
}

/** A question to the decision service. */
export interface LimitStep {
  readonly kind: "limit";
  readonly name: string;
  readonly domain: string;
  readonly descriptors: readonly (readonly (readonly [string, TextTemplate])[])[];
  readonly onOver: "wait" | "fail";
}

/** An object made of what is known. */
export interface SetStep {
  readonly kind: "set";
  readonly name: string;
  readonly value: ValueTemplate;
}

/** Where texts of workflows come from. */
export interface Workflows {
  /** The text in force and what it says; nothing where no file has this workflow. */
  current(name: string): { readonly version: WorkflowVersion; readonly workflow: Workflow } | undefined;
  /** What a text that was in force once says; throws where it cannot be read any more. */
  parse(version: WorkflowVersion): Workflow;
}
