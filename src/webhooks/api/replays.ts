import { timeTextIf } from "../../base/rfc3339.ts";
import { atTurnEnd } from "../../base/turn.ts";
import type { Replay } from "../model/records.ts";
import {
  DELIVERY_RETRY,
  ENDPOINT_REPLAY,
  MAX_RUNNING_REPLAYS,
  REPLAY_FIELDS,
  REPLAYS,
} from "../resources/replay.ts";
import { findEndpoint } from "../store/operations/endpoints.ts";
import { countMatches } from "../store/operations/replay_search.ts";
import * as replays from "../store/operations/replays.ts";
import { lister } from "./list_query.ts";
import { found, invalidField, refusal } from "./problem.ts";
import { MAX_COUNT_MS, type REPLAY_OPERATIONS } from "./replay_operations.ts";
import { adminAudit, jsonAnswer, type RoutedCall, type RoutesOf, shownRecord } from "./route.ts";

/** `/replays`, and what starts one. */
export const REPLAY_ROUTES: RoutesOf<typeof REPLAY_OPERATIONS> = {
  "POST /endpoints/:id/replay": replayEvents,
  "POST /deliveries/retry": retryDeliveries,
  "GET /replays": lister(REPLAYS, replays.listReplays, shown),
  "GET /replays/:id": async (call) => jsonAnswer(200, shown(await replayOf(call))),
  "POST /replays/:id/cancel": cancelReplay,
};

const ENDPOINT = "this endpoint";

async function replayEvents(call: RoutedCall) {
  const { dryRun, since, until, events, filter } = await call.fields(ENDPOINT_REPLAY);
  found(await call.store.read(findEndpoint, call.id), ENDPOINT);
  if (dryRun !== true) call.admit();
  const scope = { source: "events", endpointId: call.id, events, filter, since, until } as const;
  return await start(call, scope, dryRun);
}

async function retryDeliveries(call: RoutedCall) {
  const { dryRun, state = "failed", event, endpointId, ...range } = await call.fields(DELIVERY_RETRY, {
    optional: true,
  });
  if (endpointId !== undefined) found(await call.store.read(findEndpoint, endpointId), ENDPOINT);
  const events = event === undefined ? undefined : [event];
  const scope = { source: "deliveries", endpointId, events, deliveryState: state, ...range } as const;
  return await start(call, scope, dryRun);
}

/** The matches of a call; until now where it has no end. */
type Scope = Omit<Replay, "id" | "state" | "done" | "createdAt" | "until"> & {
  readonly until?: number | undefined;
};

async function start(call: RoutedCall, scope: Scope, dryRun = false) {
  const now = call.clock.now();
  // Later events have their deliveries.
  const until = Math.min(scope.until ?? now, now);
  if (scope.since !== undefined && until <= scope.since) {
    throw invalidField("until", "expected a time after since");
  }
  const { count, isPartial } = await countOf({ ...scope, until }, call);
  if (dryRun) return jsonAnswer(200, { count, isPartial });
  const replay: Replay = {
    ...scope,
    until,
    id: call.newId(),
    state: "running",
    count: isPartial === true ? undefined : count,
    done: 0,
    createdAt: now,
  };
  const audit = adminAudit(call, "replay.started", `replay:${replay.id}`, auditedScope(replay));
  const outcome = await call.store.write(replays.startReplay, replay, audit);
  if (found(outcome, ENDPOINT) === "too_many") {
    const state = `${MAX_RUNNING_REPLAYS} are running; cancel one, or wait for its end`;
    throw refusal("too_many_replays", `Cannot start the replay: ${state}`);
  }
  return jsonAnswer(202, shown(replay));
}

function auditedScope({ since, until, ...replay }: Replay) {
  const { source, endpointId, eventId, events, filter, deliveryState, count } = replay;
  const scope = { source, endpointId, eventId, events, filter, deliveryState };
  return { ...scope, since: timeTextIf(since), until: timeTextIf(until), count };
}

/** The number of matches, or of those that could be counted in time. */
async function countOf(
  scope: Parameters<typeof countMatches>[0],
  { store, clock }: RoutedCall,
): Promise<{ readonly count: number; readonly isPartial?: true }> {
  const end = clock.elapsed() + MAX_COUNT_MS;
  let count = 0;
  let position: Parameters<typeof countMatches>[1];
  do {
    const portion = await store.read(countMatches, scope, position);
    count += portion.count;
    position = portion.next;
    if (position !== undefined && clock.elapsed() >= end) return { count, isPartial: true };
    // SQLite reads synchronously: others have their turn in between.
    await new Promise<void>((resolve) => atTurnEnd(resolve));
  } while (position !== undefined);
  return { count };
}

async function cancelReplay(call: RoutedCall) {
  const { id, store, clock } = call;
  await call.fields({}, { optional: true });
  const audit = adminAudit(call, "replay.cancelled", `replay:${id}`);
  const isCancelled = await store.write(replays.cancelReplay, id, { now: clock.now(), audit });
  if (!found(isCancelled, REPLAY)) throw refusal("already_ended", "Cannot cancel the replay: it has ended");
  return jsonAnswer(200, shown(await replayOf(call)));
}

const REPLAY = "this replay";

async function replayOf({ id, store }: RoutedCall): Promise<Replay> {
  return found(await store.read(replays.findReplay, id), REPLAY);
}

function shown(replay: Replay): Record<string, unknown> {
  return shownRecord(REPLAY_FIELDS, replay);
}
