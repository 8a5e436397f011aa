import { assert, assertEquals } from "#assert";
import { JsonText } from "../../../src/base/json_text.ts";
import { WorkflowScope } from "../../../src/webhooks/workflows/scope.ts";
import { until } from "../../harness/until.ts";
import { WorkflowBed } from "../../harness/workflow_fixture.ts";

const HEALTHY = "workflow: healthy\nsteps:\n- {name: done, set: {done: true}}";

function hanging(bed: WorkflowBed, body = "{}"): string {
  return `workflow: hanging\nsteps:
- name: call
  request: { method: POST, url: "${bed.server.url}/", body: "${body}", timeout: 10s }
  retry: { attempts: 100, backoff: 1s }
- { name: done, set: { done: true } }`;
}

Deno.test("workflow fairness: a workflow whose upstream hangs leaves places to another", async () => {
  await using bed = await WorkflowBed.open();
  const letGo = bed.server.hold();
  const version = bed.workflows.set(hanging(bed));
  await Promise.all(Array.from({ length: 100 }, () => bed.beginVersion(version, "{}")));
  const runner = bed.runner({ maxRunning: 20 });
  runner.start();
  await bed.server.asked(16);
  for (let index = 0; index < 5; index++) {
    const id = await bed.begin(HEALTHY, {});
    runner.wake();
    assertEquals((await bed.ended(id)).execution.status, "succeeded");
  }
  assertEquals(bed.server.requests.length, 16);
  letGo();
});

Deno.test("workflow fairness: new runs of a trigger do not queue behind retries of its others", async () => {
  await using bed = await WorkflowBed.open();
  bed.server.answer = ({ body }) => new Response("no", { status: body.includes("bad") ? 503 : 200 });
  const version = bed.workflows.set(hanging(bed, "{{ input }}"));
  const runner = bed.runner({ maxRunning: 3 });
  const bad: string[] = [];
  for (let index = 0; index < 30; index++) bad.push(await bed.beginVersion(version, '{"bad":true}'));
  runner.start();
  for (const id of bad) await bed.waiting(id);
  // All are due again, and are asked to hang this time.
  const letGo = bed.server.hold();
  const good = await bed.beginVersion(version, '{"good":true}');
  bed.clock.advance(1_000);
  await until("the new run", () => bed.server.requests.some(({ body }) => body.includes("good")));
  assertEquals((await bed.find(good)).execution.status, "running");
  letGo();
});

Deno.test("workflow fairness: runs hold no more bytes than they may; the rest stays in the store", async () => {
  await using bed = await WorkflowBed.open();
  const letGo = bed.server.hold();
  const version = bed.workflows.set(hanging(bed));
  const input = JSON.stringify({ x: "x".repeat(10_000) });
  const ids: string[] = [];
  for (let index = 0; index < 20; index++) ids.push(await bed.beginVersion(version, input));
  const runner = bed.runner({ maxBytes: 100_000 });
  runner.start();
  await bed.server.asked(7);
  const small = await bed.begin(HEALTHY, {});
  runner.wake();
  assertEquals((await bed.ended(small)).execution.status, "succeeded");
  assertEquals([runner.running, bed.server.requests.length], [7, 7]);
  letGo();
  for (const id of ids) assertEquals((await bed.ended(id)).execution.status, "succeeded");
});

Deno.test("workflow fairness: a run whose results come to too much goes on once there is room", async () => {
  await using bed = await WorkflowBed.open();
  bed.server.answer = () => new Response("x".repeat(60_000));
  const steps = ["a", "b", "c"].map((name) => `- {name: ${name}, request: {url: "${bed.server.url}/"}}`);
  const version = bed.workflows.set(`workflow: w\nsteps:\n${steps.join("\n")}`);
  const ids: string[] = [];
  for (let index = 0; index < 6; index++) ids.push(await bed.beginVersion(version, "{}"));
  const points: string[] = [];
  const runner = bed.runner({ maxBytes: 100_000, atStep: (point) => void points.push(point) });
  runner.start();
  for (const id of ids) {
    const { execution, steps } = await bed.ended(id);
    assertEquals([execution.status, steps.map(({ attempts }) => attempts)], ["succeeded", [1, 1, 1]]);
  }
  assert(points.filter((point) => point === "claimed").length > 6, "none has gone back to the store");
  assertEquals(bed.server.requests.length, 18);
});

Deno.test("workflow fairness: a value is kept for one turn only, its text for longer", async () => {
  await using bed = await WorkflowBed.open();
  const id = await bed.begin(HEALTHY, { x: [{}] });
  const scope = new WorkflowScope((await bed.find(id)).execution, {}, 0);
  scope.add("call", '{"y":[]}');
  const values = () => [scope.read("input", undefined), scope.read("steps", "call")];
  const [input, result] = values();
  assertEquals([values()[0] === input, values()[1] === result], [true, true]);
  await Promise.resolve();
  assertEquals([values()[0] === input, values()[1] === result], [false, false]);
  assertEquals(values(), [new JsonText('{"x":[{}]}'), new JsonText('{"y":[]}')]);
});
