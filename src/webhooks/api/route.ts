import type { Clock } from "../../base/clock.ts";
import { JsonText, writeJson } from "../../base/json_text.ts";
import { timeText } from "../../base/rfc3339.ts";
import type { EndpointCheck } from "../deliveries/endpoint_check.ts";
import type { AuditEntry, Sealed } from "../model/records.ts";
import type { Workflows } from "../model/workflow.ts";
import type { AuditAction } from "../resources/audit_entry.ts";
import { type Field, type Fields, isShown, type Sent } from "../resources/field.ts";
import type { WebhookStore } from "../store/store.ts";
import type { TriggerAcceptor } from "./accept_trigger.ts";
import type { Administrator } from "./administrator.ts";
import type { WebhookAnswer } from "./calls.ts";
import type { AdministrationOperations } from "./operation.ts";

/** The parts that the administration uses. */
export interface AdministrationParts {
  readonly store: WebhookStore;
  readonly workflows: Pick<Workflows, "parse" | "listing">;
  /** Starts the workflow of a trigger, with all that a call of it requires but its key. */
  readonly callTrigger: TriggerAcceptor["start"];
  /** Starts an execution again. */
  readonly rerun: TriggerAcceptor["rerun"];
  /** Largest input of an execution that is started again; any when absent. */
  readonly maxBodyBytes?: number | undefined;
  readonly seal: (text: string) => Promise<Sealed>;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly randomBytes: (length: number) => Uint8Array;
  /** `TRIGGER_PUBLIC_URL`, without a slash at its end. */
  readonly publicUrl?: string | undefined;
  /** Why an endpoint may not have this URL; nothing when it may. */
  readonly urlProblem: (url: string) => Promise<string | undefined>;
  /** The dry run of an endpoint. */
  readonly check: EndpointCheck;
  /** Number of running attempts of an endpoint; undefined where other processes may make some of them. */
  readonly inFlight: (endpointId: string) => number | undefined;
  /** Called when deliveries became due, or endpoints changed. */
  readonly wakeDispatcher: () => void;
  /** Called when deliveries of an endpoint became due that are attempted now, even if it is failing. */
  readonly retryNow: (endpointId: string) => void;
  /** Throws a `WebhookRefusal` while the store is full. */
  readonly admit: () => void;
  /** Called when executions became due. */
  readonly wakeRunner: () => void;
}

/** A call at its route, and what it is answered with. */
export interface RoutedCall extends AdministrationParts {
  readonly administrator: Administrator;
  /** The path's part at `:id`; empty for a route without one. */
  readonly id: string;
  /** The path's part at `:keyId` or `:secretId`. */
  readonly keyId: string;
  readonly query: URLSearchParams;
  /** The header, unchecked. */
  readonly idempotencyKey: string | undefined;
  /** As it came; empty for none. */
  readonly body: string;
  /** The values of the body; refuses other fields, and a call without a body unless it is optional. */
  fields<F extends Fields>(fields: F, options?: { readonly optional: boolean }): Promise<Sent<F>>;
}

/** Answers a call. Refusals are thrown as `WebhookRefusal`. */
export type AdministrationHandler = (call: RoutedCall) => Promise<WebhookAnswer>;

/** A handler for each of these operations. */
export type RoutesOf<Described extends AdministrationOperations> = {
  readonly [Route in keyof Described]: AdministrationHandler;
};

/** An entry of the audit log about an action of the administration. */
export function adminAudit(
  { clock, newId, administrator }: Pick<RoutedCall, "clock" | "newId" | "administrator">,
  action: AuditAction,
  object: string,
  details: AuditEntry["details"] = {},
): AuditEntry {
  return { id: newId(), at: clock.now(), actor: administrator.name, action, object, details };
}

/** An answer with a body; what is kept as text comes out as it came. */
export function jsonAnswer(status: number, value: unknown): WebhookAnswer {
  return { status, headers: { "content-type": "application/json" }, body: writeJson(value) };
}

/** The values of a record that its fields show, without secrets: times as text, and JSON as it was sent. */
export function shownRecord(
  fields: Fields,
  values: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const shown = Object.entries(fields).filter(([, field]) => isShown(field));
  return Object.fromEntries(shown.map(([name, field]) => [name, shownValue(field, values[name])]));
}

function shownValue({ type, fields = {} }: Field, value: unknown): unknown {
  if (typeof value === "number") return type === "time" ? timeText(value) : value;
  if (typeof value === "string") return KEPT_AS_JSON.includes(type) ? new JsonText(value) : value;
  if (value === undefined || type !== "record" && type !== "records" && type !== "credentials") return value;
  if (type !== "records") return shownRecord(fields, value as Record<string, unknown>);
  return (value as readonly Record<string, unknown>[]).map((one) => shownRecord(fields, one));
}

const KEPT_AS_JSON: readonly Field["type"][] = ["filter", "condition", "template", "limit", "json"];

/** 204. */
export const NO_CONTENT: WebhookAnswer = { status: 204, headers: {}, body: "" };
