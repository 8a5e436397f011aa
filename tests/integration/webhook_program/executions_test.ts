import { assertEquals } from "#assert";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { until } from "../../harness/until.ts";
import { WebhookServed } from "../../harness/webhook_served.ts";
import { type Reaction, WebhookReceiver } from "../../harness/webhook_receiver.ts";

/** Steps that ask a server at the port, with what each test needs behind them. */
function workflow(name: string, url: string, retry: string, last: string): string {
  return `workflow: ${name}
steps:
  - name: ask
    request: { method: POST, url: "${url}/${name}", body: { n: "{{ input.n }}" } }
    retry: ${retry}
${last}`;
}

const SET = '  - name: result\n    set: { n: "{{ input.n }}" }\n';
const rules = (perSecond: number) => ({
  "edge.yaml": `domain: edge
descriptors:
- key: customer
  rate_limit: { unit: second, requests_per_unit: ${perSecond} }
`,
});
const limit = (onOver: string) =>
  `  - name: fair-use
    limit: { domain: edge, descriptors: [{ customer: "{{ input.n }}" }], onOver: ${onOver} }
${SET}`;

function textsFor(url: string) {
  return {
    retry: workflow("retry", url, "{ attempts: 20, backoff: 1s }", SET),
    cancel: workflow("cancel", url, "{ attempts: 5, backoff: 1h }", SET),
    over: `workflow: over\nsteps:\n${limit("fail")}`,
    wait: `workflow: wait\nsteps:\n${limit("wait")}`,
    edited: workflow("edited", url, "{ attempts: 20, backoff: 1s }", SET),
    deleted: workflow("deleted", url, "{ attempts: 20, backoff: 1s }", SET),
  };
}

/** The expected end of the executions. */
const OVER_TEXT = 'step "fair-use" failed: over the limit of domain "edge" for another 1 s';
const ENDS = {
  retry: ["succeeded", { n: "retry" }, ["ask succeeded", "result succeeded"]],
  cancel: ["cancelled", "it was cancelled", []],
  over: ["failed", OVER_TEXT, ["fair-use failed"]],
  wait: ["succeeded", { n: "wait" }, ["fair-use succeeded", "result succeeded"]],
  edited: ["succeeded", { n: "edited" }, ["ask succeeded", "result succeeded"]],
  deleted: ["succeeded", { n: "deleted" }, ["ask succeeded", "result succeeded"]],
};

/** The number of executions that were tried and wait. */
function triedIn({ folder }: WebhookServed): number {
  using database = new DatabaseSync(folder.store, { readOnly: true });
  const tried = "status = 'running' AND step_attempts > 0 AND claim_id IS NULL";
  return Number(database.prepare(`SELECT count(*) AS n FROM execution WHERE ${tried}`).get()?.["n"]);
}

Deno.test("executions that wait when the service is killed go on, each in its own way, in the next one", async () => {
  await using receiver = await WebhookReceiver.start();
  let reaction: Reaction = 503;
  receiver.react = ({ path }) => path === "/over" || path === "/wait" ? 200 : reaction;
  const texts = textsFor(receiver.url);
  const names = Object.keys(texts);
  const workflows = Object.fromEntries(Object.entries(texts).map(([name, text]) => [`${name}.yaml`, text]));
  await using weir = await WebhookServed.open({ workflows });
  await weir.start({ rules: rules(0), faults: {} });
  const tokens = new Map<string, string>();
  for (const name of names) tokens.set(name, (await weir.made("/triggers", { name, workflow: name })).key);
  const start = async (name: string) => {
    const { status, body } = await weir.trigger(name, tokens.get(name) ?? "", { n: name }, "one-key");
    return status === 202 ? body.executionId : `${status} ${body.code}`;
  };
  const ids = new Map<string, string>();
  for (const name of names) ids.set(name, await start(name));
  const of = async (name: string) => (await weir.api("GET", `/executions/${ids.get(name)}`)).body;
  // The limit that fails has done so; the others have tried and wait.
  await until("the limit to fail", async () => (await of("over")).status === "failed");
  await until("the requests to be made", () => receiver.byId.size === 4);
  await until("their results to be written", () => triedIn(weir) === 5);

  // In mid-run one file says something else, and another one is gone.
  const file = (name: string) => join(weir.folder.workflows, `${name}.yaml`);
  await Deno.writeTextFile(
    file("edited"),
    `workflow: edited\nsteps:\n  - name: other\n    set: { other: 1 }\n`,
  );
  await Deno.remove(file("deleted"));
  await weir.kill();
  reaction = 200;
  await weir.start({ rules: rules(1_000), faults: { isHurried: true } });

  assertEquals((await weir.api("POST", `/executions/${ids.get("cancel")}/cancel`)).status, 202);
  // What waits for its next attempt is due.
  weir.hurryWork(5_000);
  await until("every execution to end", () => weir.isCarriedOut());
  const ends: Record<string, unknown> = {};
  for (const name of names) {
    const { status, output, error, steps } = await of(name);
    ends[name] = [status, output ?? error, steps.map((step) => `${step.name} ${step.status}`)];
  }
  assertEquals(ends, ENDS);
  // Those that waited were tried before and after, under one key.
  for (const name of ["retry", "edited", "deleted"]) {
    const count = receiver.byId.get(`${ids.get(name)}:ask`)?.length ?? 0;
    assertEquals([name, count >= 2], [name, true]);
  }
  const [waited] = (await of("wait")).steps;
  assertEquals(Number(waited?.attempts) >= 2, true);
  assertEquals(receiver.byId.get(`${ids.get("cancel")}:ask`)?.length, 1);

  // What starts now starts with what the folder says now.
  const later = await weir.trigger("edited", tokens.get("edited") ?? "", { n: 1 }, "another-key");
  await until("the new one to end", () => weir.isCarriedOut());
  assertEquals((await weir.api("GET", `/executions/${later.body.executionId}`)).body["output"], { other: 1 });
  const gone = await fetch(`${weir.base}/api/v1/workflows/triggers/deleted`, {
    method: "POST",
    headers: { authorization: `Bearer ${tokens.get("deleted")}`, "content-type": "application/json" },
    body: "{}",
  });
  const { code } = await gone.json();
  assertEquals([gone.status, code], [503, "workflow_unavailable"]);
});
