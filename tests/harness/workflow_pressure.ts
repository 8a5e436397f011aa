import { until } from "./until.ts";
import { WebhookProcess } from "./webhook_process.ts";

/** What was seen of a small workflow next to one whose upstream hangs. */
export interface StarvationReport {
  readonly problems: readonly string[];
  /** How long the last run of the small workflow took, in seconds. */
  readonly slowestSeconds: number;
}

/** What was seen while large inputs waited. */
export interface PressureReport {
  readonly problems: readonly string[];
  readonly residentBeforeMb: number;
  readonly residentMostMb: number;
  /** What the runs failed with, and how many of each. */
  readonly errors: Readonly<Record<string, number>>;
}

const HEALTHY = "workflow: healthy\nsteps:\n- { name: done, set: { done: true } }\n";
const SAMPLE_MS = 100;
const POSTS = 20;
/** `{"x":[{},{},…]}` of just under 1 MiB. */
const LARGE_INPUT = `{"x":[${Array(349_520).fill("{}").join(",")}]}`;

/** Runs `runs` of a workflow whose upstream hangs, and looks how long five of another one take then. */
export async function starveByHanging(
  { runs, withinSeconds }: { readonly runs: number; readonly withinSeconds: number },
): Promise<StarvationReport> {
  await using upstream = new HangingUpstream();
  await using weir = await pressedWeir(upstream);
  const hanging = await weir.made("/triggers", { name: "hanging", workflow: "hanging" });
  const healthy = await weir.made("/triggers", { name: "healthy", workflow: "healthy" });
  await inTurn(runs, () => weir.trigger("hanging", hanging.key, {}));
  await until("the upstream to hang", () => upstream.requests > 0);
  const begin = performance.now();
  await inTurn(5, () => weir.trigger("healthy", healthy.key, {}));
  let done = 0;
  while (done < 5 && performance.now() - begin < withinSeconds * 1_000) {
    await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
    done = (await weir.api("GET", "/executions?state=succeeded&limit=9")).body.items.length;
  }
  const slowestSeconds = (performance.now() - begin) / 1_000;
  const problems = done === 5
    ? []
    : [`${5 - done} of 5 runs are not done after ${slowestSeconds.toFixed(1)} s`];
  return { problems, slowestSeconds };
}

/** Calls a workflow whose upstream hangs with inputs of 1 MiB, and looks at the memory of the process meanwhile. */
export async function pressByLargeInputs(
  { calls, seconds, mostMb }: {
    readonly calls: number;
    readonly seconds: number;
    /** How much the process may grow. */
    readonly mostMb: number;
  },
): Promise<PressureReport> {
  await using upstream = new HangingUpstream();
  await using weir = await pressedWeir(upstream);
  const { key } = await weir.made("/triggers", { name: "hanging", workflow: "hanging" });
  const residentBeforeMb = weir.residentMb();
  let residentMostMb = residentBeforeMb;
  const watch = setInterval(() => residentMostMb = Math.max(residentMostMb, weir.residentMb()), SAMPLE_MS);
  try {
    await inTurn(calls, () => weir.trigger("hanging", key, LARGE_INPUT));
    await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  } finally {
    clearInterval(watch);
  }
  const errors: Record<string, number> = {};
  const failed = await until(
    "an answer of the administration",
    () => weir.all("/executions?state=failed").catch(() => undefined),
  );
  for (const { error } of failed) {
    errors[error] = (errors[error] ?? 0) + 1;
  }
  const growth = residentMostMb - residentBeforeMb;
  const problems = [
    ...growth <= mostMb ? [] : [`it grew by ${growth.toFixed(0)} MB`],
    ...failed.length === 0 ? [] : [`${failed.length} runs failed`],
  ];
  return { problems, residentBeforeMb, residentMostMb, errors };
}

/** Answers no request. */
class HangingUpstream implements AsyncDisposable {
  requests = 0;
  readonly #gate = Promise.withResolvers<void>();
  readonly #server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    this.requests++;
    await request.body?.cancel();
    await this.#gate.promise;
    return new Response();
  });

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#gate.resolve();
    await this.#server.shutdown();
  }
}

async function pressedWeir(upstream: HangingUpstream): Promise<WebhookProcess> {
  const hanging = `workflow: hanging
steps:
- name: call
  request: { method: POST, url: "${upstream.url}/", body: "{{ input }}", timeout: 10s }
  retry: { attempts: 100, backoff: 1s }
`;
  const workflows = { "hanging.yaml": hanging, "healthy.yaml": HEALTHY };
  const weir = await WebhookProcess.open({ env: { LOG_LEVEL: "warning" }, workflows });
  try {
    await weir.start();
    return weir;
  } catch (error) {
    await weir[Symbol.asyncDispose]();
    throw error;
  }
}

/** Does something `count` times, a few at a time. */
async function inTurn(count: number, act: () => Promise<{ readonly status: number }>): Promise<void> {
  let begun = 0;
  await Promise.all(Array.from({ length: Math.min(POSTS, count) }, async () => {
    while (begun < count) {
      begun++;
      const { status } = await act();
      if (status !== 202) throw new Error(`Cannot call a trigger: ${status}`);
    }
  }));
}
