import { assertEquals } from "#assert";
import type { ExecutionChange } from "../../../../src/webhooks/model/completion_event.ts";
import {
  commitExecution,
  findExecution,
  listExecutions,
} from "../../../../src/webhooks/store/operations/executions.ts";
import { claimRuns } from "../../../contract/webhook_store_bed.ts";
import { sha256, WebhookBed } from "../../../harness/webhook_service_fixture.ts";
import { codeOf } from "./refusal_fixture.ts";

const INPUT = '{"n": 12345678901234567890}';

Deno.test("run again: the same input, trigger and event, the current workflow, the name of the origin", async () => {
  await using bed = await WebhookBed.open();
  const { id: triggerId } = await bed.trigger();
  const call = { data: { n: 1 }, event: "push" };
  const { body } = await bed.call("POST", `/triggers/${triggerId}/call`, call);
  await end(bed);
  bed.workflows.set("order-intake", "workflow: order-intake # 2");
  await bed.call("DELETE", `/triggers/${triggerId}`);
  const answer = await bed.call("POST", `/executions/${body.executionId}/rerun`);
  assertEquals(codeOf(answer), [202, "executionId"]);
  const { executionId: id } = answer.body;
  const shown = (await bed.call("GET", `/executions/${id}`)).body;
  assertEquals(
    [shown["rerunOf"], shown["triggerId"], shown["event"], shown["input"], shown["status"]],
    [body.executionId, triggerId, "push", { n: 1 }, "queued"],
  );
  assertEquals(shown["versionId"], sha256("workflow: order-intake # 2"));
  const { items } = (await bed.call("GET", "/audit?event=execution.rerun")).body;
  assertEquals(
    items.map(({ actor, object, details }) => [actor, object, details]),
    [["admin", `execution:${body.executionId}`, { executionId: id }]],
  );
});

Deno.test("run again: once for a key, which belongs to the execution; one that ran again can run again", async () => {
  await using bed = await WebhookBed.open();
  const { key } = await bed.trigger();
  const { body: { executionId: id } } = await bed.start(key, INPUT, { idempotencyKey: "k" });
  await end(bed);
  const rerun = (of: string, idempotencyKey?: string) =>
    bed.call("POST", `/executions/${of}/rerun`, undefined, undefined, idempotencyKey);
  const [first, ...rest] = await Promise.all(["k", "k", "k"].map((one) => rerun(id, one)));
  assertEquals(rest.map(({ body }) => body), [first?.body, first?.body]);
  assertEquals((await rerun(id, "k")).headers["idempotency-replayed"], "true");
  const again = first?.body.executionId ?? "";
  assertEquals((await bed.store.read(findExecution, again))?.execution.input, INPUT);
  await end(bed);
  const third = (await rerun(again, "k")).body.executionId;
  assertEquals((await bed.store.read(findExecution, third))?.execution.rerunOf, again);
  assertEquals((await bed.store.read(listExecutions, { limit: 9 })).items.length, 3);
  assertEquals((await bed.call("GET", "/audit?event=execution.rerun")).body.items.length, 2);
});

Deno.test("run again: neither limit, conditions nor state of the trigger apply", async () => {
  let isOver = false;
  await using bed = await WebhookBed.open({
    limit: () => Promise.resolve(isOver ? { code: "OVER_LIMIT", resetMs: 1_500 } : { code: "OK" }),
  });
  const limit = { domain: "edge", descriptors: [{ a: "b" }] };
  const { id: triggerId, key } = await bed.trigger({ limit });
  const { body: { executionId: id } } = await bed.start(key, INPUT);
  await end(bed);
  isOver = true;
  await bed.call("PATCH", `/triggers/${triggerId}`, {
    enabled: false,
    requireIdempotencyKey: true,
    when: { "input.a": [1] },
  });
  assertEquals(codeOf(await bed.call("POST", `/executions/${id}/rerun`)), [202, "executionId"]);
});

Deno.test("run again: refused", async () => {
  await using bed = await WebhookBed.open({ parts: { maxBodyBytes: INPUT.length } });
  const { key } = await bed.trigger();
  const ended = async (input: string) => {
    const { body: { executionId } } = await bed.start(key, input);
    await end(bed);
    return executionId;
  };
  const [small, large] = [await ended(INPUT), await ended(`${INPUT} `)];
  const { body: { executionId: queued } } = await bed.start(key, INPUT);
  const rerun = (id: string, body?: unknown, idempotencyKey?: string) =>
    bed.call("POST", `/executions/${id}/rerun`, body, undefined, idempotencyKey);
  assertEquals(codeOf(await rerun(queued)), [409, "not_ended"]);
  assertEquals(codeOf(await rerun(small, { data: {} })), [422, "invalid_field"]);
  assertEquals(codeOf(await rerun(small, {}, "")), [400, "invalid_idempotency_key"]);
  const tooLarge = await rerun(large);
  assertEquals([...codeOf(tooLarge), tooLarge.body.field, tooLarge.body["detail"]], [
    ...[413, "too_large", "input"],
    "Cannot run the execution again: its input has 28 bytes, more than WEBHOOK_MAX_BODY_BYTES (27)",
  ]);
  const unknown = await rerun("none");
  assertEquals([...codeOf(unknown), unknown.body["detail"]], [
    ...[404, "not_found"],
    "Cannot find this execution: it does not exist, or was removed with its input",
  ]);
  bed.workflows.clear();
  assertEquals(codeOf(await rerun(small)), [503, "workflow_unavailable"]);
  assertEquals((await bed.call("GET", "/audit?event=execution.rerun")).body.items, []);
});

/** Ends the execution that is due. */
async function end(bed: WebhookBed): Promise<void> {
  const now = bed.clock.now();
  const [claimed] = await claimRuns(bed.store, { now });
  const { claimId = "", execution } = claimed ?? {};
  const change: ExecutionChange = { status: "succeeded", stepAttempts: 0, finishedAt: now, output: "{}" };
  await bed.store.write(commitExecution, {
    executionId: execution?.id ?? "",
    claimId,
    now,
    change,
    keepClaim: false,
  });
}
