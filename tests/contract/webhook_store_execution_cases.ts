import { assert, assertEquals } from "#assert";
import type { ExecutionStep } from "../../src/webhooks/model/records.ts";
import { DAY, event, execution, newId, NOW, type StoreCases, type TestStore } from "./webhook_store_bed.ts";
import type { ExecutionChange } from "../../src/webhooks/model/completion_event.ts";
import { QUIET } from "../harness/sqlite_fixture.ts";
import {
  acceptEvent,
  acceptExecution,
  saveWorkflowVersion,
} from "../../src/webhooks/store/operations/accept.ts";
import { releaseClaims, voidClaims } from "../../src/webhooks/store/operations/claims.ts";
import { listDeliveries } from "../../src/webhooks/store/operations/deliveries.ts";
import { findEvent } from "../../src/webhooks/store/operations/events.ts";
import {
  type ClaimedExecution,
  claimExecutions,
  dueExecutions,
  findWorkflowVersion,
  type QueueClaim,
} from "../../src/webhooks/store/operations/execution_claims.ts";
import {
  cancelExecution,
  commitExecution,
  type ExecutionCommit,
  findExecution,
  listExecutions,
  renewExecutionClaims,
} from "../../src/webhooks/store/operations/executions.ts";

const RUNNING: ExecutionChange = {
  status: "running",
  stepAttempts: 0,
  deadlineAt: NOW + DAY,
  dueAt: NOW + 2,
};

const STEP: ExecutionStep = {
  index: 0,
  name: "enrich",
  kind: "request",
  status: "succeeded",
  attempts: 2,
  startedAt: NOW + 1,
  finishedAt: NOW + 2,
  result: `{"n":12345678901234567890}`,
};

/** Running workflows. */
export const EXECUTION_CASES: StoreCases = {
  "a step that is written again, because its result was lost, is written once": async (store) => {
    const [claimed] = await started(store);
    assert(claimed !== undefined);
    const work = { step: STEP, change: RUNNING, keepClaim: true };
    assertEquals(await commit(store, claimed, work), { cancelRequested: false });
    assertEquals(await commit(store, claimed, work), { cancelRequested: false });
    assertEquals((await store.read(findExecution, claimed.execution.id))?.steps, [STEP]);
    const { executions } = await store.metrics(NOW);
    assertEquals([executions.queued, executions.running], [0, 1]);
  },

  "an execution is claimed by one, with what was done of it": async (store) => {
    const [claimed] = await started(store);
    assert(claimed !== undefined);
    const { execution: before, claimId } = claimed;
    assertEquals([before.claimId, before.leaseUntil, claimed.steps], [claimId, NOW + 60_000, []]);
    assertEquals(await claimAt(await store.another(), NOW + DAY), []);
    const kept = await commit(store, claimed, { step: STEP, change: RUNNING, keepClaim: true });
    assertEquals(kept, { cancelRequested: false });
    const step = { ...STEP, index: 1, name: "result", kind: "set", status: "failed", error: "no" } as const;
    assertEquals(await commit(store, claimed, { step, change: { ...RUNNING, stepAttempts: 1 } }), kept);
    const { claimId: _, leaseUntil: __, ...rest } = before;
    const after = { ...rest, ...RUNNING, stepAttempts: 1 };
    assertEquals(await store.read(findExecution, before.id), { execution: after, steps: [STEP, step] });
    assertEquals(await claimAt(store, NOW + 1), []);
    assertEquals((await claimAt(store, NOW + 2))[0]?.steps, [STEP, step]);
  },

  "a claim starts an execution, once": async (store) => {
    await store.saveVersion();
    await store.write(acceptExecution, execution(), { now: NOW });
    for (const later of [3, 6]) {
      const [claimed] = await claimAt(store, NOW + later);
      assertEquals([claimed?.execution.status, claimed?.execution.startedAt], ["running", NOW + 3]);
      const { queued, running } = (await store.metrics(NOW)).executions;
      assertEquals([queued, running], [0, 1]);
      await store.write(voidClaims, { now: NOW + later, which: "all" });
    }
  },

  "a list of executions holds neither input nor results, and no large output": async (store) => {
    const texts = ['"small"', `"${"x".repeat(16_382)}"`, `"${"x".repeat(16_383)}"`, `"${"ä".repeat(8_192)}"`];
    for (const output of texts) {
      const [claimed] = await started(store);
      assert(claimed !== undefined);
      const change = { status: "succeeded", stepAttempts: 0, finishedAt: NOW + 3, output } as const;
      await commit(store, claimed, { step: STEP, change });
    }
    const { items } = await store.read(listExecutions, { limit: 10 });
    assertEquals(
      items.map(({ input, output, steps }) => ({ input, output, steps })).reverse(),
      texts.map((output, index) => ({
        input: "{}",
        output: index < 2 ? output : undefined,
        steps: [STEP].map(({ result: _, ...step }) => step),
      })),
    );
  },

  "each trigger of a workflow has a queue of executions at each stage": async (store) => {
    await store.saveVersion();
    await store.write(saveWorkflowVersion, { id: "v2", workflow: "other", text: "workflow: other\n" });
    const queues = [["order-intake", "t1"], ["order-intake", "t2"], ["other", "t1"]] as const;
    for (const [workflow, triggerId] of queues) {
      for (const at of [0, 5]) {
        const versionId = workflow === "other" ? "v2" : "v1";
        await store.write(acceptExecution, execution({ workflow, triggerId, versionId }), { now: NOW + at });
      }
    }
    const due = async (now: number) =>
      (await store.read(dueExecutions, now)).map(({ workflow, triggerId, stage, dueAt }) =>
        `${workflow} ${triggerId} ${stage} ${dueAt - NOW}`
      ).sort();
    assertEquals(await due(NOW - 1), []);
    const whole = ["order-intake t1 new 0", "order-intake t2 new 0", "other t1 new 0"];
    assertEquals(await due(NOW), whole);
    const claimOf = async (queue: Partial<QueueClaim>, maxBytes = 99) => {
      const all = { workflow: "order-intake", triggerId: "t2", stage: "new", expiredClaims: 0 } as const;
      const queues = [{ ...all, max: 9, maxBytes: 99, ...queue }];
      return await store.write(claimExecutions, {
        now: NOW + 9,
        leaseUntil: NOW + 60_000,
        newClaimId: newId,
        queues,
        maxBytes,
        logger: QUIET,
      });
    };
    const [first, ...none] = await claimOf({ max: 1 });
    assert(first !== undefined);
    assertEquals([first.execution.createdAt, first.execution.triggerId, none], [NOW, "t2", []]);
    assertEquals(await due(NOW + 9), ["order-intake t1 new 0", "order-intake t2 new 5", "other t1 new 0"]);
    await commit(store, first, { step: STEP, change: { ...RUNNING, dueAt: NOW + 7 } });
    const begun = "order-intake t2 begun 7";
    assertEquals(await due(NOW + 9), [whole[0], begun, "order-intake t2 new 5", whole[2]]);
    assertEquals(await claimOf({ stage: "voided", expiredClaims: 1 }), []);
    // An input of 26 bytes and a result of as many.
    const bytes = 52;
    assertEquals(await claimOf({ stage: "begun", maxBytes: bytes - 1 }), []);
    assertEquals(await claimOf({ stage: "begun" }, bytes - 1), []);
    const [again] = await claimOf({ stage: "begun", maxBytes: bytes });
    assertEquals([again?.execution.id, again?.bytes], [first.execution.id, bytes]);
    await store.write(voidClaims, { now: NOW + 8, which: "all" });
    assertEquals(await due(NOW + 9), [
      whole[0],
      "order-intake t2 new 5",
      "order-intake t2 voided 7",
      whole[2],
    ]);
    assertEquals(
      (await claimOf({ stage: "voided", expiredClaims: 1 })).map(({ queue }) => queue.expiredClaims),
      [1],
    );
  },

  "executions of several queues are claimed as far as their bytes fit": async (store) => {
    await store.saveVersion();
    const input = (length: number) => `{"x":"${"x".repeat(length - 8)}"}`;
    for (
      const [triggerId, length] of [["a", 30], ["a", 60], ["a", 10], ["b", 50], ["b", 9_000_000]] as const
    ) {
      await store.write(acceptExecution, execution({ triggerId, input: input(length) }), { now: NOW });
    }
    const claimed = async (maxBytes: number) => {
      const queue = {
        workflow: "order-intake",
        stage: "new",
        expiredClaims: 0,
        max: 9,
        maxBytes: 2 ** 30,
      } as const;
      const queues = [{ ...queue, triggerId: "a" }, { ...queue, triggerId: "b" }];
      const options = {
        now: NOW,
        leaseUntil: NOW + 60_000,
        newClaimId: newId,
        queues,
        maxBytes,
        logger: QUIET,
      };
      const claims = await store.write(claimExecutions, options);
      return claims.map(({ bytes, execution: { triggerId } }) => `${triggerId} ${bytes}`);
    };
    assertEquals(await claimed(89), ["a 30", "b 50"]);
    assertEquals(await claimed(70), ["a 60", "a 10"]);
    // More counts for no more than this, so that it can be claimed at all.
    assertEquals(await claimed(8 * 2 ** 20 - 1), []);
    assertEquals(await claimed(8 * 2 ** 20), ["b 8388608"]);
  },

  "what an execution waits for is read as it was written, until its step is over": async (store) => {
    const [claimed] = await started(store);
    assert(claimed !== undefined);
    const { id, versionId } = claimed.execution;
    await commit(store, claimed, {
      change: { ...RUNNING, stepAttempts: 1, error: "the server responded with 503" },
    });
    const found = (await store.read(findExecution, id))?.execution;
    assertEquals([found?.status, found?.stepAttempts, found?.dueAt, found?.error], [
      "running",
      1,
      NOW + 2,
      "the server responded with 503",
    ]);
    const [again] = await claimAt(store, NOW + 2);
    assert(again !== undefined);
    await commit(store, again, { step: STEP, change: RUNNING });
    assertEquals((await store.read(findExecution, id))?.execution.error, undefined);
    assertEquals(await store.read(findWorkflowVersion, versionId), claimed.version);
    assertEquals(await store.read(findWorkflowVersion, "none"), undefined);
  },

  "two that claim at the same time get each execution once": async (store) => {
    await started(store, 40, 0);
    const other = await store.another();
    const groups = await Promise.all(
      Array.from({ length: 12 }, (_, index) => claimAt(index % 2 === 0 ? store : other, NOW, 4)),
    );
    const ids = groups.flat().map((claimed) => claimed.execution.id);
    assertEquals([ids.length, new Set(ids).size], [40, 40]);
  },

  "those that began come first, then those due longest": async (store) => {
    await store.saveVersion();
    const accept = async (ids: readonly string[]) => {
      for (const id of ids) {
        const now = id.endsWith("late") ? NOW + 9 : NOW;
        await store.write(acceptExecution, execution({ id, input: "{}" }), { now });
      }
    };
    await accept(["began late", "began early"]);
    for (const claimed of await claimAt(store, NOW + 9)) {
      await commit(store, claimed, { change: { ...RUNNING, dueAt: claimed.execution.createdAt + 100 } });
    }
    await accept(["late", "early"]);
    assertEquals((await claimAt(store, NOW + 200, 3)).map((claimed) => claimed.execution.id), [
      "began early",
      "began late",
      "early",
    ]);
  },

  "a worker that lost a claim of an execution changes nothing": async (store) => {
    const [stale] = await started(store);
    assert(stale !== undefined);
    assertEquals(await store.write(voidClaims, { now: NOW, which: "all" }), 1);
    const [taken] = await claimAt(store, NOW);
    const before = await store.read(findExecution, stale.execution.id);
    const event = await finalEvent(store);
    assertEquals(await commit(store, stale, { step: STEP, change: RUNNING, event }), undefined);
    assertEquals(
      await store.write(renewExecutionClaims, [stale.claimId, taken?.claimId ?? ""], NOW + 60_000),
      [
        taken?.claimId ?? "",
      ],
    );
    assertEquals(await store.read(findExecution, stale.execution.id), before);
    assertEquals(await store.read(findEvent, event.id), undefined);
  },

  "claims of executions last until their lease ends, or until they are given back": async (store) => {
    const [one, two] = await started(store, 2);
    assert(one !== undefined && two !== undefined);
    await commit(store, one, { step: STEP, change: RUNNING, keepClaim: true });
    await store.write(renewExecutionClaims, [two.claimId], NOW + 90_000);
    assertEquals(await store.write(voidClaims, { now: NOW + 60_000, which: "expired" }), 0);
    assertEquals(await store.write(voidClaims, { now: NOW + 60_001, which: "expired" }), 1);
    const [again, ...more] = await claimAt(store, NOW + 60_001);
    assertEquals([again?.execution.id, again?.steps, more], [one.execution.id, [STEP], []]);
    await store.write(releaseClaims, [two.claimId], NOW);
    assertEquals((await claimAt(store, NOW)).map((claimed) => claimed.execution.id), [
      two.execution.id,
    ]);
  },

  "those whose claims were void come last, and of suspects one at a time": async (store) => {
    const group = await started(store, 4);
    const [one, two, three, four] = group.map((claimed) => claimed.execution.id);
    const voided = async (ids: readonly (string | undefined)[]) => {
      await store.write(voidClaims, { now: NOW, which: "all" });
      const claims: ClaimedExecution[] = [];
      for (let round = 0; round < 9; round++) claims.push(...await claimAt(store, NOW));
      const others = claims.filter((claimed) => !ids.includes(claimed.execution.id));
      await store.write(releaseClaims, others.map(({ claimId }) => claimId), NOW);
    };
    await voided([one, two]);
    await voided([one, two]);
    await voided([]);
    // Three void claims of the first two, one of the others; and one that was never claimed.
    const fresh = execution();
    await store.write(acceptExecution, fresh, { now: NOW + 5 });
    const seen = (claims: readonly ClaimedExecution[]) =>
      claims.map(({ execution, queue }) => [execution.id, queue.expiredClaims]);
    const first = await claimAt(store, NOW + 5);
    assertEquals(seen(first), [[fresh.id, 0], [three, 1], [four, 1], [one, 3]]);
    assertEquals(await claimAt(await store.another(), NOW + 5), [], "one suspect at a time");
    const suspect = first[3];
    assert(suspect !== undefined);
    await commit(store, suspect, { change: { ...RUNNING, dueAt: NOW + 7 } });
    assertEquals(seen(await claimAt(store, NOW + 5)), [[two, 3]]);
    assertEquals(
      seen(await claimAt(store, NOW + 7)),
      [[one, 0]],
      "what is written counts from the beginning",
    );
  },

  "the end of an execution and its event are one": async (store) => {
    const to = await store.addEndpoint({ events: ["workflow.*"] });
    const [claimed] = await started(store);
    assert(claimed !== undefined);
    const event = await finalEvent(store);
    const change = { status: "succeeded", stepAttempts: 0, finishedAt: NOW + 9, output: "[1.0]" } as const;
    await commit(store, claimed, { step: STEP, change: RUNNING, keepClaim: true });
    // Even where the claim was to be kept: no worker has what has ended.
    await commit(store, claimed, { change, event, keepClaim: true });
    const { execution: after } = await store.read(findExecution, claimed.execution.id) ?? {};
    const { claimId: _, leaseUntil: __, dueAt: ___, ...rest } = claimed.execution;
    assertEquals(after, { ...rest, ...change, deadlineAt: NOW + DAY });
    assertEquals(await store.read(findEvent, event.id), { ...event, createdAt: NOW + 2 });
    assertEquals((await store.read(listDeliveries, { limit: 9 })).items.map(({ endpointId }) => endpointId), [
      to.id,
    ]);
    assertEquals(await claimAt(store, NOW + DAY), []);
    assertEquals(await store.write(voidClaims, { now: NOW + DAY, which: "all" }), 0);
  },

  "an end whose event cannot be written undoes all that comes with it": async (store) => {
    const [claimed] = await started(store);
    assert(claimed !== undefined);
    await commit(store, claimed, { step: STEP, change: RUNNING, keepClaim: true });
    await store.addEndpoint();
    const event = await finalEvent(store);
    await store.write(acceptEvent, event, { now: NOW });
    const change = { status: "failed", stepAttempts: 0, finishedAt: NOW + 9, error: "no" } as const;
    const step = { ...STEP, index: 1 };
    const failure = await commit(store, claimed, { step, change, event }).catch((error) => error);
    assert(failure instanceof Error);
    const found = await store.read(findExecution, claimed.execution.id);
    assertEquals([found?.execution.status, found?.steps], ["running", [STEP]]);
    assertEquals((await store.read(listDeliveries, { limit: 10 })).items.length, 1);
  },

  "cancelling ends a wait, is heard of at the next commit, and not after the end": async (store) => {
    const [claimed, other] = await started(store, 2);
    assert(claimed !== undefined && other !== undefined);
    const { id } = claimed.execution;
    await commit(store, claimed, { change: { ...RUNNING, dueAt: NOW + DAY } });
    assertEquals(await store.write(cancelExecution, newId(), NOW), undefined);
    assertEquals(await store.write(cancelExecution, id, NOW + 10), true);
    const [again] = await claimAt(store, NOW + 10);
    assertEquals([again?.execution.id, again?.execution.cancelRequested], [id, true]);
    assert(again !== undefined);
    const change = { status: "cancelled", stepAttempts: 0, finishedAt: NOW + 11 } as const;
    assertEquals(await commit(store, again, { change }), { cancelRequested: true });
    assertEquals(await store.write(cancelExecution, id, NOW + 12), false);

    // Asked for while someone works on it: it does not wait for what that work asks for.
    await store.write(cancelExecution, other.execution.id, NOW + 20);
    const wait = { ...RUNNING, dueAt: NOW + DAY };
    assertEquals(await commit(store, other, { change: wait }), { cancelRequested: true });
    assertEquals((await claimAt(store, NOW + 20)).length, 1);
  },
};

async function started(store: TestStore, count = 1, max = count): Promise<readonly ClaimedExecution[]> {
  await store.saveVersion();
  for (let index = 0; index < count; index++) await store.write(acceptExecution, execution(), { now: NOW });
  return max === 0 ? [] : await claimAt(store, NOW, max);
}

function claimAt(store: TestStore, now: number, max = 10): Promise<readonly ClaimedExecution[]> {
  return store.claimRuns({ now, max });
}

function commit(
  store: TestStore,
  claimed: ClaimedExecution,
  part: Partial<ExecutionCommit> & { readonly change: ExecutionChange },
) {
  const { claimId, execution: { id: executionId } } = claimed;
  return store.write(commitExecution, { executionId, claimId, now: NOW + 2, keepClaim: false, ...part });
}

async function finalEvent(store: TestStore) {
  const added = event({ kind: "workflow.execution.completed" });
  assertEquals(await store.read(findEvent, added.id), undefined);
  return added;
}
