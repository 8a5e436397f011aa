import { timeText, timeTextIf } from "../../base/rfc3339.ts";
import { isOpen } from "../model/delivery.ts";
import type { Attempt, Delivery, Endpoint } from "../model/records.ts";
import * as deliveries from "../store/deliveries.ts";
import { findEndpoint } from "../store/endpoints.ts";
import { listOptionsOf, pageAnswer } from "./list_query.ts";
import { found, refusal } from "./problem.ts";
import { adminAudit, type AdministrationRoutes, jsonAnswer, type RoutedCall } from "./route.ts";
import { whyNotDelivered } from "./why.ts";

const STATES = ["attempting", "retrying", "acknowledged", "failed"];

/** `/deliveries`. */
export const DELIVERY_ROUTES: AdministrationRoutes = {
  "GET /deliveries": listDeliveries,
  "GET /deliveries/:id": getDelivery,
  "POST /deliveries/:id/resend": resendDelivery,
};

async function listDeliveries(call: RoutedCall) {
  const { query, store } = call;
  const options = listOptionsOf(query, ["endpointId", "state", "event", "since", "until"], STATES);
  const endpoints = new Map<string, Promise<Endpoint | undefined>>();
  const endpointOf = (id: string) => {
    const reading = endpoints.get(id) ?? store.read(findEndpoint, id);
    endpoints.set(id, reading);
    return reading;
  };
  return await pageAnswer(store.read(deliveries.listDeliveries, options), async (listed) => {
    // The responses of 200 deliveries, each with nine attempts, would be too much for one page.
    const full = await store.read(deliveries.findDelivery, listed.id, { responses: false });
    const { delivery, attempts } = full ?? { delivery: listed, attempts: [] };
    return shown({ delivery, attempts, endpoint: await endpointOf(delivery.endpointId) }, call);
  });
}

async function getDelivery(call: RoutedCall) {
  const { id, store } = call;
  const record = found(await store.read(deliveries.findDelivery, id), "this delivery");
  const endpoint = await store.read(findEndpoint, record.delivery.endpointId);
  return jsonAnswer(200, shown({ ...record, endpoint }, call));
}

async function resendDelivery(call: RoutedCall) {
  const { id, store, clock } = call;
  call.fields([], { optional: true });
  const { delivery } = found(await store.read(deliveries.findDelivery, id), "this delivery");
  if (await store.read(findEndpoint, delivery.endpointId) === undefined) {
    throw refusal(409, "endpoint_deleted", "Cannot send the delivery: its endpoint was deleted");
  }
  const audit = adminAudit(call, "delivery.resend_asked", `delivery:${id}`);
  const outcome = await store.write(deliveries.resendDelivery, id, { now: clock.now(), audit });
  if (found(outcome, "this delivery") === "erased") {
    throw refusal(409, "payload_erased", "Cannot send the delivery: its payload was erased");
  }
  call.wakeDispatcher();
  return jsonAnswer(202, { id });
}

interface FoundDelivery {
  readonly delivery: Delivery;
  readonly attempts: readonly Attempt[];
  readonly endpoint: Endpoint | undefined;
}

function shown({ delivery, attempts, endpoint }: FoundDelivery, call: RoutedCall): Record<string, unknown> {
  const { id, endpointId, eventId, event, state, slot, reason, createdAt } = delivery;
  return {
    ...{ id, endpointId, eventId, event, state, slot, reason },
    createdAt: timeText(createdAt),
    firstFailureAt: timeTextIf(delivery.firstFailureAt),
    finishedAt: timeTextIf(delivery.finishedAt),
    attempts: attempts.map(({ startedAt, finishedAt, ...rest }) => {
      return { ...rest, startedAt: timeText(startedAt), finishedAt: timeTextIf(finishedAt) };
    }),
    nextAttemptAt: timeTextIf(nextAttemptAt(delivery)),
    why: whyNotDelivered({ delivery, endpoint, now: call.clock.now(), inFlight: call.inFlight(endpointId) }),
  };
}

function nextAttemptAt({ state, dueAt, resendAt }: Delivery): number | undefined {
  const due = isOpen(state) ? dueAt : undefined;
  if (due === undefined || resendAt === undefined) return due ?? resendAt;
  return Math.min(due, resendAt);
}
