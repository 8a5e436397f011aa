import {
  adminAudit,
  type AdministrationParts,
  type AdministrationRoute,
  jsonAnswer,
  type RoutedCall,
} from "./route.ts";
import { isOpen } from "../model/delivery.ts";
import { FieldReader } from "./field_reader.ts";
import { listOptionsOf, pageOf } from "./list_query.ts";
import { conflict, notFound } from "./problem.ts";
import type { Attempt, Delivery, Endpoint } from "../model/records.ts";
import type { WebhookAnswer } from "./calls.ts";
import { timeText } from "../../base/rfc3339.ts";
import { whyNotDelivered } from "./why.ts";
import * as deliveries from "../store/deliveries.ts";
import { findEndpoint } from "../store/endpoints.ts";

const STATES = ["attempting", "retrying", "acknowledged", "failed"];

/** `/deliveries`. */
export function deliveryRoutes(parts: AdministrationParts): AdministrationRoute[] {
  return [
    { method: "GET", pattern: "/deliveries", handle: (call) => listDeliveries(call, parts) },
    { method: "GET", pattern: "/deliveries/:id", handle: (call) => getDelivery(call, parts) },
    { method: "POST", pattern: "/deliveries/:id/resend", handle: (call) => resendDelivery(call, parts) },
  ];
}

async function listDeliveries({ query }: RoutedCall, parts: AdministrationParts): Promise<WebhookAnswer> {
  const filters = ["endpointId", "state", "event", "since", "until"] as const;
  const options = listOptionsOf(query, filters, { states: STATES });
  const endpointOf = endpointFinder(parts);
  const page = await pageOf(parts.store.read(deliveries.listDeliveries, options), async (listed) => {
    // Two hundred deliveries of nine answers each would be too much for one page.
    const found = await parts.store.read(deliveries.findDelivery, listed.id, { responses: false });
    const { delivery, attempts } = found ?? { delivery: listed, attempts: [] };
    return shown({ delivery, attempts, endpoint: await endpointOf(delivery.endpointId) }, parts);
  });
  return jsonAnswer(200, page);
}

async function getDelivery(
  { ids: [id = ""] }: RoutedCall,
  parts: AdministrationParts,
): Promise<WebhookAnswer> {
  const found = await parts.store.read(deliveries.findDelivery, id);
  if (found === undefined) throw notFound("this delivery");
  const endpoint = await parts.store.read(findEndpoint, found.delivery.endpointId);
  return jsonAnswer(200, shown({ ...found, endpoint }, parts));
}

async function resendDelivery({ ids: [id = ""], object }: RoutedCall, parts: AdministrationParts) {
  new FieldReader(object({ optional: true }), []);
  const found = await parts.store.read(deliveries.findDelivery, id);
  if (found === undefined) throw notFound("this delivery");
  if (await parts.store.read(findEndpoint, found.delivery.endpointId) === undefined) {
    throw conflict("endpoint_deleted", "Cannot send the delivery: its endpoint was deleted");
  }
  const audit = adminAudit(parts, "delivery.resend_asked", `delivery:${id}`);
  const outcome = await parts.store.write(deliveries.resendDelivery, id, { now: parts.clock.now(), audit });
  if (outcome === undefined) throw notFound("this delivery");
  if (outcome === "erased") {
    throw conflict("payload_erased", "Cannot send the delivery: its payload was erased");
  }
  parts.wakeDispatcher();
  return jsonAnswer(202, { id });
}

/** Looks each endpoint of a page up once. */
function endpointFinder({ store }: AdministrationParts): (id: string) => Promise<Endpoint | undefined> {
  const known = new Map<string, Promise<Endpoint | undefined>>();
  return (id) => {
    const asked = known.get(id) ?? store.read(findEndpoint, id);
    known.set(id, asked);
    return asked;
  };
}

interface FoundDelivery {
  readonly delivery: Delivery;
  readonly attempts: readonly Attempt[];
  readonly endpoint: Endpoint | undefined;
}

function shown(
  { delivery, attempts, endpoint }: FoundDelivery,
  parts: AdministrationParts,
): Record<string, unknown> {
  const { id, endpointId, eventId, event, state, slot, reason, createdAt } = delivery;
  const inFlight = parts.inFlight(endpointId);
  return {
    id,
    endpointId,
    eventId,
    event,
    state,
    slot,
    reason,
    createdAt: timeText(createdAt),
    firstFailureAt: timeIf(delivery.firstFailureAt),
    finishedAt: timeIf(delivery.finishedAt),
    attempts: attempts.map(shownAttempt),
    nextAttemptAt: timeIf(nextAttemptAt(delivery)),
    why: whyNotDelivered({ delivery, endpoint, now: parts.clock.now(), inFlight }),
  };
}

function nextAttemptAt({ state, dueAt, resendAt }: Delivery): number | undefined {
  const due = isOpen(state) ? dueAt : undefined;
  if (due === undefined || resendAt === undefined) return due ?? resendAt;
  return Math.min(due, resendAt);
}

function shownAttempt({ startedAt, finishedAt, ...rest }: Attempt): Record<string, unknown> {
  return { ...rest, startedAt: timeText(startedAt), finishedAt: timeIf(finishedAt) };
}

function timeIf(time: number | undefined): string | undefined {
  return time === undefined ? undefined : timeText(time);
}
