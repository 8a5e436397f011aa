import type { CheckedStage } from "../deliveries/endpoint_check.ts";
import type { Clock } from "../../base/clock.ts";
import type { JsonObject } from "../../base/exact_json.ts";
import type { AuditEntry, Endpoint, Sealed } from "../model/records.ts";
import type { WebhookAnswer } from "./calls.ts";
import type { Workflows } from "../model/workflow.ts";
import type { WebhookStore } from "../store/store.ts";

/** What the administration works with. */
export interface AdministrationParts {
  readonly store: WebhookStore;
  readonly workflows: Pick<Workflows, "parse">;
  readonly seal: (text: string) => Promise<Sealed>;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly randomBytes: (length: number) => Uint8Array;
  /** Why an endpoint may not have this URL; nothing when it may. */
  readonly urlProblem: (url: string) => Promise<string | undefined>;
  /** The dry run of an endpoint. */
  readonly check: (endpoint: Endpoint) => Promise<readonly CheckedStage[]>;
  /** How many attempts of an endpoint run; absent where this process does not dispatch. */
  readonly inFlight: (endpointId: string) => number | undefined;
  /** Called when deliveries became due, or endpoints changed. */
  readonly wakeDispatcher: () => void;
  /** Called when executions became due. */
  readonly wakeRunner: () => void;
}

/** A call whose path was taken apart. */
export interface RoutedCall {
  /** What stands in the path for each `:name` of the pattern, in their order. */
  readonly ids: readonly string[];
  readonly query: URLSearchParams;
  /** The object of the body; an empty one where none came and that is fine. */
  object(options?: { readonly optional: boolean }): JsonObject;
}

/** One call of the administration. */
export interface AdministrationRoute {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** Such as `/endpoints/:id/rotate`. */
  readonly pattern: string;
  handle(call: RoutedCall): Promise<WebhookAnswer>;
}

/** An entry of the audit log about something that the administration does. */
export function adminAudit(
  { clock, newId }: Pick<AdministrationParts, "clock" | "newId">,
  action: string,
  object: string,
  details: AuditEntry["details"] = {},
): AuditEntry {
  return { id: newId(), at: clock.now(), actor: "admin", action, object, details };
}

/** An answer with a body; numbers that are kept as text come out as they came. */
export function jsonAnswer(status: number, value: unknown): WebhookAnswer {
  return { status, headers: { "content-type": "application/json" }, body: JSON.stringify(value) };
}

/** 204. */
export const NO_CONTENT: WebhookAnswer = { status: 204, headers: {}, body: "" };
