import { isOpen } from "../model/delivery.ts";
import type { Attempt, Delivery, Endpoint } from "../model/records.ts";
import { DELIVERIES, DELIVERY_FIELDS, DELIVERY_PAUSE, DELIVERY_REQUESTS } from "../resources/delivery.ts";
import * as deliveries from "../store/operations/deliveries.ts";
import { findSentBody } from "../store/operations/delivery_bodies.ts";
import { failuresOf } from "../store/operations/endpoint_health.ts";
import { findEndpoint } from "../store/operations/endpoints.ts";
import { type DeliveryPause, findPause } from "../store/pause.ts";
import type { Work } from "../store/work.ts";
import type { DELIVERY_OPERATIONS } from "./delivery_operations.ts";
import { lister } from "./list_query.ts";
import { found, refusal } from "./problem.ts";
import { adminAudit, jsonAnswer, type RoutedCall, type RoutesOf, shownRecord } from "./route.ts";
import { causeOf, whyNotDelivered } from "./why.ts";

/** `/deliveries`. */
export const DELIVERY_ROUTES: RoutesOf<typeof DELIVERY_OPERATIONS> = {
  "GET /deliveries": lister(DELIVERIES, deliveries.listDeliveries, shownInList),
  "GET /deliveries/pause": getPause,
  "POST /deliveries/pause": pause,
  "POST /deliveries/resume": resume,
  "GET /deliveries/:id": getDelivery,
  "GET /deliveries/:id/requests": getRequests,
  "POST /deliveries/:id/resend": resendDelivery,
};

async function shownInList(listed: Delivery, call: RoutedCall) {
  // The responses of 200 deliveries, each with nine attempts, would be too much for one page.
  const record = await call.store.read(findRecord, listed.id, { responses: false });
  return shown(
    record ?? { delivery: listed, attempts: [], endpoint: undefined, failures: 0, isPaused: false },
    call,
  );
}

async function getDelivery(call: RoutedCall) {
  const record = found(await call.store.read(findRecord, call.id), "this delivery");
  return jsonAnswer(200, shown(record, call));
}

async function getRequests({ id, store, administrator }: RoutedCall) {
  const { delivery, attempts } = found(await store.read(deliveries.findDelivery, id), "this delivery");
  const body = await store.read(findSentBody, id);
  const requests = attempts.flatMap(({ number, url, headers }) => {
    return headers === undefined
      ? []
      : [{ number, url, headers: headersOf(headers, delivery, administrator) }];
  });
  const text = body && new TextDecoder().decode(body);
  return jsonAnswer(200, shownRecord(DELIVERY_REQUESTS, { body: text, requests }));
}

async function resendDelivery(call: RoutedCall) {
  const { id, store, clock } = call;
  await call.fields({}, { optional: true });
  const record = found(await store.read(findRecord, id, { responses: false }), "this delivery");
  const { delivery, endpoint } = record;
  if (endpoint === undefined) {
    throw refusal("endpoint_deleted", "Cannot send the delivery: its endpoint was deleted");
  }
  const audit = adminAudit(call, "delivery.resend_asked", `delivery:${id}`);
  const now = clock.now();
  const outcome = await store.write(deliveries.resendDelivery, id, { now, audit });
  if (found(outcome, "this delivery") === "erased") {
    throw refusal("payload_erased", "Cannot send the delivery: its payload was erased");
  }
  call.retryNow(endpoint.id);
  const asked = { ...record, delivery: { ...delivery, resendAt: now } };
  const isHeld = !endpoint.enabled || record.isPaused;
  return jsonAnswer(202, { id, why: isHeld ? whyOf(asked, call) : undefined });
}

async function getPause({ store }: RoutedCall) {
  return pauseAnswer(await store.read(findPause));
}

async function pause(call: RoutedCall) {
  await call.fields({}, { optional: true });
  return pauseAnswer(
    await call.store.write(deliveries.pauseDeliveries, adminAudit(call, "deliveries.paused", "deliveries")),
  );
}

async function resume(call: RoutedCall) {
  await call.fields({}, { optional: true });
  await call.store.write(deliveries.resumeDeliveries, adminAudit(call, "deliveries.resumed", "deliveries"));
  call.wakeDispatcher();
  return pauseAnswer(undefined);
}

function pauseAnswer(pause: DeliveryPause | undefined) {
  const shown = { paused: pause !== undefined, since: pause?.at, by: pause?.actor };
  return jsonAnswer(200, shownRecord(DELIVERY_PAUSE, shown));
}

/** Why a delivery has not arrived yet. */
export async function whyOfDelivery(id: string, call: RoutedCall): Promise<string> {
  const record = await call.store.read(findRecord, id, { responses: false });
  return whyOf(found(record, "this delivery"), call);
}

interface DeliveryRecord {
  readonly delivery: Delivery;
  readonly attempts: readonly Attempt[];
  readonly endpoint: Endpoint | undefined;
  /** Failed attempts of the endpoint since its last success. */
  readonly failures: number;
  readonly isPaused: boolean;
}

function* findRecord(
  ...[id, options]: Parameters<typeof deliveries.findDelivery>
): Work<DeliveryRecord | undefined> {
  const record = yield* deliveries.findDelivery(id, options);
  if (record === undefined) return undefined;
  const { endpointId } = record.delivery;
  return {
    ...record,
    endpoint: yield* findEndpoint(endpointId),
    failures: yield* failuresOf(endpointId),
    isPaused: (yield* findPause()) !== undefined,
  };
}

function shown(record: DeliveryRecord, call: RoutedCall): Record<string, unknown> {
  const { delivery, attempts } = record;
  const last = lastAttemptOf(attempts);
  const lastError = last === undefined || last.result === "acknowledged" ? undefined : causeOf(last);
  const drawn = { attempts, lastError, nextAttemptAt: nextAttemptAt(delivery), why: whyOf(record, call) };
  return shownRecord(DELIVERY_FIELDS, { ...delivery, ...drawn });
}

/** All headers of a request; with a signature, a caller that may only read could send the event again. */
function headersOf(
  kept: NonNullable<Attempt["headers"]>,
  { id, event }: Delivery,
  { role }: RoutedCall["administrator"],
): Readonly<Record<string, string>> {
  const { "x-svc-timestamp": timestamp = "", "webhook-signature": standard } = kept;
  const headers = {
    ...kept,
    "x-svc-event": event,
    "x-svc-delivery": id,
    ...(standard === undefined ? {} : { "webhook-id": id, "webhook-timestamp": timestamp }),
  };
  const shown = Object.entries(headers).filter(([name]) => role === "admin" || !name.includes("signature"));
  return Object.fromEntries(shown);
}

function whyOf(record: DeliveryRecord, { clock, inFlight }: RoutedCall): string {
  const { delivery, attempts, endpoint, failures, isPaused } = record;
  const lastAttempt = lastAttemptOf(attempts);
  const inFlightNow = inFlight(delivery.endpointId);
  const now = clock.now();
  return whyNotDelivered({ delivery, endpoint, failures, isPaused, now, lastAttempt, inFlight: inFlightNow });
}

function lastAttemptOf(attempts: readonly Attempt[]): Attempt | undefined {
  return attempts.findLast(({ result }) => result !== undefined);
}

function nextAttemptAt({ state, dueAt, resendAt }: Delivery): number | undefined {
  const due = isOpen(state) ? dueAt : undefined;
  if (due === undefined || resendAt === undefined) return due ?? resendAt;
  return Math.min(due, resendAt);
}
