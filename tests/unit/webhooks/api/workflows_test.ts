import { assertEquals } from "#assert";
import type { Problem } from "../../../../src/base/problem.ts";
import type { WorkflowEntry } from "../../../../src/webhooks/model/workflow.ts";
import { readWorkflowFile } from "../../../../src/webhooks/workflows/file.ts";
import { WebhookBed } from "../../../harness/webhook_service_fixture.ts";

const LOADED_AT = Date.UTC(2026, 0, 1, 11);

function entry(id: string, text: string, problems: readonly Problem[] = []): WorkflowEntry {
  const file = `flows/${id}.yaml`;
  const { workflow, at, stepPositions } = readWorkflowFile(file, text);
  if (workflow === undefined) return { id, name: id, file, problems };
  const version = { id: `version of ${id}`, workflow: id, text };
  return {
    id,
    name: id,
    file,
    problems,
    current: { version, workflow, file, at, stepPositions, loadedAt: LOADED_AT },
  };
}

const error = (at: string): Problem => ({ severity: "error", at, path: "steps[0]", text: "no" });

Deno.test("workflows: a page has what is in use, the errors and the triggers of each", async () => {
  await using bed = await WebhookBed.open();
  const { id } = await bed.trigger({ workflow: "good", enabled: false });
  const steps = "steps:\n  - { name: one, set: {} }\n  - name: two\n    request: { url: https://h/ }\n";
  const good = entry("good", `workflow: good\ntimeout: 5s\n${steps}`);
  const old = entry("old", "workflow: old\nsteps: [{ name: one, set: {} }]\n", [error("flows/old.yaml:3:1")]);
  const nameless = { id: "x.yaml", file: "flows/x.yaml", problems: [error("flows/x.yaml:1:1")] };
  const folder = { severity: "error", at: "", path: "", text: "too many" } as const;
  bed.listing = { folder: "flows", problems: [folder], entries: [good, old, nameless] };
  const loadedAt = "2026-01-01T11:00:00.000Z";
  const shown = [{
    id: "good",
    name: "good",
    file: "flows/good.yaml",
    state: "valid",
    at: "flows/good.yaml:1:1",
    versionId: "version of good",
    loadedAt,
    timeoutMs: 5_000,
    steps: [
      { name: "one", kind: "set", at: "flows/good.yaml:4:5" },
      { name: "two", kind: "request", at: "flows/good.yaml:5:5" },
    ],
    triggers: [{ id, name: "order-intake", enabled: false }],
    triggerCount: 1,
    problems: [],
    problemCount: 0,
  }, {
    id: "old",
    name: "old",
    file: "flows/old.yaml",
    state: "outdated",
    at: "flows/old.yaml:1:1",
    versionId: "version of old",
    loadedAt,
    timeoutMs: 3_600_000,
    steps: [{ name: "one", kind: "set", at: "flows/old.yaml:2:9" }],
    triggers: [],
    triggerCount: 0,
    problems: old.problems,
    problemCount: 1,
  }, {
    id: "x.yaml",
    file: "flows/x.yaml",
    state: "invalid",
    steps: [],
    triggers: [],
    triggerCount: 0,
    problems: nameless.problems,
    problemCount: 1,
  }];
  const page = await bed.call("GET", "/workflows");
  assertEquals([page.status, page.body as unknown], [200, {
    items: shown,
    folder: "flows",
    problems: [folder],
  }]);
  for (const one of shown) {
    assertEquals((await bed.call("GET", `/workflows/${one.id}`)).body as unknown, one);
  }
});

Deno.test("workflows: pages follow each other, and answers are bounded", async () => {
  await using bed = await WebhookBed.open();
  for (let n = 0; n < 21; n++) {
    await bed.trigger({ name: `t-${String(n).padStart(2, "0")}`, workflow: "w1" });
  }
  const many = Array.from({ length: 60 }, (_, n) => error(`flows/w1.yaml:${n + 1}:1`));
  const entries = ["w0", "w1", "w2"].map((id) => entry(id, "", id === "w1" ? many : []));
  bed.listing = { problems: [], entries };
  const first = (await bed.call("GET", "/workflows?limit=2")).body;
  assertEquals(first.items.map(({ id }) => id), ["w0", "w1"]);
  const last = (await bed.call("GET", `/workflows?limit=2&cursor=${first.nextCursor}`)).body;
  assertEquals([last.items.map(({ id }) => id), last.nextCursor], [["w2"], undefined]);
  const shown = first.items[1];
  assertEquals([shown?.["problems"], shown?.["problemCount"]], [many.slice(0, 50), 60]);
  assertEquals([(shown?.["triggers"] as unknown[]).length, shown?.["triggerCount"]], [20, 21]);
});

Deno.test("workflows: wrong calls are refused", async () => {
  await using bed = await WebhookBed.open();
  const spaced = { id: "my file.yaml", file: "flows/my file.yaml", problems: [] };
  bed.listing = { problems: [], entries: [spaced] };
  const table: [string, string, number, string | undefined][] = [
    ["GET", "/workflows?limit=0", 422, "invalid_field"],
    ["GET", "/workflows?cursor=w1", 422, "invalid_field"],
    ["GET", `/workflows?cursor=${btoa("triggers:1").replaceAll("=", "")}`, 422, "invalid_field"],
    ["GET", "/workflows?since=2026-01-01T00:00:00Z", 422, "invalid_field"],
    ["GET", "/workflows?limit=1&limit=2", 422, "invalid_field"],
    ["GET", "/workflows/none", 404, "not_found"],
    ["GET", "/workflows/%", 404, "not_found"],
    ["GET", "/workflows/my%20file.yaml", 200, undefined],
    ["DELETE", "/workflows/none", 405, "method_not_allowed"],
    ["POST", "/workflows", 405, "method_not_allowed"],
  ];
  for (const [method, path, status, code] of table) {
    const answer = await bed.call(method, path);
    assertEquals([answer.status, answer.body.code], [status, code], `${method} ${path}`);
  }
});
