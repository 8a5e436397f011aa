import { assertEquals } from "#assert";
import { FakeClock } from "../../harness/fake_clock.ts";
import { eventually, until } from "../../harness/until.ts";
import { retried, WorkflowBed } from "../../harness/workflow_fixture.ts";
import { instead, storeWith } from "../../harness/store_double.ts";
import { claimExecutions } from "../../../src/webhooks/store/operations/execution_claims.ts";
import { commitExecution, renewExecutionClaims } from "../../../src/webhooks/store/operations/executions.ts";
import { releaseClaims, voidClaims } from "../../../src/webhooks/store/operations/claims.ts";
import { StoreError } from "../../../src/webhooks/store/store.ts";

Deno.test("workflow recovery: a crash at any point repeats at most the step that was out, under the same key", async () => {
  for (const point of ["claimed", "before_step", "after_step", "committed"] as const) {
    await using bed = await WorkflowBed.open();
    const text = (url: string) =>
      `workflow: w\nsteps:\n- {name: a, request: {url: "${url}/a"}}\n- {name: b, request: {url: "${url}/b"}}\n` +
      `- {name: c, set: {done: true}}`;
    const id = await bed.begin(text(bed.server.url), {});
    let count = 0;
    const crash = point === "claimed" ? 1 : 2;
    const first = bed.runner({
      atStep(reached) {
        if (reached !== point || ++count !== crash) return;
        // The process is gone: nothing more comes of it.
        return new Promise(() => {});
      },
    });
    first.start();
    await until("the crash", () => count === crash);
    await bed.store.write(voidClaims, { now: bed.clock.now(), which: "all" });
    bed.runner().start();
    const { execution, steps } = await bed.ended(id);
    assertEquals([execution.status, steps.map(({ name }) => name)], ["succeeded", ["a", "b", "c"]]);
    const repeated = point === "after_step" ? [`${id}:b`] : [];
    assertEquals(bed.server.requests.map(({ key }) => key), [`${id}:a`, `${id}:b`, ...repeated], point);
    assertEquals((await bed.events()).length, 1);
  }
});

Deno.test("workflow recovery: a worker that lost the claim ends its step and writes nothing", async () => {
  await using bed = await WorkflowBed.open();
  const gate = Promise.withResolvers<void>();
  bed.server.answer = async ({ path }) => {
    if (path === "/call" && bed.server.requests.length === 1) await gate.promise;
    return new Response("ok");
  };
  const id = await bed.begin(retried(bed.server.url), {});
  const slow = bed.runner();
  slow.start();
  await bed.server.asked();
  await bed.store.write(voidClaims, { now: bed.clock.now(), which: "all" });
  bed.runner().start();
  await bed.ended(id);
  gate.resolve();
  await until("the slow one to end", () => slow.running === 0);
  const { steps } = await bed.find(id);
  await eventually([2, 1, ["succeeded"]], async () => [steps.length, (await bed.events()).length, bed.ends]);
});

Deno.test("workflow recovery: leases are renewed while a step is out", async () => {
  await using bed = await WorkflowBed.open();
  const letGo = bed.server.hold();
  using _opened = { [Symbol.dispose]: letGo };
  const text = `workflow: w\nsteps:\n- {name: call, request: {url: "${bed.server.url}", timeout: 15m}}`;
  const id = await bed.begin(text, {});
  bed.runner().start();
  await bed.server.asked();
  for (let second = 0; second < 120; second += 10) {
    bed.clock.advance(10_000);
    await until(
      "the lease",
      async () => ((await bed.find(id)).execution.leaseUntil ?? 0) === bed.clock.now() + 30_000,
    );
    assertEquals(await bed.store.write(voidClaims, { now: bed.clock.now(), which: "expired" }), 0);
  }
  letGo();
  assertEquals((await bed.ended(id)).execution.status, "succeeded");
});

Deno.test("workflow recovery: no more run at the same time than may; the rest stays queued", async () => {
  await using bed = await WorkflowBed.open();
  const gate = Promise.withResolvers<void>();
  let most = 0;
  let open = 0;
  bed.server.answer = async () => {
    most = Math.max(most, ++open);
    await gate.promise;
    open--;
    return new Response("ok");
  };
  const ids: string[] = [];
  for (let index = 0; index < 12; index++) {
    ids.push(await bed.begin(retried(bed.server.url).replace("workflow: w", `workflow: w${index}`), {}));
  }
  const runner = bed.runner({ maxRunning: 5 });
  runner.start();
  await until("five requests", () => open === 5);
  runner.wake();
  bed.clock.advance(1_000);
  const states = await Promise.all(ids.map(async (id) => (await bed.find(id)).execution.status));
  assertEquals(states.filter((state) => state === "queued").length, 7);
  gate.resolve();
  for (const id of ids) assertEquals((await bed.ended(id)).execution.status, "succeeded");
  assertEquals(most, 5);
});

Deno.test("workflow recovery: stopped, it lets the step end and gives back what is not over", async () => {
  await using bed = await WorkflowBed.open();
  const gate = Promise.withResolvers<void>();
  bed.server.answer = async ({ path }) => {
    if (path === "/slow") await new Promise<void>((resolve) => gate.promise.then(resolve));
    return new Response("ok");
  };
  const text = (path: string) =>
    `workflow: ${path}\nsteps:\n- {name: a, request: {url: "${bed.server.url}/${path}"}}\n- {name: b, set: {x: 1}}`;
  const slow = await bed.begin(text("slow"), {});
  const runner = bed.runner();
  runner.start();
  await bed.server.asked();
  const stopped = runner.stop(10_000);
  await until("the wait for it", () => bed.clock.waiting >= 3);
  bed.clock.advance(10_000);
  await stopped;
  const { execution, steps } = await bed.find(slow);
  assertEquals([execution.status, execution.claimId, execution.dueAt !== undefined, steps], [
    "running",
    undefined,
    true,
    [],
  ]);
  gate.resolve();
  bed.runner().start();
  assertEquals((await bed.ended(slow)).execution.status, "succeeded");
  assertEquals(bed.server.requests.map(({ key }) => key), [`${slow}:a`, `${slow}:a`]);
});

Deno.test("workflow recovery: a store that cannot write for a while loses no result of a step", async () => {
  await using bed = await WorkflowBed.open();
  const id = await bed.begin(retried(bed.server.url), {});
  let refused = 0;
  const commit = instead(commitExecution, (call) => {
    if (bed.server.requests.length !== 1 || refused >= 2) return call();
    refused++;
    return Promise.reject(new StoreError("full", "no room"));
  });
  const store = storeWith(bed.store, [commit]);
  bed.runner({ store }).start();
  await until("two refusals and the end", async () => {
    bed.clock.advance(50);
    return refused === 2 && (await bed.find(id)).execution.status === "succeeded";
  });
  await eventually(1, () => bed.server.requests.length);
});

Deno.test("workflow recovery: before leases that are over are taken back, those of a step that is out are renewed", async () => {
  await using bed = await WorkflowBed.open();
  const letGo = bed.server.hold();
  const id = await bed.begin(retried(bed.server.url), {});
  let isAway = false;
  const renewal = instead(
    renewExecutionClaims,
    (call) => isAway ? Promise.reject(new StoreError("busy", "somebody else writes")) : call(),
  );
  const store = storeWith(bed.store, [renewal]);
  const clock = FakeClock.ofMachine({ of: bed.clock });
  const runner = bed.runner({ store, clock });
  assertEquals(await runner.keepClaims(), true);
  runner.start();
  await bed.server.asked();
  // The lease is over before the timer of its renewal has come.
  clock.aheadMs = 60_000;
  isAway = true;
  assertEquals(await runner.keepClaims(), false);
  isAway = false;
  assertEquals(await runner.keepClaims(), true);
  assertEquals(await bed.store.write(voidClaims, { now: clock.now(), which: "expired" }), 0);
  letGo();
  assertEquals((await bed.ended(id)).execution.status, "succeeded");
  assertEquals(bed.server.requests.length, 1);
});

Deno.test("workflow recovery: claims that could not be renewed are asked for each second from then on", async () => {
  await using bed = await WorkflowBed.open();
  const letGo = bed.server.hold();
  const text = `workflow: w\nsteps:\n- {name: call, request: {url: "${bed.server.url}", timeout: 15m}}`;
  const id = await bed.begin(text, {});
  const askedAt: number[] = [];
  const begin = bed.clock.now();
  let isAway = true;
  const renewal = instead(renewExecutionClaims, (call) => {
    askedAt.push((bed.clock.now() - begin) / 1_000);
    return isAway ? Promise.reject(new StoreError("busy", "it is unavailable")) : call();
  });
  const store = storeWith(bed.store, [renewal]);
  bed.runner({ store }).start();
  await bed.server.asked();
  for (let second = 1; second <= 40; second++) {
    bed.clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
    if (second === 23) isAway = false;
  }
  letGo();
  assertEquals((await bed.ended(id)).execution.status, "succeeded");
  const eachSecond = Array.from({ length: 15 }, (_, index) => 10 + index);
  assertEquals(askedAt, [...eachSecond, 34]);
});

Deno.test("workflow recovery: a step that ends its worker fails after 20 tries, and delays no other", async () => {
  await using bed = await WorkflowBed.open();
  await bed.addEndpoint();
  const text = (name: string) =>
    `workflow: ${name}\nsteps:\n- {name: first, set: {a: 1}}\n- {name: last, request: {url: "${bed.server.url}/${name}"}}`;
  const poison = await bed.begin(text("poison"), {});
  const innocent = [await bed.begin(text("w"), {}), await bed.begin(text("w"), {})];
  let tries = 0;
  let reached = 0;
  const isStuck = async (id: string) =>
    (await bed.find(id)).steps.length === 1 && (id === poison || tries < 3);
  let crashes = 0;
  const work = () =>
    bed.runner({
      async atStep(point, id) {
        if (point !== "before_step" || !await isStuck(id)) return;
        reached++;
        if (id === poison) crashes++;
        // The process is gone, with all that it works on.
        await new Promise(() => {});
      },
    }).start();
  for (; tries < 20; tries++) {
    work();
    await until("the crash", () => crashes > tries);
    const ends = await Promise.all(innocent.map(async (id) => (await bed.find(id)).execution.status));
    // Of three that no worker could finish, one after the other is tried.
    if (tries > 3) assertEquals(ends, ["succeeded", "succeeded"]);
    await bed.store.write(voidClaims, { now: bed.clock.now(), which: "all" });
  }
  bed.runner().start();
  const { execution, steps } = await bed.ended(poison);
  assertEquals([execution.status, execution.error, steps.map(({ name }) => name)], [
    "failed",
    'step "last" did not end in 20 attempts: each process that ran it ended before',
    ["first"],
  ]);
  assertEquals(bed.server.requests.map(({ path }) => path), ["/w", "/w"]);
  assertEquals([(await bed.events()).length, reached >= 20], [3, true]);
});

Deno.test("workflow recovery: an execution whose claim was carried out and not answered runs when the store is back", async () => {
  await using bed = await WorkflowBed.open();
  const id = await bed.begin("workflow: w\nsteps:\n- name: a\n  set: { a: 1 }\n", {});
  let isAway = true;
  let claims = 0;
  const claim = instead(claimExecutions, async (call) => {
    const claimed = await call();
    claims++;
    if (isAway) throw new StoreError("busy", "the answer to the commit is lost");
    return claimed;
  });
  const release = instead(
    releaseClaims,
    (call) => isAway ? Promise.reject(new StoreError("busy", "the store is locked")) : call(),
  );
  const store = storeWith(bed.store, [claim, release]);
  bed.runner({ store }).start();
  await until("the claim", () => claims === 1);
  for (let second = 0; second < 3; second++) {
    bed.clock.advance(1_000);
    await bed.find(id);
  }
  isAway = false;
  await until("the next claim", () => {
    // Less than a lease in all.
    if (bed.clock.now() < 1_700_000_020_000) bed.clock.advance(1_000);
    return claims === 2;
  });
  assertEquals((await bed.ended(id)).execution.status, "succeeded");
});
