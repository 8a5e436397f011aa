import { assert, assertEquals } from "#assert";
import {
  ACKNOWLEDGED,
  DAY,
  event,
  execution,
  newId,
  NOW,
  retryAt,
  type StoreCases,
  type TestStore,
} from "./webhook_store_bed.ts";
import { acceptEvent, acceptExecution, findIdempotency } from "../../src/webhooks/store/operations/accept.ts";
import { findDelivery, listDeliveries } from "../../src/webhooks/store/operations/deliveries.ts";
import { findEvent, listEvents } from "../../src/webhooks/store/operations/events.ts";
import { releaseClaims } from "../../src/webhooks/store/operations/claims.ts";
import {
  commitExecution,
  findExecution,
  listExecutions,
  renewExecutionClaims,
} from "../../src/webhooks/store/operations/executions.ts";
import { StoreError } from "../../src/webhooks/store/store.ts";

/** Texts that are more than their letters somewhere on the way into a database. */
const TEXTS = [
  "",
  "NULL",
  "null",
  "{a,b}",
  '"',
  "\\",
  "\\x41",
  "'",
  " a ",
  "a,b",
  "\n\t",
  "é🙂",
  "?",
  "$1",
  "a\0b",
];
const STORED = TEXTS.map((text) => text.replaceAll("\0", "\uFFFD"));

const outcomes = (settled: readonly PromiseSettledResult<unknown>[]) =>
  settled.map((one) => one.status === "fulfilled" ? one.value : one.reason instanceof StoreError);

/** Calls that arrive together, and so may share a transaction. */
export const GROUP_CASES: StoreCases = {
  "of many at the same time with few keys each key is accepted once, and each call without one": async (
    store,
  ) => {
    await store.saveVersion();
    const to = await store.addEndpoint();
    const idempotency = (index: number) =>
      index % 4 === 3 ? undefined : { scope: "admin", key: `k${index % 4}`, bodyHash: `h${index}` };
    const indexes = Array.from({ length: 40 }, (_, index) => index);
    const accepted = await Promise.all([
      ...indexes.map(async (index) => {
        const options = { now: NOW, idempotency: idempotency(index) };
        const answer = await store.write(acceptExecution, execution(), options);
        return answer.kind === "new" ? answer.value.id : answer.row.resultId;
      }),
    ]);
    const { items } = await store.read(listExecutions, { limit: 100 });
    assertEquals(new Set(accepted), new Set(items.map(({ id }) => id)));
    assertEquals(items.length, 13);
    const events = await Promise.all(indexes.map(async (index) => {
      const options = { now: NOW, idempotency: { scope: "events", key: `k${index % 4}`, bodyHash: "h" } };
      const added = event();
      const answer = await store.write(acceptEvent, added, options);
      if (answer.kind === "new") assertEquals(answer.value, { endpointIds: [to.id] });
      else assertEquals(answer.row.deliveries, 1);
      return answer.kind === "new" ? added.id : answer.row.resultId;
    }));
    const stored = (await store.read(listEvents, { limit: 100 })).items.map(({ id }) => id);
    assertEquals([new Set(events), stored.length], [new Set(stored), 4]);
    assertEquals((await store.metrics(NOW)).deliveries.attempting, 4);
  },

  "old keys, live keys and new ones may come together": async (store) => {
    await store.saveVersion();
    const add = async (key: string, now: number) => {
      const idempotency = { scope: "s", key, bodyHash: "h" };
      return (await store.write(acceptExecution, execution(), { now, idempotency })).kind;
    };
    assertEquals([await add("old", NOW), await add("live", NOW + 1)], ["new", "new"]);
    const now = NOW + DAY;
    const kinds = await Promise.all(
      ["old", "live", "fresh", "old", "live", "fresh"].map((key) => add(key, now)),
    );
    assertEquals(kinds, ["new", "replayed", "new", "replayed", "replayed", "replayed"]);
    const found = await Promise.all(
      ["old", "live", "fresh", "none"].map((key) => store.read(findIdempotency, "s", key, now)),
    );
    assertEquals(found.map((row) => row?.acceptedAt), [now, NOW + 1, now, undefined]);
    const later = await Promise.all(
      [now, now + DAY].map((at) => store.read(findIdempotency, "s", "old", at)),
    );
    assertEquals(later.map((row) => row !== undefined), [true, false]);
  },

  "an execution may be accepted with a claim, and runs under it; a repeated call leaves none": async (
    store,
  ) => {
    await store.saveVersion();
    const accept = async (claimId?: string, key?: string) => {
      const claim = claimId === undefined ? undefined : { id: claimId, leaseUntil: NOW + 60_000 };
      const idempotency = key === undefined ? undefined : { scope: "s", key, bodyHash: "h" };
      const answer = await store.write(acceptExecution, execution({ claim }), { now: NOW, idempotency });
      return answer.kind === "new" ? answer.value : undefined;
    };
    const accepted = await Promise.all([
      ...[accept(), accept("c1"), accept("c2", "k"), accept("c3", "k"), accept("c4", "k")],
      ...[accept(undefined, "other"), accept("c5", "other")],
    ]);
    const found = accepted.filter((one) => one !== undefined);
    for (const one of found) {
      assertEquals((await store.read(findExecution, one.id))?.execution, one);
      const isBegun = one.claimId !== undefined;
      assertEquals([one.status, one.startedAt === NOW], isBegun ? ["running", true] : ["queued", false]);
    }
    const held = found.flatMap(({ claimId }) => claimId ?? []);
    const { queued, running } = (await store.metrics(NOW)).executions;
    assertEquals([queued + running, running], [4, held.length]);
    const all = ["c1", "c2", "c3", "c4", "c5"];
    assertEquals((await store.write(renewExecutionClaims, all, NOW + 60_000)).toSorted(), held.toSorted());
    assertEquals([held.includes("c1"), held.length >= 2], [true, true]);
    assertEquals((await store.claimRuns({ now: NOW })).length, queued);
    await store.write(releaseClaims, held, NOW + 1);
    assertEquals((await store.claimRuns({ now: NOW + 1 })).length, held.length);
  },

  "an event that cannot be written among many fails by itself": async (store) => {
    const to = await store.addEndpoint();
    const known = await store.addEvent();
    const added = [event(), known, event(), event({ kind: "other.kind" })];
    const written = await Promise.allSettled(added.map((one) => store.write(acceptEvent, one, { now: NOW })));
    const reached = { kind: "new", value: { endpointIds: [to.id] } };
    assertEquals(outcomes(written), [reached, true, reached, reached]);
    const { items } = await store.read(listDeliveries, { limit: 10 });
    assertEquals(items.map(({ eventId, event }) => `${eventId} ${event}`).toSorted(), [
      ...[...added.slice(2), added[0] ?? known, known].map(({ id, kind }) => `${id} ${kind}`).toSorted(),
    ]);
  },

  "attempts end together, each with its own result": async (store) => {
    const to = await store.addEndpoint();
    for (let index = 0; index < 6; index++) await store.addEvent();
    const claims = await store.claim([to]);
    const [lost, twice, ...others] = claims;
    assert(lost !== undefined && twice !== undefined);
    const stale = { ...lost, claimId: newId() };
    const failure = { result: "failed", finishedAt: NOW + 5, status: 500, errorKind: "status" } as const;
    const finished = await Promise.all([
      store.finish(stale, ACKNOWLEDGED),
      store.finish(twice, ACKNOWLEDGED, { result: "acknowledged", finishedAt: NOW + 5, status: 200 }),
      store.finish(twice, retryAt(NOW + 30_000)),
      ...others.map((one, index) =>
        index === 0
          ? store.finish(one)
          : store.finish(one, retryAt(NOW + index), { ...failure, error: `e${index}` })
      ),
    ]);
    assertEquals(finished, [false, true, false, true, true, true, true]);
    const read = await Promise.all(claims.map(({ delivery: { id } }) => store.read(findDelivery, id)));
    assertEquals(
      read.map((one) => [one?.delivery.state, one?.delivery.dueAt, one?.attempts.map(({ error }) => error)]),
      [
        ["attempting", NOW, [undefined]],
        ["acknowledged", undefined, [undefined]],
        ["attempting", NOW, [undefined]],
        ...[1, 2, 3].map((index) => ["retrying" as const, NOW + index, [`e${index}`]]),
      ],
    );
    const deliveries = { attempting: 2, retrying: 3, acknowledged: 1, failed: 0 };
    assertEquals((await store.metrics(NOW)).deliveries, deliveries);
  },

  "executions are committed together, each with its own step and event": async (store) => {
    await store.saveVersion();
    await store.addEndpoint();
    const known = await store.addEvent();
    for (let index = 0; index < 5; index++) await store.write(acceptExecution, execution(), { now: NOW });
    const claims = await store.claimRuns();
    const step = { index: 0, name: "s", kind: "set", status: "succeeded", attempts: 1 } as const;
    const commit = (index: number, event = false, claimId = claims[index]?.claimId ?? "") => {
      const times = { startedAt: NOW, finishedAt: NOW + index };
      return store.write(commitExecution, {
        executionId: claims[index]?.execution.id ?? "",
        claimId,
        now: NOW,
        keepClaim: true,
        step: { ...step, ...times, result: `{"n":${index}}` },
        ...event || index > 2
          ? {
            change: { status: "succeeded", stepAttempts: 0, finishedAt: NOW + index, output: "{}" },
            event: { id: index === 4 ? known.id : newId(), kind: "k", body: new Uint8Array([index]) },
          }
          : { change: { status: "running", stepAttempts: index, dueAt: NOW } },
      });
    };
    const written = await Promise.allSettled([
      ...[commit(0), commit(2, false, newId()), commit(3), commit(4)],
    ]);
    const going = { cancelRequested: false };
    assertEquals(outcomes(written), [going, undefined, going, true]);
    assertEquals(await Promise.all([commit(1), commit(1, true)]), [going, going]);
    const read = await Promise.all(claims.map(({ execution: { id } }) => store.read(findExecution, id)));
    assertEquals(
      read.map((one) => [one?.execution.status, one?.execution.stepAttempts, one?.steps[0]?.result]),
      [
        ...[["running", 0, `{"n":0}`], ["succeeded", 0, `{"n":1}`], ["running", 0, undefined]],
        ...[["succeeded", 0, `{"n":3}`], ["running", 0, undefined]],
      ],
    );
    const { executions, deliveries } = await store.metrics(NOW);
    assertEquals([executions.queued, executions.running, executions.succeeded], [0, 3, 2]);
    assertEquals(deliveries.attempting, 3);
  },

  "every text comes back as it was, whatever comes with it": async (store) => {
    await store.saveVersion();
    const added = await Promise.all(TEXTS.map(async (text, index) => {
      const idempotency = { scope: `s${index}`, key: text, bodyHash: text };
      const body = new TextEncoder().encode(text);
      const [one, two] = [execution({ input: text, triggerId: text }), event({ body })];
      await Promise.all([
        store.write(acceptExecution, one, { now: NOW, idempotency }),
        store.write(acceptEvent, two, { now: NOW }),
      ]);
      return { executionId: one.id, eventId: two.id };
    }));
    assertEquals(
      await Promise.all(added.map(async ({ executionId, eventId }, index) => {
        const found = await store.read(findExecution, executionId);
        const { body } = await store.read(findEvent, eventId) ?? {};
        const row = await store.read(findIdempotency, `s${index}`, TEXTS[index] ?? "", NOW);
        const { input, triggerId } = found?.execution ?? {};
        return [input, triggerId, new TextDecoder().decode(body), row?.key, row?.bodyHash];
      })),
      TEXTS.map((text, index) => {
        const stored = STORED[index];
        return [stored, stored, text, stored, stored];
      }),
    );
    assertEquals(await responsesOf(store), STORED);
  },
};

/** The responses of attempts that end together, after they were stored. */
async function responsesOf(store: TestStore): Promise<readonly (string | undefined)[]> {
  const to = await store.addEndpoint({ events: ["only.these"] });
  for (let index = 0; index < TEXTS.length; index++) await store.addEvent({ kind: "only.these" });
  const claims = await store.claim([to], { max: TEXTS.length });
  await Promise.all(claims.map((claimed, index) => {
    const outcome = { result: "acknowledged", finishedAt: NOW, status: 200, response: TEXTS[index] } as const;
    return store.finish(claimed, ACKNOWLEDGED, outcome);
  }));
  const read = await Promise.all(claims.map(({ delivery: { id } }) => store.read(findDelivery, id)));
  return read.map((one) => one?.attempts[0]?.response);
}
