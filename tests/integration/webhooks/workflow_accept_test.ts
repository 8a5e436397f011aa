import { assert, assertEquals, assertRejects } from "#assert";
import type { Clock } from "../../../src/base/clock.ts";
import { listEvents } from "../../../src/webhooks/store/operations/events.ts";
import { claimExecutions } from "../../../src/webhooks/store/operations/execution_claims.ts";
import { StoreError } from "../../../src/webhooks/store/store.ts";
import type { WorkflowRunner, WorkflowRunnerOptions } from "../../../src/webhooks/workflows/runner.ts";
import { instead, storeWith } from "../../harness/store_double.ts";
import { eventually, until } from "../../harness/until.ts";
import { WorkflowBed } from "../../harness/workflow_fixture.ts";

const SET = "workflow: w\nsteps:\n- { name: done, set: { done: true } }";

function calling(bed: WorkflowBed): string {
  return `workflow: calling\nsteps:\n- { name: call, request: { url: "${bed.server.url}/{{ input.name }}" } }`;
}

/** A runner that has run an execution, and so has found that no other waits. */
async function idleRunner(
  bed: WorkflowBed,
  options: Partial<WorkflowRunnerOptions> = {},
): Promise<WorkflowRunner> {
  const runner = startedRunner(bed, options);
  await bed.ended((await bed.accept(runner, SET))?.id ?? "");
  return runner;
}

function startedRunner(bed: WorkflowBed, options: Partial<WorkflowRunnerOptions> = {}): WorkflowRunner {
  const runner = bed.runner(options);
  runner.start();
  return runner;
}

Deno.test("workflow accept: where there is room an execution begins with its acceptance, without its own claim", async () => {
  await using bed = await WorkflowBed.open();
  let claims = 0;
  const counted = instead(claimExecutions, (call) => {
    claims++;
    return call();
  });
  const runner = startedRunner(bed, { store: storeWith(bed.store, [counted]) });
  const accepted = [];
  // The runner may not have looked yet, and then claims the first.
  for (let index = 0; index < 10; index++) {
    const one = await bed.accept(runner, SET);
    assert(one !== undefined);
    accepted.push(one);
    const { execution } = await bed.ended(one.id);
    assertEquals([execution.status, execution.startedAt], ["succeeded", bed.clock.now()]);
  }
  assertEquals(accepted.slice(1).map(({ status }) => status), Array(9).fill("running"));
  assertEquals([claims <= 1, bed.ends.length, runner.running], [true, 10, 0]);
});

Deno.test("workflow accept: what waits begins before what comes later", async () => {
  await using bed = await WorkflowBed.open();
  const gates = new Map<string, PromiseWithResolvers<void>>();
  bed.server.answer = async ({ path }) => {
    const gate = Promise.withResolvers<void>();
    gates.set(path.slice(1), gate);
    await gate.promise;
    return Response.json({});
  };
  const runner = await idleRunner(bed, { maxRunning: 1 });
  const accept = async (name: string) => {
    return await bed.accept(runner, calling(bed), { input: JSON.stringify({ name }) });
  };
  const names = ["a", "b", "c", "d"];
  const states = [];
  for (const name of names.slice(0, 3)) states.push((await accept(name))?.status);
  assertEquals(states, ["running", "queued", "queued"]);
  for (const [index, name] of names.entries()) {
    await until(`the request of ${name}`, () => gates.has(name));
    await eventually(index + 1, () => bed.server.requests.length);
    // A place is free from here on, and two wait for it.
    gates.get(name)?.resolve();
    if (index === 0) await accept("d");
  }
  await eventually([5, names], () => [bed.ends.length, bed.server.requests.map(({ path }) => path.slice(1))]);
});

Deno.test("workflow accept: a large input waits for its turn", async () => {
  await using bed = await WorkflowBed.open();
  const runner = await idleRunner(bed);
  const large = await bed.accept(runner, SET, { input: JSON.stringify({ x: "x".repeat(65_536) }) });
  assertEquals(large?.status, "queued");
  assertEquals((await bed.ended(large?.id ?? "")).execution.status, "succeeded");
});

Deno.test("workflow accept: a call that was accepted before takes no place", async () => {
  await using bed = await WorkflowBed.open();
  const runner = await idleRunner(bed, { maxRunning: 1 });
  const row = { scope: "s", key: "k", acceptedAt: 0, bodyHash: "h", resultId: "r" };
  for (let repeated = 0; repeated < 3; repeated++) {
    const again = await bed.accept(runner, SET, {
      write: () => Promise.resolve({ kind: "replayed", row } as const),
    });
    assertEquals(again, undefined);
  }
  const next = await bed.accept(runner, SET);
  assertEquals(next?.status, "running");
  assertEquals((await bed.ended(next?.id ?? "")).execution.status, "succeeded");
});

Deno.test("workflow accept: where the write fails after its commit, the execution is released and runs", async () => {
  await using bed = await WorkflowBed.open();
  const runner = await idleRunner(bed, { maxRunning: 1 });
  let lost = "";
  await assertRejects(
    () =>
      bed.accept(runner, SET, {
        write: async (call) => {
          const acceptance = await call();
          if (acceptance.kind === "new") lost = acceptance.value.id;
          throw new StoreError("failed", "the connection ended during the commit");
        },
      }),
    "the connection ended",
  );
  assertEquals([(await bed.find(lost)).execution.status, runner.running], ["running", 0]);
  assertEquals((await bed.accept(runner, SET))?.status, "queued");
  // The next look releases it.
  bed.clock.advance(1_000);
  const { execution } = await bed.ended(lost);
  assertEquals([execution.status, execution.startedAt], ["succeeded", bed.clock.now() - 1_000]);
});

Deno.test("workflow accept: the event of an end has the time of the end, by which it is found", async () => {
  await using bed = await WorkflowBed.open();
  let ticks = 0;
  const clock: Clock = {
    now: () => bed.clock.now() + ticks++,
    elapsed: () => bed.clock.elapsed(),
    after: (...timer) => bed.clock.after(...timer),
  };
  const runner = startedRunner(bed, { clock });
  const { execution } = await bed.ended((await bed.accept(runner, SET))?.id ?? "");
  const { items } = await bed.store.read(listEvents, { limit: 2 });
  assertEquals(items.map(({ createdAt }) => createdAt), [execution.finishedAt]);
});

Deno.test("workflow accept: a runner that stops begins nothing", async () => {
  await using bed = await WorkflowBed.open();
  const runner = await idleRunner(bed);
  await runner.stop(0);
  const accepted = await bed.accept(runner, SET);
  assertEquals([accepted?.status, runner.running], ["queued", 0]);
});
