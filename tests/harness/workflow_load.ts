import { assertEquals } from "#assert";
import { until } from "./until.ts";
import { WorkflowBed } from "./workflow_fixture.ts";

/** Has so many executions of three steps carried out: each ends well, and each request is made once. */
export async function executeAll(count: number): Promise<void> {
  await using bed = await WorkflowBed.open();
  const version = bed.workflows.set(
    `workflow: w\nsteps:\n- {name: a, request: {url: "${bed.server.url}/{{ input.n }}"}}\n` +
      `- {name: b, limit: {domain: d, descriptors: [{n: "{{ input.n }}"}]}}\n- {name: c, set: {n: "{{ input.n }}"}}`,
  );
  const ids = await Promise.all(
    Array.from({ length: count }, (_, n) => bed.beginVersion(version, JSON.stringify({ n }))),
  );
  bed.runner().start();
  await until("all ends", () => bed.ends.length === count, { deadlineMs: 600_000 });
  const outputs = await Promise.all(ids.map(async (id) => (await bed.find(id)).execution.output));
  assertEquals(outputs, ids.map((_, n) => JSON.stringify({ n })));
  assertEquals(new Set(bed.server.requests.map(({ key }) => key)).size, count);
  assertEquals(bed.server.requests.length, count);
}
