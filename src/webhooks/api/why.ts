import { isOpen } from "../model/delivery.ts";
import { FAILING_AFTER } from "../model/endpoint_health.ts";
import { isAboutEndpoint } from "../model/endpoint_events.ts";
import { payloadOf, subscriptionMismatch } from "../model/event_filter.ts";
import type { Attempt, Delivery, Endpoint, FailureReason, WebhookEvent } from "../model/records.ts";
import { LAST_SLOT_MS, SLOTS_MS } from "../model/schedule.ts";
import { timeText } from "../../base/rfc3339.ts";

/** A delivery, and what it depends on. */
export interface WhyNotDeliveredOptions {
  readonly delivery: Delivery;
  /** Absent when deleted. */
  readonly endpoint: Pick<Endpoint, "enabled" | "concurrency" | "rateLimit" | "rateNextAt"> | undefined;
  readonly now: number;
  /** The last attempt that has ended; absent for none. */
  readonly lastAttempt?: Pick<Attempt, "status" | "errorKind" | "error"> | undefined;
  /** True if all deliveries are paused. */
  readonly isPaused?: boolean | undefined;
  /** Failed attempts of the endpoint since its last success. */
  readonly failures?: number | undefined;
  /** Number of attempts of the endpoint in flight; absent where other processes make some of them. */
  readonly inFlight?: number | undefined;
}

const REASONS: Readonly<Record<FailureReason, string>> = {
  exhausted: "no attempt within 24 hours of the first failure succeeded",
  endpoint_disabled: "its endpoint was still disabled 24 hours after the first failure",
  endpoint_deleted: "its endpoint was deleted",
  payload_erased: "the payload of its event was erased",
  backlog_full: "the backlog of its endpoint was full",
  unrenderable: "its body could not be rendered from the template of its endpoint",
  rate_limited:
    "the rate limit of its endpoint delayed its retries until 24 hours after the first failure, and the last one failed",
};

/** An attempt that the rate of its endpoint allows begins within this time, if nothing else delays it. */
const CLAIMED_MS = 1_000;
const PAUSED = "all deliveries are paused";
const UNITS = [[3_600_000, "hour"], [60_000, "minute"], [1_000, "second"]] as const;

/**
 * Why a delivery has not arrived yet: its next attempt, the slot of the schedule, what delays it, and why the last
 * attempt failed.
 */
export function whyNotDelivered(options: WhyNotDeliveredOptions): string {
  const { delivery, lastAttempt } = options;
  const state = stateOf(options);
  if (delivery.state === "acknowledged" || lastAttempt === undefined) return state;
  return `${state}; last attempt: ${causeOf(lastAttempt)}`;
}

/** Why an endpoint has no delivery of an event. */
export function whyNotReceived(event: WebhookEvent, endpoint: Endpoint): string {
  const { kind, body, createdAt } = event;
  const data = body === undefined ? undefined : payloadOf(body);
  if (isAboutEndpoint({ kind, data }, endpoint.id)) {
    return "the event is about this endpoint: only others receive it";
  }
  const mismatch = subscriptionMismatch(endpoint, { kind, data });
  const changed = endpoint.updatedAt > createdAt
    ? `; the endpoint was changed at ${timeText(endpoint.updatedAt)}, after the event`
    : "";
  if (mismatch !== undefined) return `${mismatch}${changed}`;
  if (endpoint.createdAt > createdAt) {
    return `the endpoint was created at ${timeText(endpoint.createdAt)}, after the event`;
  }
  if (endpoint.filter !== undefined && data === undefined) {
    return `the filter of the endpoint cannot be compared: the payload of the event was erased${changed}`;
  }
  return changed === "" ? "its delivery was removed after WEBHOOK_RETENTION" : `it has no delivery${changed}`;
}

/** Why an attempt failed. */
export function causeOf(
  { status, errorKind, error }: NonNullable<WhyNotDeliveredOptions["lastAttempt"]>,
): string {
  return errorKind === "status" ? `the endpoint returned ${status}` : error ?? errorKind ?? "no error";
}

function stateOf(options: WhyNotDeliveredOptions): string {
  const { delivery, endpoint, now } = options;
  const { state, resendAt, claimId, leaseUntil = Infinity } = delivery;
  if (claimId !== undefined) {
    if (leaseUntil > now) return `an attempt is in flight, ${slotOf(delivery)}`;
    return `the lease of an attempt expired at ${
      timeText(leaseUntil)
    }; the attempt is repeated once its claim is released`;
  }
  if (resendAt !== undefined) {
    return `a manual attempt was requested at ${timeText(resendAt)}; ${heldBy(options)}`;
  }
  if (!isOpen(state)) return ended(delivery);
  if (endpoint === undefined) return "its endpoint was deleted";
  if (!endpoint.enabled) return `${heldBy(options)}; ${paused(delivery)}`;
  const { dueAt } = delivery;
  if (dueAt === undefined) return "no attempt is scheduled";
  if (dueAt > now) {
    const held = options.isPaused === true ? `; ${PAUSED}` : "";
    return `the next attempt starts at ${timeText(dueAt)}, ${slotOf(delivery)}${held}`;
  }
  return `an attempt has been due since ${timeText(dueAt)}, ${slotOf(delivery)}; ${heldBy(options)}`;
}

function ended({ state, finishedAt, reason = "exhausted" }: Delivery): string {
  const at = finishedAt === undefined ? "" : ` at ${timeText(finishedAt)}`;
  return state === "acknowledged"
    ? `delivered: the endpoint returned 2xx${at}`
    : `it failed permanently${at}: ${REASONS[reason]}`;
}

function paused({ firstFailureAt }: Delivery): string {
  if (firstFailureAt === undefined) return "it waits until the endpoint is enabled";
  return `it fails permanently at ${timeText(firstFailureAt + LAST_SLOT_MS)} unless the endpoint is enabled`;
}

function heldBy({ endpoint, isPaused, inFlight, now, failures = 0 }: WhyNotDeliveredOptions): string {
  if (endpoint === undefined) return "its endpoint was deleted";
  if (!endpoint.enabled) return "its endpoint is disabled";
  if (isPaused === true) return PAUSED;
  const { concurrency, rateLimit, rateNextAt = 0 } = endpoint;
  if (rateLimit !== undefined && rateNextAt > now - CLAIMED_MS) {
    const { requestsPerUnit, unit } = rateLimit;
    const next = rateNextAt > now ? `at ${timeText(rateNextAt)}` : "now";
    return `it waits for the rate limit of its endpoint, ${requestsPerUnit} per ${unit}, which allows the next attempt ${next}`;
  }
  if (failures >= FAILING_AFTER) {
    return `the last ${failures} attempts of its endpoint failed: Weir makes one at a time, with pauses of up to 30 seconds, until one succeeds`;
  }
  if (inFlight === undefined) {
    return `it starts as soon as WEBHOOK_MAX_IN_FLIGHT and the concurrency of its endpoint, ${concurrency}, allow it`;
  }
  if (inFlight < concurrency) return "it starts as soon as WEBHOOK_MAX_IN_FLIGHT allows it";
  return `it waits for one of the ${concurrency} attempts that its endpoint may have in flight`;
}

function slotOf({ slot, firstFailureAt, waitedMs = 0 }: Delivery): string {
  if (firstFailureAt === undefined) return "the first one";
  const offsetMs = SLOTS_MS[slot] ?? LAST_SLOT_MS;
  const delay = waitedMs < 1_000 ? "" : `, delayed by ${roughly(waitedMs)} by the rate limit of its endpoint`;
  const after = `${offsetMs === 0 ? "immediately" : `${spoken(offsetMs)} after the first failure`}${delay}`;
  return `retry ${Math.min(slot + 1, SLOTS_MS.length)} of ${SLOTS_MS.length} (${after})`;
}

/** In whole numbers of the largest unit. */
function roughly(ms: number): string {
  const [unitMs] = UNITS.find(([size]) => ms >= size) ?? [1];
  return spoken(Math.floor(ms / unitMs) * unitMs);
}

function spoken(ms: number): string {
  const [unitMs, unit] = UNITS.find(([size]) => ms % size === 0) ?? [1, "millisecond"];
  return ms === unitMs ? `1 ${unit}` : `${ms / unitMs} ${unit}s`;
}
