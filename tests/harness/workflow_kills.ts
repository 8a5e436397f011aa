import { assert, assertEquals } from "#assert";
import { fileURLToPath } from "node:url";
import { ChildProcess } from "./child_process.ts";
import { seededRandom } from "./seeded_random.ts";
import { until } from "./until.ts";
import { WorkflowBed } from "./workflow_fixture.ts";
import { listEvents } from "../../src/webhooks/store/operations/events.ts";

/** Places where a process kills itself, one after the other. */
export const KILL_POINTS = ["claimed", "before_step", "after_step", "committed"] as const;

/** The amount of work, and its disturbances. */
interface WorkflowKills {
  readonly executions: number;
  /** Each process kills itself at one of these. */
  readonly kills: readonly (typeof KILL_POINTS)[number][];
  /** A process kills itself after at most so many passes of its point, so that none finds too little to do. */
  readonly mostPasses: number;
  readonly seed: number;
}

/** Has executions of three steps carried out by processes that are killed; each ends well, and no step is lost. */
export async function executeWithKills(
  { executions, kills, mostPasses, seed }: WorkflowKills,
): Promise<void> {
  const random = seededRandom(seed);
  await using bed = await WorkflowBed.open();
  bed.server.answer = () => Response.json({ n: 1 });
  const { url } = bed.server;
  // A request may still arrive when the process that sent it is gone, so it tells itself which one that was.
  const request = (path: string) => `{url: "${url}/${path}", headers: {x-round: "{{ env.ROUND }}"}}`;
  const version = bed.workflows.set(
    `workflow: w\nsteps:\n- {name: a, request: ${request("a")}}\n- {name: b, request: ${request("b")}}\n` +
      `- {name: c, set: {n: "{{ steps.b.body.n }}", m: "{{ input.m }}"}}`,
  );
  const ids = await Promise.all(
    Array.from({ length: executions }, (_, m) => bed.beginVersion(version, JSON.stringify({ m }))),
  );
  for (const [round, point] of kills.entries()) {
    const hits = 1 + Math.floor(random() * mostPasses);
    await using child = startChild(bed.folder, [String(round), point, String(hits)]);
    assertEquals((await child.exited).signal, "SIGKILL", child.stderrLines.join("\n"));
  }
  await using _last = startChild(bed.folder, [String(kills.length)]);
  await until("all ends", async () => {
    const { succeeded, failed, cancelled } = (await bed.store.metrics(Date.now())).executions;
    return succeeded + failed + cancelled === executions;
  }, { deadlineMs: 600_000 });

  const outputs = await Promise.all(ids.map(async (id) => (await bed.find(id)).execution.output));
  assertEquals(outputs, ids.map((_, m) => JSON.stringify({ n: 1, m })));
  const keys = ids.flatMap((id) => [`${id}:a`, `${id}:b`]).sort();
  const { requests } = bed.server;
  assertEquals([...new Set(requests.map(({ key }) => key))].sort(), keys);
  const rounds = requests.map(({ key, headers }) => `${key} ${headers.get("x-round")}`);
  assertEquals(new Set(rounds).size, rounds.length, "a step was repeated without a kill in between");
  assert(requests.length > keys.length, "no kill met a step that was out, so nothing was shown");
  const { items } = await bed.store.read(listEvents, { limit: 200 });
  assertEquals(items.length, Math.min(executions, 200));
}

function startChild(folder: string, args: readonly string[]): ChildProcess {
  const program = fileURLToPath(new URL("./workflow_kill_child.ts", import.meta.url));
  const command = ["run", "--no-check", "--quiet", "-A", program, `${folder}/weir.db`, ...args];
  return new ChildProcess(Deno.execPath(), { args: command });
}
