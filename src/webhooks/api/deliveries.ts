import { timeText, timeTextIf } from "../../base/rfc3339.ts";
import { isOpen } from "../model/delivery.ts";
import type { Attempt, Delivery, Endpoint } from "../model/records.ts";
import * as deliveries from "../store/deliveries.ts";
import { findEndpoint } from "../store/endpoints.ts";
import type { Work } from "../store/work.ts";
import { lister } from "./list_query.ts";
import { found, refusal } from "./problem.ts";
import { adminAudit, type AdministrationRoutes, jsonAnswer, type RoutedCall } from "./route.ts";
import { whyNotDelivered } from "./why.ts";

const FILTERS = ["endpointId", "state", "event", "since", "until"] as const;
const STATES = ["attempting", "retrying", "acknowledged", "failed"];

/** `/deliveries`. */
export const DELIVERY_ROUTES: AdministrationRoutes = {
  "GET /deliveries": lister(FILTERS, deliveries.listDeliveries, shownInList, STATES),
  "GET /deliveries/:id": getDelivery,
  "POST /deliveries/:id/resend": resendDelivery,
};

async function shownInList(listed: Delivery, call: RoutedCall) {
  // The responses of 200 deliveries, each with nine attempts, would be too much for one page.
  const record = await call.store.read(findRecord, listed.id, { responses: false });
  return shown(record ?? { delivery: listed, attempts: [], endpoint: undefined }, call);
}

async function getDelivery(call: RoutedCall) {
  const record = found(await call.store.read(findRecord, call.id), "this delivery");
  return jsonAnswer(200, shown(record, call));
}

async function resendDelivery(call: RoutedCall) {
  const { id, store, clock } = call;
  call.fields([], { optional: true });
  const { endpoint } = found(await store.read(findRecord, id), "this delivery");
  if (endpoint === undefined) {
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

interface DeliveryRecord {
  readonly delivery: Delivery;
  readonly attempts: readonly Attempt[];
  readonly endpoint: Endpoint | undefined;
}

function* findRecord(
  ...[id, options]: Parameters<typeof deliveries.findDelivery>
): Work<DeliveryRecord | undefined> {
  const record = yield* deliveries.findDelivery(id, options);
  return record && { ...record, endpoint: yield* findEndpoint(record.delivery.endpointId) };
}

function shown({ delivery, attempts, endpoint }: DeliveryRecord, call: RoutedCall): Record<string, unknown> {
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
