import { type Fields, ID, type Resource } from "./field.ts";

/** The statuses of an execution. */
const EXECUTION_STATUSES = ["queued", "running", "succeeded", "failed", "cancelled"] as const;
/** The kinds of steps. */
export const STEP_KINDS = ["request", "limit", "set"] as const;
/** Larger outputs are not listed. */
export const MAX_LISTED_OUTPUT_BYTES = 16_384;

const STARTED = { type: "time", words: "Start time.", label: "Started" } as const;
const FINISHED = { type: "time", words: "End time.", label: "Finished" } as const;
const ERROR = { type: "text", words: "Reason of the failure.", shown: "sometimes", label: "Error" } as const;
const STEP_NAME = { type: "text", words: "The name of the step." } as const;
const STEP_KIND = { type: "choice", choices: STEP_KINDS, words: "The kind of the step." } as const;

/** The fields of a finished step. */
export const STEP_FIELDS = {
  index: { type: "integer", words: "Index, from 0.", min: 0 },
  name: STEP_NAME,
  kind: STEP_KIND,
  status: {
    type: "choice",
    choices: ["succeeded", "failed", "skipped"],
    words: "Result; `skipped` if its condition did not hold.",
  },
  attempts: { type: "integer", words: "Number of attempts.", min: 0 },
  error: ERROR,
  startedAt: STARTED,
  finishedAt: FINISHED,
  result: { type: "json", words: "The result; lists omit it.", shown: "sometimes" },
} as const satisfies Fields;

/** The step that a running execution works on or waits for. */
const CURRENT_STEP = {
  name: { ...STEP_NAME, shown: "sometimes" },
  kind: { ...STEP_KIND, shown: "sometimes" },
  attempt: { type: "integer", words: "The number of the attempt, from 1.", min: 1 },
  lastError: { type: "text", words: "The error of the previous attempt.", shown: "sometimes" },
  nextAttemptAt: { type: "time", words: "Time at which the next attempt is due.", shown: "sometimes" },
} as const satisfies Fields;

/** The fields of an execution that records keep. */
export const STORED_EXECUTION = {
  id: ID,
  workflow: { type: "text", words: "The name of the workflow.", label: "Workflow" },
  versionId: { type: "text", words: "SHA-256 of the workflow's file, in lower-case hex." },
  triggerId: { type: "id", words: "The trigger." },
  event: {
    type: "text",
    words: "The kind of event that the provider named in a header of its signed call.",
    shown: "sometimes",
  },
  rerunOf: {
    type: "id",
    words: "The execution that it runs again.",
    shown: "sometimes",
    label: "Run again from",
  },
  status: { type: "choice", choices: EXECUTION_STATUSES, words: "The status.", label: "Status" },
  createdAt: { type: "time", words: "Time at which Weir accepted it.", label: "Created" },
  startedAt: { ...STARTED, shown: "sometimes" },
  finishedAt: { ...FINISHED, shown: "sometimes" },
  cancelRequested: { type: "flag", words: "Whether a cancellation was requested." },
  output: {
    type: "json",
    words: `The output; lists omit outputs of more than ${MAX_LISTED_OUTPUT_BYTES} bytes.`,
    shown: "sometimes",
    label: "Output",
  },
  error: ERROR,
} as const satisfies Fields;

/** The fields of an execution. */
export const EXECUTION_FIELDS = {
  ...STORED_EXECUTION,
  steps: {
    type: "records",
    words: "Finished steps in execution order.",
    fields: STEP_FIELDS,
    of: "ExecutionStep",
    label: "Steps",
  },
} as const satisfies Fields;

/** The further fields of an execution that is shown alone. */
export const EXECUTION_DETAILS = {
  currentStep: {
    type: "record",
    words: "The step that the execution works on or waits for.",
    fields: CURRENT_STEP,
    of: "CurrentStep",
    shown: "sometimes",
    label: "Current step",
  },
  headers: {
    type: "json",
    words: "The headers of the trigger call that the trigger passes, by name in lower case.",
    shown: "sometimes",
  },
  input: { type: "object", words: "The body of the trigger call.", label: "Input" },
} as const satisfies Fields;

/** Executions. */
export const EXECUTIONS: Resource = {
  list: "executions",
  noun: "execution",
  fields: EXECUTION_FIELDS,
  filters: {
    state: {
      type: "choice",
      choices: EXECUTION_STATUSES,
      words: "Only executions with this status.",
      value: "STATUS",
      label: "Status",
    },
  },
  columns: ["id", "workflow", "status", "startedAt", "finishedAt"],
};
