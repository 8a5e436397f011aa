import { assert, assertEquals } from "#assert";
import { postgres } from "../../harness/postgres_fixture.ts";
import type { AnswerBody } from "../../harness/webhook_client.ts";
import type { KillPoint } from "../../harness/webhook_faults.ts";
import { MachineBed, type WebhookMachine } from "../../harness/webhook_machines.ts";

const STEP = 'request: { url: "https://steps.example/only" }';
const WORKFLOW = `workflow: w\nsteps:\n- { name: only, ${STEP}, retry: { attempts: 2, backoff: 2s } }\n`;
/** The place at which each of the first machines stops; the last one goes on. */
const STOPS: readonly KillPoint[] = [
  "execution after_step",
  "after claim",
  "before send",
  "before write_back",
];
const FAILED = { status: 500, errorKind: "status", error: "the receiver responded with 500" } as const;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** The time by which the wall clock of each is ahead of that of the database, which is correct. */
const AHEAD_MS = [0, 10 * MINUTE_MS, -10 * MINUTE_MS] as const;

postgres.test("machines that stop past their leases and go on change nothing", async (database) => {
  await using bed = await MachineBed.open(database.url());
  bed.workflows.set(WORKFLOW);
  bed.answerStep = () => Response.json({ by: bed.steps.length });
  const first = await bed.machine();
  const key = await triggerKey(first);
  for (const n of STOPS.keys()) await first.endpoint(`/n${n}`, { events: [`lane.n${n}`] });
  await first.end();
  // What the machine that is stopped sees is a failure; the next one sees a success.
  const failing = STOPS.indexOf("before write_back");
  bed.sender.receiver = ({ url }) =>
    url.endsWith(`/n${failing}`) && countOf(bed, `/n${failing}`) === 1 ? FAILED : { status: 200 };

  const stopped: WebhookMachine[] = [];
  for (const [n, stopsAt] of STOPS.entries()) {
    const machine = await bed.machine({ stopsAt });
    stopped.push(machine);
    const answer = stopsAt.startsWith("execution") ? machine.trigger("t", key) : machine.event(`lane.n${n}`);
    await machine.reached();
    answer.catch(() => {});
  }
  const other = await bed.machine();
  await bed.passUntil("the other to end all of it", async () => {
    const open = await Promise.all(
      ["executions?state=running", "deliveries?state=attempting", "deliveries?state=retrying"].map((list) =>
        other.call("GET", `/${list}`)
      ),
    );
    return open.every(({ body }) => body.items.length === 0);
  });
  const [deliveries, executions] = await records(other);
  assertEquals(deliveries.map(({ state, attempts }) => [state, ...attempts.map(({ result }) => result)]), [
    ["acknowledged", "interrupted", "acknowledged"],
    ["acknowledged", "interrupted", "acknowledged"],
    ["acknowledged", "interrupted", "acknowledged"],
  ]);
  assertEquals(executions.map(({ status }) => status), ["succeeded"]);
  assert(JSON.stringify(executions).includes('"by":2'), "the step is the other one's");

  for (const machine of stopped) machine.goOn();
  await bed.pass(10_000);
  for (const [n, machine] of stopped.entries()) {
    const { counters, gauges } = await machine.metrics();
    const isExecution = STOPS[n]?.startsWith("execution") === true;
    const isLost = (counters["lost_claims"] ?? 0) > 0;
    assertEquals([STOPS[n], gauges["executions_in_flight"], isLost], [STOPS[n], 0, !isExecution]);
  }
  assertEquals(await records(other), [deliveries, executions]);
  // What was stopped before it was sent is not sent by the one that was stopped.
  assertEquals(STOPS.map((_, n) => countOf(bed, `/n${n}`)), [0, 1, 1, 2]);
  assertEquals(bed.steps.length, 2);
});

postgres.test("a receiver sees as many requests of three machines at the same time as it may, and no more", async (database) => {
  await using bed = await MachineBed.open(database.url());
  const machines = [await bed.machine(), await bed.machine(), await bed.machine()];
  await machines[0]?.endpoint("/hook", { concurrency: 4 });
  bed.sender.receiver = () =>
    new Promise((resolve) => void bed.clock.after(30, () => resolve({ status: 200 })));
  for (let n = 0; n < 36; n++) await machines[n % 3]?.event("a.b", { n });
  await bed.passUntil("all to be sent", () => bed.sender.sent.length >= 36);
  await bed.pass(1_000);
  const ids = new Set(bed.sender.sent.map(({ headers }) => headers["x-svc-delivery"]));
  assertEquals([ids.size, bed.sender.sent.length, bed.sender.mostRunning], [36, 36, 4]);
});

postgres.test("endpoints that never answer do not keep others of three machines waiting", async (database) => {
  await using bed = await MachineBed.open(database.url());
  const machines = [await bed.machine(), await bed.machine(), await bed.machine()];
  const endpoints = 20;
  for (let n = 0; n < endpoints; n++) {
    for (const kind of ["live", "dead"]) {
      await machines[0]?.endpoint(`/${kind}/${n}`, { events: [`${kind}.*`], concurrency: 2 });
    }
  }
  const isDead = ({ url }: { readonly url: string }) => url.includes("/dead/");
  bed.sender.receiver = (request) => isDead(request) ? new Promise(() => {}) : { status: 200 };
  // More than can be under way, so that each of the dead ones has a backlog.
  for (let n = 0; n < 4; n++) await machines[n % 3]?.event("dead.event", { n });
  await bed.passUntil("the dead ones to hold what they may", () => bed.sender.running === 2 * endpoints);
  for (const [n, machine] of machines.entries()) {
    await machine.event("live.event", { n });
    // No time passes meanwhile.
    await bed.settled();
    const live = bed.sender.sent.filter((request) => !isDead(request));
    assertEquals([live.length, bed.sender.running], [(n + 1) * endpoints, 2 * endpoints]);
  }
});

postgres.test("clocks ten minutes ahead and behind: nothing comes twice, early or late", async (database) => {
  await using bed = await MachineBed.open(database.url());
  const machines = await machinesApart(bed);
  const [first] = machines;
  const key = await triggerKey(first);
  await first.endpoint("/due", { events: ["due.*"], concurrency: 16 });
  await first.endpoint("/long", { events: ["long.*"], concurrency: 16 });
  bed.answerStep = (step) => {
    const count = bed.steps.filter((one) => one.key === step.key).length;
    return new Response("{}", { status: count === 1 ? 500 : 200 });
  };
  const sides = new Set<number>();
  const times = new Map<string, number[]>();
  const gate = Promise.withResolvers<void>();
  bed.sender.receiver = async ({ url, headers }) => {
    const id = headers["x-svc-delivery"] ?? "";
    times.set(id, [...times.get(id) ?? [], bed.clock.now()]);
    sides.add(
      Math.round((Number(headers["x-svc-timestamp"]) * 1_000 - bed.clock.now()) / MINUTE_MS) * MINUTE_MS,
    );
    if (url.endsWith("/long")) await gate.promise;
    return url.endsWith("/due") && times.get(id)?.length === 1 ? { ...FAILED, status: 400 } : { status: 200 };
  };
  for (const machine of machines) {
    // What takes long is not taken away by those for whom it is later.
    for (const kind of ["long.event", "due.event", "due.event"]) await machine.event(kind);
    await machine.trigger("t", key);
    await bed.settled();
  }
  await bed.pass(25_000);
  gate.resolve();
  await bed.pass(15_000);

  const deliveries = await first.all("deliveries");
  const results = deliveries.map(({ attempts }) => attempts.map(({ result }) => result).join());
  assertEquals(results.toSorted(), [
    ...Array(3).fill("acknowledged"),
    ...Array(6).fill("failed,acknowledged"),
  ]);
  // Half a minute after the failure and half of the jitter, and what a look takes.
  const waits = [...times.values()].flatMap(([one, two]) => two === undefined ? [] : [two - (one ?? 0)]);
  assertEquals([waits.length, times.size], [6, 9]);
  assert(waits.every((ms) => ms >= 31_500 && ms <= 35_000), `the second attempts came after ${waits} ms`);
  const tried = [...Map.groupBy(bed.steps, (step) => step.key).values()];
  const retries = tried.map(([one, two]) => (two?.at ?? NaN) - (one?.at ?? 0));
  assertEquals(tried.map(({ length }) => length), [2, 2, 2]);
  assert(retries.every((ms) => ms >= 1_000 && ms <= 4_500), `the second requests came after ${retries} ms`);
  assertEquals((await first.all("executions")).map(({ status }) => status), Array(3).fill("succeeded"));
  // What is sent carries the time of its sender.
  assertEquals(sides, new Set(AHEAD_MS));
});

postgres.test("24 hours are 24 hours of the database, and a clock that is off is reported", async (database) => {
  await using bed = await MachineBed.open(database.url());
  const machines = await machinesApart(bed);
  const key = await triggerKey(machines[0]);
  const call = async (machine: WebhookMachine, idempotencyKey: string) => {
    const { status, headers, body } = await machine.trigger("t", key, idempotencyKey);
    return { id: body.executionId, status, isReplayed: headers["idempotency-replayed"] === "true" };
  };
  // For the one that is ahead the day is over, for the one that is behind it is not.
  for (
    const [ageMs, isLive] of [[24 * HOUR_MS - 5 * MINUTE_MS, true], [24 * HOUR_MS + 5 * MINUTE_MS, false]]
  ) {
    for (const [n, machine] of machines.entries()) {
      const idempotencyKey = `key-${isLive}-${n}`;
      const { id } = await call(machines[0], idempotencyKey);
      const sql =
        `UPDATE idempotency SET accepted_at = accepted_at - ${ageMs} WHERE key = '${idempotencyKey}'`;
      await database.psql(sql);
      const again = await call(machine, idempotencyKey);
      assertEquals([n, again.status, again.isReplayed, again.id === id], [n, 202, isLive, isLive]);
    }
  }
  for (const [n, machine] of machines.entries()) {
    const aheadMs = AHEAD_MS[n] ?? 0;
    const { gauges, note } = await machine.metrics();
    const told = `the clock of this machine is 600 s ${
      aheadMs > 0 ? "ahead of" : "behind"
    } that of the database`;
    assertEquals([gauges["clock_offset_seconds"], note], [
      aheadMs / 1_000,
      aheadMs === 0 ? undefined : told,
    ]);
    const warnings = machine.logger.lines.filter(({ message }) => message.startsWith("Wall clock differs"));
    assertEquals(warnings.length > 0, aheadMs !== 0);
  }
});

async function machinesApart(
  bed: MachineBed,
): Promise<readonly [WebhookMachine, WebhookMachine, WebhookMachine]> {
  bed.workflows.set(WORKFLOW);
  const [right, ahead, behind] = AHEAD_MS;
  return [
    await bed.machine({ aheadMs: right }),
    await bed.machine({ aheadMs: ahead }),
    await bed.machine({ aheadMs: behind }),
  ];
}

async function triggerKey(machine: WebhookMachine): Promise<string> {
  return (await machine.call("POST", "/triggers", { name: "t", workflow: "w" })).body.key;
}

function countOf({ sender }: MachineBed, path: string): number {
  return sender.sent.filter(({ url }) => url.endsWith(path)).length;
}

/** All deliveries in the order of their events, and all executions, with everything that is shown of them. */
async function records(of: WebhookMachine): Promise<readonly [AnswerBody[], readonly AnswerBody[]]> {
  const deliveries = await of.all("deliveries");
  return [deliveries.toSorted((a, b) => a.event.localeCompare(b.event)), await of.all("executions")];
}
