import { isJsonObject, type JsonValue } from "../../base/exact_json.ts";
import { timeText, timeTextIf } from "../../base/rfc3339.ts";
import type { FailureRun, HealthChange } from "./endpoint_health.ts";
import { eventBody, isOperationalKind } from "./event.ts";
import type { Attempt, Delivery, FailureReason, NewEvent } from "./records.ts";

/** An event about an endpoint or a delivery. It is stored only if an endpoint subscribes to it. */
export interface ReportedEvent extends NewEvent {
  /** The endpoint that it is about, which does not receive it. */
  readonly exceptEndpointId?: string | undefined;
}

/** The kinds of events about endpoints. */
export const ENDPOINT_KINDS: Readonly<Record<HealthChange, string>> = {
  failing: "endpoint.failing",
  recovered: "endpoint.recovered",
  disabled: "endpoint.disabled",
  gone: "endpoint.disabled",
};
/** The kind of the event about a delivery that failed permanently. */
export const DELIVERY_FAILED_KIND = "delivery.failed";

/** Reasons that an administrator has chosen cause no event. */
const REPORTED_REASONS: ReadonlySet<FailureReason> = new Set([
  "exhausted",
  "rate_limited",
  "unrenderable",
  "endpoint_disabled",
]);

/** The event about a change of an endpoint; `run` has the failures that it is about. */
export function endpointEvent(
  change: HealthChange,
  { endpointId, run, now, eventId }: {
    readonly endpointId: string;
    readonly run: FailureRun;
    readonly now: number;
    readonly eventId: string;
  },
): ReportedEvent {
  const failing = { failingSince: timeTextIf(run.failingSince), consecutiveFailures: run.failures };
  const disabled = { disabledAt: timeText(now), ...failing };
  const data = {
    failing: { endpointId, ...failing },
    recovered: { endpointId, failingSince: failing.failingSince, recoveredAt: timeText(now) },
    disabled: { endpointId, reason: "failing", ...disabled },
    gone: { endpointId, reason: "gone", ...disabled },
  }[change];
  return { ...newEvent(eventId, ENDPOINT_KINDS[change], data), exceptEndpointId: endpointId };
}

/** Returns whether an event is about a change of this endpoint, which therefore does not receive it. */
export function isAboutEndpoint(
  { kind, data }: { readonly kind: string; readonly data: JsonValue | undefined },
  endpointId: string,
): boolean {
  if (!Object.values(ENDPOINT_KINDS).includes(kind)) return false;
  return isJsonObject(data) && data["endpointId"] === endpointId;
}

/** The event about a delivery that failed permanently; absent where the delivery or its reason causes none. */
export function deliveryFailedEvent(
  { id, endpointId, eventId, event, reason, firstFailureAt, createdAt }: Pick<
    Delivery,
    "id" | "endpointId" | "eventId" | "event" | "reason" | "firstFailureAt" | "createdAt"
  >,
  { newEventId, now, last: { status, error } = {} }: {
    readonly newEventId: string;
    readonly now: number;
    /** Its last attempt. */
    readonly last?: Pick<Attempt, "status" | "error"> | undefined;
  },
): ReportedEvent | undefined {
  if (reason === undefined || !REPORTED_REASONS.has(reason) || isOperationalKind(event)) return undefined;
  const times = {
    createdAt: timeText(createdAt),
    firstFailureAt: timeTextIf(firstFailureAt),
    failedAt: timeText(now),
  };
  const data = { deliveryId: id, endpointId, eventId, event, reason, ...times, status, error };
  return newEvent(newEventId, DELIVERY_FAILED_KIND, data);
}

function newEvent(id: string, kind: string, data: object): NewEvent {
  return { id, kind, body: eventBody(kind, JSON.stringify(data)) };
}
