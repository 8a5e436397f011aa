import { assert, assertEquals } from "@std/assert";
import { fileURLToPath } from "node:url";
import { ChildProcess } from "../../harness/child_process.ts";
import { seededRandom } from "../../harness/seeded_random.ts";
import { until } from "../../harness/until.ts";
import { WorkflowBed } from "../../harness/workflow_fixture.ts";

const EXECUTIONS = 1_000;
const KILLS = 20;
const POINTS = ["claimed", "started", "before_step", "after_step", "committed"] as const;
/** A round kills itself after at most so many passes of its point, so that no round finds too little to do. */
const MOST_HITS = 90;

Deno.test("workflow kill: 1,000 executions of three steps end, whatever kills the process 20 times", async () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  console.log(`workflow kill: seed ${seed}`);
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
    Array.from({ length: EXECUTIONS }, (_, m) => bed.beginVersion(version, JSON.stringify({ m }))),
  );
  for (let round = 0; round < KILLS; round++) {
    const point = POINTS[round % POINTS.length] ?? "claimed";
    const hits = 1 + Math.floor(random() * MOST_HITS);
    await using child = startChild(bed.folder, [String(round), point, String(hits)]);
    assertEquals((await child.exited).signal, "SIGKILL", child.stderrLines.join("\n"));
  }
  await using _last = startChild(bed.folder, [String(KILLS)]);
  await until("all ends", async () => {
    const { executions } = await bed.store.figures(Date.now());
    return executions.succeeded + executions.failed + executions.cancelled === EXECUTIONS;
  }, { deadlineMs: 600_000, intervalMs: 100 });

  const outputs = await Promise.all(ids.map(async (id) => (await bed.find(id)).execution.output));
  assertEquals(outputs, ids.map((_, m) => JSON.stringify({ n: 1, m })));
  const keys = ids.flatMap((id) => [`${id}:a`, `${id}:b`]).sort();
  const { requests } = bed.server;
  assertEquals([...new Set(requests.map(({ key }) => key))].sort(), keys);
  const rounds = requests.map(({ key, headers }) => `${key} ${headers.get("x-round")}`);
  assertEquals(new Set(rounds).size, rounds.length, "a step was repeated without a kill in between");
  assert(requests.length > keys.length, "no kill met a step that was out, so nothing was shown");
  const { items } = await bed.store.listEvents({ limit: 200 });
  assertEquals(items.length, 200);
});

function startChild(folder: string, args: readonly string[]): ChildProcess {
  const program = fileURLToPath(new URL("./workflow_kill_child.ts", import.meta.url));
  const command = ["run", "--no-check", "--quiet", "-A", program, `${folder}/weir.db`, ...args];
  return new ChildProcess(Deno.execPath(), { args: command });
}
