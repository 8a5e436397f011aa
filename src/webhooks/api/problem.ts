import type { BodyTextProblem } from "../../base/body_text.ts";
import { PROBLEM_TYPE, problemDetails } from "../../base/problem_details.ts";
import type { Administrator, AdministratorRole } from "./administrator.ts";
import { idempotencyKeyProblem, type WebhookAnswer } from "./calls.ts";
import { PROBLEM_CODES, type ProblemCode } from "./problem_codes.ts";
import { StoreError } from "../store/store.ts";

/** Why a call is refused. */
export interface WebhookProblem {
  readonly code: ProblemCode;
  /** A sentence for people; holds no secret. */
  readonly detail: string;
  /** The wrong field or parameter, where it is one. */
  readonly field?: string | undefined;
  /** The identifiers that a shortened one may mean. */
  readonly candidates?: readonly string[] | undefined;
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
  const { code, detail, field, candidates, headers } = problem;
  const [status] = PROBLEM_CODES[code];
  const body = problemDetails(status, { detail, code, requestId, field, candidates });
  return { status, headers: { ...headers, "content-type": PROBLEM_TYPE }, body, code };
}

/** The same for every unknown key. */
export const UNAUTHORIZED: WebhookProblem = {
  code: "unauthorized",
  detail: "Cannot accept the call: the bearer token is missing or unknown",
  headers: { "www-authenticate": "Bearer" },
};

/** The same for every call of a trigger without a bearer token, whether or not the trigger exists. */
export const UNSIGNED: WebhookProblem = {
  ...UNAUTHORIZED,
  detail: "Cannot accept the call: it has neither a bearer token nor a valid signature",
};

/** The problem of a body that is not JSON by its content type. */
export const WRONG_TYPE: WebhookProblem = {
  code: "unsupported_media_type",
  field: "Content-Type",
  detail: "Cannot read the body: expected application/json",
};

/** The problem of a body that cannot be decoded. */
export function bodyProblem({ kind, field, reason, headers }: BodyTextProblem): WebhookProblem {
  return { code: BODY_CODES[kind], field, detail: `Cannot read "${field}": ${reason}`, headers };
}

const BODY_CODES = {
  unsupported_body: "unsupported_media_type",
  malformed: "malformed_json",
  too_large: "too_large",
} as const satisfies Readonly<Record<BodyTextProblem["kind"], ProblemCode>>;

/** The problem of a key for deduplication that was sent in a header several times with different values. */
export function repeatedKeyProblem(header: string): WebhookProblem {
  const detail = `Cannot accept the call: the header ${header} was sent several times with different values`;
  return { code: "invalid_idempotency_key", field: "Idempotency-Key", detail };
}

/** The problem of a caller whose role does not suffice; nothing for one who may call. */
export function roleProblem(
  { role }: Administrator,
  required: AdministratorRole,
): WebhookProblem | undefined {
  if (role === "admin" || required === "read") return undefined;
  const detail =
    "Cannot answer the call: it requires a token with the role admin, and this one has the role read";
  return { code: "role_not_allowed", detail };
}

/** The problem of a method other than those of `allow`. */
export function wrongMethod(allow: readonly string[]): WebhookProblem {
  const methods = allow.join(", ");
  const detail = `Cannot use this method: expected ${methods}`;
  return { code: "method_not_allowed", detail, headers: { allow: methods } };
}

/** A refusal; `detail` is a sentence for people. */
export function refusal(
  code: ProblemCode,
  detail: string,
  more: Pick<WebhookProblem, "field" | "candidates" | "headers"> = {},
): WebhookRefusal {
  return new WebhookRefusal({ code, detail, ...more });
}

/** The refusal of a record or path that does not exist. */
export function notFound(what: string): WebhookRefusal {
  return refusal("not_found", `Cannot find ${what}`);
}

/** The record, if it exists; throws `notFound` otherwise. */
export function found<T>(record: T | undefined, what: string): T {
  if (record === undefined) throw notFound(what);
  return record;
}

/** The refusal of a wrong field. */
export function invalidField(field: string, reason: string): WebhookRefusal {
  return refusal("invalid_field", `Cannot use "${field}": ${reason}`, { field });
}

/** The refusal of a key for deduplication; nothing for an absent one, and for one that may be used. */
export function idempotencyKeyRefusal(key: string | undefined, name?: string): WebhookRefusal | undefined {
  const problem = key === undefined ? undefined : idempotencyKeyProblem(key, name);
  if (problem === undefined) return undefined;
  const detail = `Cannot accept the call: ${problem}`;
  return refusal("invalid_idempotency_key", detail, { field: "Idempotency-Key" });
}

/** The problem of a part that cannot be used at the moment. */
export function unavailable(code: ProblemCode, detail: string): WebhookProblem {
  return { code, detail, headers: { "retry-after": "1" } };
}

/** The problem to answer for an error; nothing for an unexpected one. */
export function problemOf(error: unknown): WebhookProblem | undefined {
  if (error instanceof WebhookRefusal) return error.problem;
  if (!(error instanceof StoreError)) return undefined;
  if (error.code === "closed") return SHUTTING_DOWN;
  return unavailable("store_unavailable", `Cannot use the store: ${STORE_STATES[error.code]}`);
}

/** The problem of calls while the service stops. */
export const SHUTTING_DOWN: WebhookProblem = unavailable(
  "shutting_down",
  "Cannot accept the call: Weir is stopping",
);

const STORE_STATES: Readonly<Record<Exclude<StoreError["code"], "closed">, string>> = {
  busy: "it is busy",
  full: "it is full",
  read_only: "it is read-only",
  replaced: "its file was deleted or replaced",
  failed: "it failed",
};
