import { assert, assertEquals, assertMatch } from "#assert";
import { instead, storeWith } from "../../../harness/store_double.ts";
import { until } from "../../../harness/until.ts";
import { type Seen, WebhookBed } from "../../../harness/webhook_service_fixture.ts";
import { backlogPosition, countBacklog } from "../../../../src/webhooks/store/operations/backlog.ts";
import { StoreError } from "../../../../src/webhooks/store/store.ts";

const EVENT = { event: "order.created", data: {} };
const ENDPOINT = { url: "https://one.example/hook", events: ["order.*", "workflow.*"] };
const LOCK = () => ({ isSole: true, keep: () => true, release: () => {} });
/** A fault of the network: nothing is delivered. */
const NO_SENDER = { send: () => Promise.resolve({ errorKind: "connect", error: "refused" } as const) };

Deno.test("bounds: a store over its size refuses triggers and events, and all else goes on", async () => {
  const size = { bytes: 100 };
  await using bed = await WebhookBed.open({
    store: (store) => storeWith(store, [], { usedBytes: () => Promise.resolve(size.bytes) }),
    parts: { maxStoreBytes: 100 },
  });
  const { key } = await bed.trigger();
  const endpoint = await bed.call("POST", "/endpoints", ENDPOINT);
  bed.service.start();
  const start = (idempotencyKey: string) => bed.start(key, {}, { idempotencyKey });
  const [first, posted] = [await start("first"), await bed.post(EVENT, { idempotencyKey: "first" })];
  assertEquals([first.status, posted.status], [202, 202]);

  size.bytes = 101;
  await noted(bed, "the store is larger than WEBHOOK_STORE_MAX_BYTES");
  const detail = "Cannot accept the call: the store is larger than 100 bytes (WEBHOOK_STORE_MAX_BYTES)";
  for (const refused of [await start("other"), await bed.post(EVENT)]) {
    assertEquals(problemOf(refused), [503, "store_full", "30", detail]);
  }
  const replays = [await start("first"), await bed.post(EVENT, { idempotencyKey: "first" })];
  assertEquals(replays.map(({ status, body }) => [status, body.executionId ?? body.id]), [
    [202, first.body.executionId],
    [202, posted.body.id],
  ]);
  const edited = await bed.call("PATCH", `/endpoints/${endpoint.body.id}`, { enabled: false });
  const cancelled = await bed.call("POST", `/executions/${first.body.executionId}/cancel`);
  assertEquals([edited.status, cancelled.status], [200, 202]);
  const { counters, gauges } = await bed.service.metrics();
  assertEquals(counters["bound_refusals.store"], 2);
  assertEquals([gauges.store_used_bytes, gauges.store_max_bytes], [101, 100]);
  assert(bed.log.some((line) => line.startsWith("Store is full; refusing triggers and events")));

  size.bytes = 100;
  await noted(bed, undefined);
  assertEquals([(await start("other")).status, (await bed.post(EVENT)).status], [202, 202]);
});

Deno.test("bounds: an event for an endpoint with a full backlog is refused, by the name of the endpoint", async () => {
  await using bed = await WebhookBed.open({ parts: { maxBacklog: 2 } });
  const { body: { id } } = await bed.call("POST", "/endpoints", ENDPOINT);
  bed.service.start();
  for (const idempotencyKey of ["1", "2"]) {
    assertEquals((await bed.post(EVENT, { idempotencyKey })).status, 202);
  }
  await noted(bed, "1 endpoint has a full backlog");
  const state = "has 2 or more open deliveries (WEBHOOK_MAX_BACKLOG)";
  const detail = `Cannot accept the event: endpoint ${id} ${state}`;
  assertEquals(problemOf(await bed.post(EVENT)), [503, "backlog_full", "30", detail]);
  assertEquals((await bed.post(EVENT, { idempotencyKey: "2" })).headers["idempotency-replayed"], "true");
  assertEquals((await bed.post({ ...EVENT, event: "other.kind" })).status, 202);
  const { key } = await bed.trigger();
  assertEquals((await bed.start(key, {})).status, 202);
  const { counters, gauges } = await bed.service.metrics();
  assertEquals(counters["bound_refusals.backlog"], 1);
  assertEquals([gauges.largest_backlog, gauges.max_backlog], [2, 2]);

  // It does not shrink while the endpoint is disabled.
  assertEquals((await bed.call("PATCH", `/endpoints/${id}`, { enabled: false })).status, 200);
  await noted(bed, "1 endpoint has a full backlog");
  assertEquals((await bed.post(EVENT)).status, 503);
  assertEquals((await bed.call("DELETE", `/endpoints/${id}`)).status, 204);
  await noted(bed, undefined);
  assertEquals((await bed.post(EVENT)).status, 202);
});

Deno.test("bounds: the end of a workflow is stored, and fails for an endpoint with a full backlog", async () => {
  await using bed = await WebhookBed.open({
    parts: { maxBacklog: 1, takeLock: LOCK, sender: NO_SENDER },
  });
  const { body: { id } } = await bed.call("POST", "/endpoints", ENDPOINT);
  const other = await bed.call("POST", "/endpoints", { ...ENDPOINT, events: ["workflow.*"], enabled: false });
  // Those in flight are not counted, and an endpoint that is not full for a moment keeps what came before.
  for (let n = 0; n < 30; n++) assertEquals((await bed.post(EVENT)).status, 202);
  bed.service.start();
  await noted(bed, "1 endpoint has a full backlog");
  const { key } = await bed.trigger();
  const { body: { executionId } } = await bed.start(key, {});
  // Before the clock moves on, past the timeout of the workflow.
  await until("the end of the execution", async () => {
    return (await bed.call("GET", `/executions/${executionId}`)).body["status"] === "succeeded";
  });
  const deliveries = await until("the failure", async () => {
    bed.clock.advance(1_000);
    const { body } = await bed.call("GET", "/deliveries?event=workflow.execution.completed");
    return body.items.some(({ state }) => state === "failed") && body.items;
  });
  const found = deliveries.map((one) => [one["endpointId"], one.state, one["reason"]]);
  assertEquals(
    found.toSorted(),
    [
      [id, "failed", "backlog_full"],
      [other.body.id, "attempting", undefined],
    ].toSorted(),
  );
  const failed = deliveries.find(({ state }) => state === "failed");
  assertMatch(String(failed?.["why"]), /the backlog of its endpoint was full/);
});

Deno.test("bounds: a backlog is counted when it may matter, not for each event", async () => {
  const counted: number[] = [];
  let rounds = 0;
  await using bed = await WebhookBed.open({
    store: (store) =>
      storeWith(store, [
        instead(backlogPosition, (call) => {
          rounds++;
          return call();
        }),
        instead(countBacklog, async (call) => {
          counted.push(await call());
          return counted.at(-1) ?? 0;
        }),
      ]),
    parts: { maxBacklog: 10 },
  });
  const measured = async () => {
    // The second round begins after the first one.
    for (const after of [rounds + 1, rounds + 2]) {
      bed.clock.advance(1_000);
      await until("a round", () => rounds >= after);
    }
    return counted.splice(0);
  };
  await bed.call("POST", "/endpoints", ENDPOINT);
  bed.service.start();
  // Nothing is known at first.
  assertEquals(await measured(), [0]);
  const portions: readonly (readonly [posted: number, counts: number[]])[] = [
    [4, []],
    [1, [5]],
    [4, []],
    [1, [10]],
  ];
  for (const [posted, counts] of portions) {
    for (let event = 0; event < posted; event++) assertEquals((await bed.post(EVENT)).status, 202);
    assertEquals(await measured(), counts);
  }
  assertEquals((await bed.post(EVENT)).status, 503);
  assertEquals(counted, []);
});

Deno.test("bounds: a fault of the store is no reason to refuse, and none to stop measuring", async () => {
  const faults: StoreError[] = [new StoreError("busy", "it is busy")];
  await using bed = await WebhookBed.open({
    store: (store) =>
      storeWith(store, [], {
        usedBytes: () => {
          const fault = faults.pop();
          return fault === undefined ? Promise.resolve(2) : Promise.reject(fault);
        },
      }),
    parts: { maxStoreBytes: 1 },
  });
  assertEquals((await bed.post(EVENT)).status, 202);
  bed.service.start();
  await noted(bed, "the store is larger than WEBHOOK_STORE_MAX_BYTES");
  assertEquals((await bed.post(EVENT)).status, 503);
});

function problemOf({ status, body, headers }: Seen) {
  return [status, body.code, headers["retry-after"], body["detail"]];
}

/** Advances the clock until the service notes this. */
async function noted(bed: WebhookBed, note: string | undefined): Promise<void> {
  await until(note ?? "no note", async () => {
    bed.clock.advance(1_000);
    return (await bed.service.metrics()).note === note;
  });
}
