import { PROBLEM_TYPE, problemDetails } from "../../base/problem_details.ts";
import type { WebhookAnswer } from "./calls.ts";
import { StoreError } from "../store/store.ts";

/** Why something is refused. */
export interface WebhookProblem {
  readonly status: number;
  /** Stable; words in lower case with `_` between them. */
  readonly code: string;
  /** A sentence for people; holds no secret. */
  readonly detail: string;
  /** Which field or parameter is wrong, where it is one. */
  readonly field?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A refusal that is thrown. */
export class WebhookRefusal extends Error {
  override readonly name = "WebhookRefusal";
  readonly problem: WebhookProblem;

  constructor(problem: WebhookProblem, options?: ErrorOptions) {
    super(problem.detail, options);
    this.problem = problem;
  }
}

/** The refusal as problem details (RFC 9457) with the members `code`, `requestId` and, where there is one, `field`. */
export function problemAnswer(problem: WebhookProblem, requestId: string): WebhookAnswer {
  const { status, code, detail, field, headers } = problem;
  const body = problemDetails(status, { detail, code, requestId, field });
  return { status, headers: { ...headers, "content-type": PROBLEM_TYPE }, body, code };
}

/** The same for every unknown key. */
export const UNAUTHORIZED: WebhookProblem = {
  status: 401,
  code: "unauthorized",
  detail: "Cannot accept the call: expected a known bearer token",
  headers: { "www-authenticate": "Bearer" },
};

/** A record or path that is not there. */
export function notFound(what: string): WebhookRefusal {
  return new WebhookRefusal({ status: 404, code: "not_found", detail: `Cannot find ${what}` });
}

/** A field that holds something wrong; `wanted` says what would be right. */
export function invalidField(field: string, wanted: string): WebhookRefusal {
  return new WebhookRefusal({
    status: 422,
    code: "invalid_field",
    field,
    detail: `Cannot use "${field}": ${wanted}`,
  });
}

/** A state that does not allow what is asked. */
export function conflict(code: string, detail: string): WebhookRefusal {
  return new WebhookRefusal({ status: 409, code, detail });
}

/** Something that is away for the moment. */
export function unavailable(code: string, detail: string): WebhookProblem {
  return { status: 503, code, detail, headers: { "retry-after": "1" } };
}

/** What to answer for something that was thrown; nothing for what nobody expects. */
export function problemOf(error: unknown): WebhookProblem | undefined {
  if (error instanceof WebhookRefusal) return error.problem;
  if (!(error instanceof StoreError)) return undefined;
  if (error.code === "closed") return SHUTTING_DOWN;
  return unavailable("store_unavailable", `Cannot write to the store: ${STORE_STATES[error.code]}`);
}

/** Told while the service ends. */
export const SHUTTING_DOWN: WebhookProblem = unavailable(
  "shutting_down",
  "Cannot accept anything: the service is stopping",
);

const STORE_STATES: Readonly<Record<Exclude<StoreError["code"], "closed">, string>> = {
  busy: "it is busy",
  full: "it is full",
  read_only: "it is read-only",
  replaced: "its file was deleted or replaced",
  failed: "it failed",
};
