import type { NewEvent } from "../model/records.ts";
import { refusal, type WebhookRefusal } from "./problem.ts";

/** Refuses what would exceed a bound of the store. */
export interface AcceptanceBounds {
  /** True if something is refused at the moment. */
  readonly mayRefuse: boolean;
  /** Throws a `WebhookRefusal` while the store is full. */
  admit(): void;
  /** The same, and while an endpoint that the event would go to has a full backlog. */
  admitEvent(event: NewEvent): Promise<void>;
}

/** When a refused call may be repeated: a bound is measured every few seconds. */
const RETRY = { headers: { "retry-after": "30" } };
const NAMED = 3;

/** The refusal of a call while the store is full. */
export function storeFull(maxBytes: number): WebhookRefusal {
  const detail =
    `Cannot accept the call: the store is larger than ${maxBytes} bytes (WEBHOOK_STORE_MAX_BYTES)`;
  return refusal("store_full", detail, RETRY);
}

/** The refusal of an event for the endpoints with a full backlog. */
export function backlogFull(endpointIds: readonly string[], maxBacklog: number): WebhookRefusal {
  const more = endpointIds.length > NAMED ? ` and ${endpointIds.length - NAMED} more` : "";
  const named = `${endpointIds.slice(0, NAMED).join(", ")}${more}`;
  const state = `has ${maxBacklog} or more open deliveries (WEBHOOK_MAX_BACKLOG)`;
  return refusal("backlog_full", `Cannot accept the event: endpoint ${named} ${state}`, RETRY);
}
