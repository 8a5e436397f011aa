import { PROVIDER_HEADERS } from "./provider_signatures.ts";
import { until } from "./until.ts";
import type { AnswerBody } from "./webhook_client.ts";
import { EXECUTION_POINTS } from "./webhook_faults.ts";
import { type KillLoopOptions, startAll } from "./webhook_kill_loop.ts";
import { type KillReport, killRounds, runKillRounds } from "./webhook_kill_rounds.ts";
import { WebhookProcess } from "./webhook_process.ts";
import { type Reception, WebhookReceiver } from "./webhook_receiver.ts";

/** What was seen of executions while processes were killed. */
export interface ExecutionKillReport extends Omit<KillReport, "works"> {
  readonly repeatedSteps: number;
}

const SECRET = "It's a Secret to Everybody";
const STEPS = ["one", "two", "three"];
const CARRIED_OUT_MS = 300_000;
const MAX_PROBLEMS = 20;

/**
 * Starts that many executions of three steps in a Weir that is killed again and again, half of them by signed calls,
 * and looks whether each ends once and well, and whether a step was sent again only by another process and under the same key.
 */
export async function killWhileExecuting(
  options: KillLoopOptions & { readonly executions: number },
): Promise<ExecutionKillReport> {
  const { open = WebhookProcess.open } = options;
  await using receiver = await WebhookReceiver.start();
  receiver.answer = ({ body }) => JSON.stringify({ n: JSON.parse(body).n });
  await using weir = await open({
    env: { LOG_LEVEL: "warning" },
    workflows: { "three-steps.yaml": workflowText(receiver.url) },
  });
  await startAll(weir);
  const { key: token } = await weir.made("/triggers", { name: "three-steps", workflow: "three-steps" });

  const ids: string[] = [];
  const verify = { scheme: "github", secret: SECRET };
  await weir.made("/triggers", { name: "signed", workflow: "three-steps", verify });
  const call = (n: number) => {
    const id = `execution-${n}`;
    if (n % 2 === 0) return weir.trigger("three-steps", token, { n }, id);
    const text = JSON.stringify({ n });
    return weir.signedTrigger("signed", PROVIDER_HEADERS.github({ secret: SECRET, body: text, id }), text);
  };
  const startOne = async (n: number) => {
    const { status, body } = await call(n);
    if (status !== 202) throw new Error(`Cannot start execution ${n}: ${status} ${JSON.stringify(body)}`);
    ids[n] = body.executionId;
  };
  const rounds = killRounds({
    ...options,
    ...{ works: options.executions, points: EXECUTION_POINTS, processes: weir.members.length },
  });
  const { works: executions, ...killed } = await runKillRounds(weir, {
    ...{ rounds, works: options.executions, work: startOne },
  });
  await until("every execution to end", () => weir.isCarriedOut(), {
    ...{ deadlineMs: CARRIED_OUT_MS, intervalMs: 100 },
  });
  const records = await weir.all("/executions");
  const events = await weir.all("/events?event=workflow.execution.completed");

  const problems = [...killed.problems];
  if (new Set(ids).size !== executions) problems.push(`${new Set(ids).size} executions were started`);
  if (records.length !== executions) problems.push(`there are ${records.length} executions`);
  if (events.length !== executions) problems.push(`there are ${events.length} events of their ends`);
  for (const record of records) problems.push(...executionProblems(record, receiver));
  for (const same of receiver.repeated) problems.push(...repetitionProblems(same));
  const wanted = executions * STEPS.length;
  if (receiver.byId.size !== wanted) {
    problems.push(`${receiver.byId.size} steps were sent in place of ${wanted}`);
  }
  return { ...killed, repeatedSteps: receiver.repeated.length, problems: problems.slice(0, MAX_PROBLEMS) };
}

function workflowText(url: string): string {
  const step = (name: string, n: string) =>
    `  - name: ${name}
    request:
      method: POST
      url: ${url}/${name}
      headers: { x-generation: "{{ env.GENERATION }}" }
      body: { n: "${n}" }
`;
  const [one = "", two = "", three = ""] = STEPS;
  return `workflow: three-steps
steps:
${step(one, "{{ input.n }}")}${step(two, "{{ steps.one.body.n }}")}${step(three, "{{ steps.two.body.n }}")}`;
}

function executionProblems(
  { id, status, steps }: AnswerBody,
  { byId }: Pick<WebhookReceiver, "byId">,
): string[] {
  const problems: string[] = [];
  const done = steps.map((step) => `${step.name} ${step.status}`).join(", ");
  const wanted = STEPS.map((name) => `${name} succeeded`).join(", ");
  if (status !== "succeeded" || done !== wanted) {
    problems.push(`execution ${id}: it is ${status} after ${done}`);
  }
  const sent = STEPS.map((name) => byId.get(`${id}:${name}`) ?? []);
  const bodies = sent.flat().map(({ body }) => body);
  if (new Set(bodies).size !== 1) problems.push(`execution ${id}: its steps had different values`);
  // A step begins when the one before it is committed, which is then never sent again.
  const isInOrder = sent.slice(1).every((later, index) =>
    Math.max(...(sent[index] ?? []).map(({ at }) => at)) <= Math.min(...later.map(({ at }) => at))
  );
  if (!isInOrder) problems.push(`execution ${id}: a step was sent again after the next one`);
  return problems;
}

/** One process sends a step once: a second time is another process's. */
function repetitionProblems(same: readonly Reception[]): string[] {
  const by = same.map(({ headers }) => String(headers["x-generation"]));
  return new Set(by).size === by.length
    ? []
    : [`step ${same[0]?.id}: sent by the processes ${by.join(", ")}`];
}
