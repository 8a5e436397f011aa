import { assert, assertEquals } from "#assert";
import { eventually, until } from "../../harness/until.ts";
import { retried, WorkflowBed } from "../../harness/workflow_fixture.ts";
import { executeAll } from "../../harness/workflow_load.ts";
import { listDeliveries } from "../../../src/webhooks/store/operations/deliveries.ts";
import { cancelExecution } from "../../../src/webhooks/store/operations/executions.ts";

Deno.test("workflow runner: three steps, each with what the previous one brought, and the event at the end", async () => {
  await using bed = await WorkflowBed.open();
  const { server } = bed;
  await bed.addEndpoint();
  server.answer = () =>
    new Response('{"total":12345678901234567890,"items":[{"sku":"x"}]}', {
      headers: { "content-type": "application/json; charset=utf-8", "x-a": "1" },
    });
  const id = await bed.begin(
    `workflow: order-intake
steps:
- name: enrich
  request:
    method: PUT
    url: ${server.url}/orders/{{ input.id }}
    headers: { authorization: "Bearer {{ env.TOKEN }}" }
    query: { source: weir, who: "{{ input.who }}" }
    body: { all: "{{ input }}", text: "n={{ input.n }}" }
- name: fair-use
  limit: { domain: edge, descriptors: [{ customer: "{{ input.who }}", "7": gold }] }
- name: result
  set: { total: "{{ steps.enrich.body.total }}", sku: "{{ steps.enrich.body.items[0].sku }}", run: "{{ execution.id }}", code: "{{ steps.fair-use.code }}" }
`,
    '{"id":"7/8","who":"a&b","n":1.10}',
  );
  const asked: unknown[] = [];
  bed.limit = (...question) => {
    asked.push(question);
    return Promise.resolve({ code: "OK", resetMs: 500 });
  };
  bed.runner().start();
  const { execution, steps } = await bed.ended(id);

  const seen = server.requests.map(({ method, path, key, headers, body }) =>
    [method, path, key, headers.get("authorization"), headers.get("content-type"), body] as const
  );
  assertEquals(seen, [[
    "PUT",
    "/orders/7%2F8?source=weir&who=a%26b",
    `${id}:enrich`,
    "Bearer s3cret-token",
    "application/json",
    '{"all":{"id":"7/8","who":"a&b","n":1.10},"text":"n=1.10"}',
  ]]);
  assertEquals(asked, [["edge", [[["customer", "a&b"], ["7", "gold"]]]]]);
  const output = `{"total":12345678901234567890,"sku":"x","run":"${id}","code":"OK"}`;
  assertEquals([execution.status, execution.output, execution.error], ["succeeded", output, undefined]);
  assertEquals(steps.map(({ name, kind, status, attempts }) => [name, kind, status, attempts]), [
    ["enrich", "request", "succeeded", 1],
    ["fair-use", "limit", "succeeded", 1],
    ["result", "set", "succeeded", 1],
  ]);
  assert(steps[0]?.result?.includes('"body":{"total":12345678901234567890,"items":[{"sku":"x"}]}'));
  assertEquals(steps[1]?.result, '{"code":"OK","resetMs":500}');
  const at = new Date(bed.clock.now()).toISOString();
  assertEquals(await bed.events(), [
    `{"event":"workflow.execution.completed","data":{"workflowId":"order-intake","executionId":"${id}",` +
    `"status":"succeeded","startedAt":"${at}","finishedAt":"${at}","output":${output}}}`,
  ]);
  const deliveries = await bed.store.read(listDeliveries, { limit: 10 });
  assertEquals(deliveries.items.map(({ event, state }) => [event, state]), [
    ["workflow.execution.completed", "attempting"],
  ]);
  assertEquals(bed.ends, ["succeeded"]);
  await assertSecretFree(bed);
});

/** Nothing that a request was made of is in the log or in the database. */
async function assertSecretFree(bed: WorkflowBed): Promise<void> {
  assertEquals(bed.log.lines.filter((line) => line.includes("s3cret")), []);
  for await (const { name } of Deno.readDir(bed.folder)) {
    const bytes = await Deno.readFile(`${bed.folder}/${name}`);
    assertEquals(new TextDecoder("latin1").decode(bytes).includes("s3cret"), false, name);
  }
}

const CONDITIONS = `workflow: conditions
steps:
- name: large
  if: { input.total: { greater: 100 } }
  set: { kind: large }
- name: paid
  if: { any: [{ input.state: [paid] }, { steps.large.kind: { exists: true } }] }
  set: { kind: "{{ steps.large.kind | default: 'small' }}", note: "{{ input.note | default: 'none' }}" }
- name: last
  if: { execution.workflow: { notEqual: conditions } }
  set: { kind: never }
`;

/** The input, the status and the attempts of each step, and the output. */
const CONDITION_CASES = [
  ['{"total":101}', ["succeeded 1", "succeeded 1", "skipped 0"], '{"kind":"large","note":"none"}'],
  [
    '{"total":100,"state":"paid","note":null}',
    ["skipped 0", "succeeded 1", "skipped 0"],
    '{"kind":"small","note":"none"}',
  ],
  ['{"total":"101"}', ["skipped 0", "skipped 0", "skipped 0"], undefined],
] as const;

for (const [input, expected, output] of CONDITION_CASES) {
  Deno.test(`workflow runner: steps run if their conditions hold, with the input ${input}`, async () => {
    await using bed = await WorkflowBed.open();
    const id = await bed.begin(CONDITIONS, input);
    bed.runner().start();
    const { execution, steps } = await bed.ended(id);
    assertEquals(steps.map(({ status, attempts }) => `${status} ${attempts}`), [...expected]);
    assertEquals([execution.status, execution.output, execution.error], ["succeeded", output, undefined]);
  });
}

Deno.test("workflow runner: cancelled while it waits, between steps, before it starts, and too late", async () => {
  await using bed = await WorkflowBed.open();
  bed.server.answer = () => new Response("no", { status: 503 });
  const waiting = await bed.begin(retried(bed.server.url), {});
  const runner = bed.runner();
  runner.start();
  await bed.waiting(waiting);
  assertEquals(await bed.store.write(cancelExecution, waiting, bed.clock.now()), true);
  runner.wake();
  assertEquals((await bed.ended(waiting)).execution.status, "cancelled");
  assertEquals(await bed.store.write(cancelExecution, waiting, bed.clock.now()), false);

  const letGo = bed.server.hold();
  const between = await bed.begin(retried(bed.server.url), {});
  runner.wake();
  await bed.server.asked(2);
  await bed.store.write(cancelExecution, between, bed.clock.now());
  letGo();
  const ended = await bed.ended(between);
  assertEquals([ended.execution.status, ended.steps.map(({ name }) => name)], ["cancelled", ["call"]]);

  await runner.stop(0);
  const queued = await bed.begin(retried(bed.server.url), {});
  await bed.store.write(cancelExecution, queued, bed.clock.now());
  bed.runner().start();
  assertEquals((await bed.ended(queued)).execution.status, "cancelled");
  assertEquals(bed.server.requests.length, 2);
  const last = JSON.parse((await bed.events()).at(-1) ?? "").data;
  assertEquals([last.executionId, last.status, last.error, last.output], [
    queued,
    "cancelled",
    "it was cancelled",
    undefined,
  ]);
});

Deno.test("workflow runner: cancelled while a step is out that is to be tried again", async () => {
  await using bed = await WorkflowBed.open();
  const letGo = bed.server.hold(() => new Response("no", { status: 503 }));
  const id = await bed.begin(retried(bed.server.url), {});
  const runner = bed.runner();
  runner.start();
  await bed.server.asked();
  await bed.store.write(cancelExecution, id, bed.clock.now());
  letGo();
  await until("the end", async () => {
    runner.wake();
    return (await bed.find(id)).execution.status === "cancelled";
  });
  await eventually(1, () => bed.server.requests.length);
});

Deno.test("workflow runner: over the limit it waits until the limit ends, across a restart, or fails", async () => {
  await using bed = await WorkflowBed.open();
  const text = (onOver: string) =>
    `workflow: w\nsteps:\n- {name: fair, limit: {domain: d, descriptors: [{a: b}], onOver: ${onOver}}}`;
  let asked = 0;
  bed.limit = () => Promise.resolve(++asked <= 2 ? { code: "OVER_LIMIT", resetMs: 40_000 } : { code: "OK" });
  const id = await bed.begin(text("wait"), {});
  const first = bed.runner();
  first.start();
  assertEquals(await bed.waiting(id), 40_000);
  assertEquals(first.running, 0);
  await first.stop(0);

  bed.clock.advance(39_999);
  const second = bed.runner();
  second.start();
  assertEquals(asked, 1);
  bed.clock.advance(1_000);
  await until("the second question", () => asked === 2);
  await bed.waiting(id);
  bed.clock.advance(40_000);
  const { execution, steps } = await bed.ended(id);
  assertEquals([execution.status, execution.output, steps[0]?.attempts], ["succeeded", '{"code":"OK"}', 3]);

  bed.limit = () => Promise.resolve({ code: "OVER_LIMIT", resetMs: 1_500 });
  const failing = await bed.begin(text("fail"), {});
  second.wake();
  assertEquals(
    (await bed.ended(failing)).execution.error,
    'step "fair" failed: over the limit of domain "d" for another 2 s',
  );
});

Deno.test("workflow runner: a value that is too long to be decided on fails its step", async () => {
  await using bed = await WorkflowBed.open();
  const asked: unknown[] = [];
  // As the decision service does with such a value.
  bed.limit = (...question) => {
    asked.push(question);
    return Promise.reject(new Error("too long"));
  };
  const text = 'workflow: w\nsteps:\n- {name: fair, limit: {domain: d, descriptors: [{a: "{{ input.v }}"}]}}';
  const id = await bed.begin(text, { v: "v".repeat(8_192) });
  bed.runner().start();
  const { execution, steps } = await bed.ended(id);
  assertEquals([execution.error, steps[0]?.attempts, asked], [
    'step "fair" failed: limit_value_too_long: its values have more than 8192 bytes',
    1,
    [],
  ]);
});

Deno.test("workflow runner: a decision that fails is asked for again until the time is over", async () => {
  await using bed = await WorkflowBed.open();
  let asked = 0;
  bed.limit = () => {
    asked++;
    return Promise.reject(new Error("down"));
  };
  const id = await bed.begin(
    "workflow: w\ntimeout: 10s\nsteps:\n- {name: fair, limit: {domain: d, descriptors: [{a: b}]}}",
    {},
  );
  bed.runner().start();
  const waits: number[] = [];
  for (let left = 10_000; left > 0; left -= waits.at(-1) ?? left) {
    waits.push(await bed.waiting(id));
    bed.clock.advance(waits.at(-1) ?? 0);
    await until("the next question", () => asked === waits.length + 1 || bed.ends.length === 1);
  }
  const { execution } = await bed.ended(id);
  assertEquals([waits, execution.status, execution.error], [
    [1_000, 2_000, 4_000, 3_000],
    "failed",
    'it was not finished within 10 s; it was at step "fair"',
  ]);
});

Deno.test("workflow runner: the time of an execution ends a request that is out", async () => {
  await using bed = await WorkflowBed.open();
  const letGo = bed.server.hold(() => new Response("late"));
  const id = await bed.begin(
    `workflow: w\ntimeout: 3s\nsteps:\n- {name: call, request: {url: "${bed.server.url}", timeout: 1m}}`,
    {},
  );
  bed.runner().start();
  await bed.server.asked();
  bed.clock.advance(3_000);
  const { execution } = await bed.ended(id);
  letGo();
  assertEquals([execution.status, execution.error], [
    "failed",
    'it was not finished within 3 s; it was at step "call"',
  ]);
});

Deno.test("workflow runner: an edited and a deleted file change nothing of an execution in mid-run", async () => {
  await using bed = await WorkflowBed.open();
  bed.server.answer = () => new Response("no", { status: 503 });
  const id = await bed.begin(retried(bed.server.url), {});
  bed.runner().start();
  await bed.waiting(id);
  bed.workflows.set("workflow: w\nsteps:\n- {name: other, set: {other: true}}");
  bed.clock.advance(1_000);
  await bed.server.asked(2);
  await bed.waiting(id);
  bed.workflows.delete("w");
  bed.server.answer = () => new Response("ok");
  bed.clock.advance(2_000);
  assertEquals((await bed.ended(id)).execution.output, '{"status":200}');
});

Deno.test("workflow runner: the example of the repository does what it says", async () => {
  await using bed = await WorkflowBed.open();
  const reports: string[] = [];
  const text = await Deno.readTextFile(
    new URL("../../../config/workflows/order-intake.yaml", import.meta.url),
  );
  const id = await bed.begin(
    text.replaceAll("http://localhost:9000", bed.server.url),
    '{"id":"1001","customer":"acme","total":99.90}',
  );
  bed.runner({
    onStep: ({ step, kind, attempt, result }) => reports.push(`${step} ${kind} ${attempt} ${result}`),
  })
    .start();
  assertEquals((await bed.ended(id)).execution.output, '{"order":"1001","status":200}');
  assertEquals(bed.server.requests.map(({ path, body }) => [path, body]), [[
    "/orders/1001?source=weir",
    `{"order":{"id":"1001","customer":"acme","total":99.90},"execution":"${id}"}`,
  ]]);
  assertEquals(reports, ["fair-use limit 1 done", "register request 1 done", "result set 1 done"]);
});

Deno.test("workflow runner: 100 executions of three steps", () => executeAll(100));
