import { assertEquals } from "#assert";
import { stores } from "../../harness/store_places.ts";
import { ATTEMPT_POINTS, EXECUTION_POINTS, type KillPoint } from "../../harness/webhook_faults.ts";
import { MachineBed, type WebhookMachine } from "../../harness/webhook_machines.ts";

/** The number of times that a delivery is sent when a machine ends at a place, and the results of its attempts. */
const ATTEMPTS: Readonly<Record<string, string>> = {
  "before claim": "1: acknowledged",
  "after claim": "1: interrupted, acknowledged",
  "before send": "1: interrupted, acknowledged",
  "after send": "2: interrupted, acknowledged",
  "before write_back": "2: interrupted, acknowledged",
  "after write_back": "1: acknowledged",
};
const WORKFLOW = `workflow: three-steps
steps:
- { name: a, request: { url: "https://steps.example/a" } }
- { name: b, request: { url: "https://steps.example/b" } }
- { name: c, set: { done: true } }
`;
/** The requests of an execution. */
const REQUESTS: Readonly<Record<string, string>> = {
  "execution claimed": "a, b",
  "execution before_step": "a, b",
  "execution after_step": "a, a, b",
  "execution committed": "a, b",
};
/** Unclaimed work comes last: the next machine would take it. */
const POINTS = [...EXECUTION_POINTS, ...ATTEMPT_POINTS].sort((a, b) =>
  Number(a === "before claim") - Number(b === "before claim")
);

/** On a file a machine takes over immediately; on a shared store the lease has to end, and somebody to look. */
const STORES = {
  sqlite: { rounds: POINTS.map((point) => [point]), tookMs: 2_500 },
  postgres: { rounds: [POINTS], tookMs: 50_000 },
};

stores.test("machines end at any place: another goes on, and repeats only what was out", async ({ kind, address }) => {
  await using bed = await MachineBed.open(kind === "postgres" ? address : undefined);
  bed.workflows.set(WORKFLOW);
  const first = await bed.machine();
  await first.endpoint("/hook", { events: ["agent.*"], concurrency: 16 });
  await first.endpoint("/ends", { events: ["workflow.*"], concurrency: 16 });
  const { body: { key } } = await first.call("POST", "/triggers", { name: "t", workflow: "three-steps" });
  await first.end();
  const { rounds, tookMs } = STORES[kind];
  for (const points of rounds) {
    const ids = new Map<KillPoint, string>();
    for (const point of points) {
      ids.set(point, await takenBy(await bed.machine({ diesAt: point }), point, key));
    }
    const other = await bed.machine();
    const took = await bed.passUntil("the end of all", () => isDone(other));
    assertEquals(took <= tookMs, true, `it took ${took} ms after ${points.join()}`);
    await check(bed, other, ids);
    await other.end();
  }
});

/** Gives it the work at which it ends; answers the id of that. */
async function takenBy(machine: WebhookMachine, point: KillPoint, key: string): Promise<string> {
  const { body } = point.startsWith("execution")
    ? await machine.trigger("t", key)
    : await machine.event("agent.reply", { point });
  await machine.reached();
  return body.executionId ?? body.id;
}

async function isDone(machine: WebhookMachine): Promise<boolean> {
  for (const list of ["executions?state=queued", "executions?state=running", "deliveries?state=attempting"]) {
    if ((await machine.call("GET", `/${list}`)).body.items.length > 0) return false;
  }
  return true;
}

async function check(
  { sender, steps }: MachineBed,
  machine: WebhookMachine,
  ids: ReadonlyMap<KillPoint, string>,
): Promise<void> {
  const deliveries = await machine.all("deliveries");
  for (const [point, id] of ids) {
    if (point.startsWith("execution")) {
      const keys = steps.filter((step) => step.key.startsWith(id)).map((step) => step.path.slice(1));
      const { body } = await machine.call("GET", `/executions/${id}`);
      assertEquals([point, keys.join(", "), body["status"]], [point, REQUESTS[point], "succeeded"]);
    } else {
      const of = deliveries.filter(({ eventId }) => eventId === id);
      const count = sender.sent.filter(({ headers }) => headers["x-svc-delivery"] === of[0]?.id).length;
      const attempts = of[0]?.attempts.map(({ result }) => result).join(", ");
      assertEquals([point, of.length, `${count}: ${attempts}`], [point, 1, ATTEMPTS[point]]);
    }
  }
  // The end of each execution is reported once.
  const ends = sender.sent.filter(({ url }) => url.endsWith("/ends"));
  const executions = await machine.all("executions");
  assertEquals(ends.length, executions.length);
}
