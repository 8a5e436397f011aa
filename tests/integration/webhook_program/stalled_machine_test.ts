import { assertEquals } from "#assert";
import os from "node:os";
import { ChildProcess } from "../../harness/child_process.ts";
import { eventually, until } from "../../harness/until.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";

const WORKFLOWS = (url: string, timeout: string) => ({
  "call.yaml": `workflow: call
steps:
  - name: ask
    request: { method: POST, url: "${url}", timeout: ${timeout}, body: { n: "{{ input.n }}" } }
`,
});

/** Processes that would take a core each, and end by themselves. */
const BURNERS = 2 * navigator.hardwareConcurrency;
const WEBHOOK_NICENESS = 5;
/** Of the calls of a process that stands still: so long a busy machine may take until all of them are made. */
const TIMEOUT_S = 40;
const LOOP = "i=0; while [ $i -lt 20000000 ]; do i=$((i+1)); done";

/** A receiver on this machine that answers 200, all requests at the same time where `holds` of them are to be held back. */
class Receiver implements AsyncDisposable {
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #gate = Promise.withResolvers<void>();
  readonly #isHeld: boolean;
  /** Requests by path. */
  readonly seen = new Map<string, number>();

  constructor({ isHeld }: { readonly isHeld: boolean }) {
    this.#isHeld = isHeld;
    this.#server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
      const { pathname } = new URL(request.url);
      this.seen.set(pathname, (this.seen.get(pathname) ?? 0) + 1);
      await request.body?.cancel();
      if (this.#isHeld) await this.#gate.promise;
      return Response.json({});
    });
  }

  url(path: string): string {
    return `http://127.0.0.1:${this.#server.addr.port}${path}`;
  }

  answer(): void {
    this.#gate.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.answer();
    await this.#server.shutdown();
  }
}

/** The priorities of the threads of a process. */
async function nicenesses(pid: number): Promise<Set<number>> {
  const found = new Set<number>();
  for await (const { name } of Deno.readDir(`/proc/${pid}/task`)) {
    // A thread may end at any time.
    const stat = await Deno.readTextFile(`/proc/${pid}/task/${name}/stat`).catch(() => "");
    found.add(Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16]));
  }
  return found;
}

/** Makes the trigger of the workflow; answers what starts executions, and that their ids. */
async function triggerOf(address: string): Promise<(count: number) => Promise<string[]>> {
  const trigger = await api(address, "/triggers", { body: { name: "call", workflow: "call" } });
  assertEquals(trigger.status, 201);
  return async (count) => {
    const ids: string[] = [];
    for (let n = 0; n < count; n++) {
      const call = { token: trigger.body.key, body: { n }, idempotencyKey: `${n}` };
      ids.push((await api(address, "/workflows/triggers/call", call)).body.executionId);
    }
    return ids;
  };
}

/** Waits until executions have ended; counts their ends. */
async function ends(address: string, ids: readonly string[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const id of ids) {
    const { status, error = "" } = await until("an execution to end", async () => {
      const { status, body } = await api(address, `/executions/${id}`);
      assertEquals(status, 200);
      return /^(?:queued|running)$/.test(String(body.status)) ? undefined : body;
    }, { deadlineMs: 180_000, intervalMs: 100 });
    const end = `${status} ${error}`.trim();
    counts[end] = (counts[end] ?? 0) + 1;
  }
  return counts;
}

Deno.test("a process that stood still while its receivers answered takes the answers", async () => {
  const count = 10;
  await using receiver = new Receiver({ isHeld: true });
  await using folder = await WebhookFolder.make(WORKFLOWS(receiver.url("/step"), `${TIMEOUT_S}s`));
  await using weir = await folder.start({ WEBHOOK_TIMEOUT: `${TIMEOUT_S}s` });
  const address = weir.httpAddress;
  const endpoint = { url: receiver.url("/hook"), events: ["stock.low"] };
  assertEquals((await api(address, "/endpoints", { body: endpoint })).status, 201);
  const ids = await (await triggerOf(address))(count);
  for (let n = 0; n < count; n++) {
    const event = { event: "stock.low", data: { n } };
    assertEquals((await api(address, "/events", { body: event })).status, 202);
  }
  // An endpoint gets more than a few at the same time only after its first answers.
  await until("the requests", () => receiver.seen.get("/step") === count && receiver.seen.has("/hook"));
  weir.signal("SIGSTOP");
  receiver.answer();
  const end = performance.now() + 1_000 * (TIMEOUT_S + 1);
  await until("the timeouts to pass", () => performance.now() > end);
  weir.signal("SIGCONT");
  assertEquals(await ends(address, ids), { succeeded: count });
  const states = async () =>
    (await api(address, "/deliveries?limit=100")).body.items.map(({ state }) => state);
  await until(
    "the deliveries to end",
    async () => (await states()).every((state) => state === "acknowledged"),
  );
  await eventually({ "/step": count, "/hook": count }, () => Object.fromEntries(receiver.seen));
});

Deno.test("on a machine whose cores are all taken, executions whose receiver answers succeed", async () => {
  const count = 60;
  await using receiver = new Receiver({ isHeld: false });
  await using folder = await WebhookFolder.make(WORKFLOWS(receiver.url("/step"), "60s"));
  await using weir = await folder.start({ WEBHOOK_CONNECT_TIMEOUT: "3s" });
  const begin = await triggerOf(weir.httpAddress);
  await using burners = new AsyncDisposableStack();
  for (let burner = 0; burner < BURNERS; burner++) {
    burners.use(new ChildProcess("sh", { args: ["-c", LOOP], isSilent: true }));
  }
  const ids = await begin(count);
  assertEquals(await ends(weir.httpAddress, ids), { succeeded: count });
  // The program has the priority of the test.
  if (Deno.build.os !== "linux" || os.getPriority(0) > WEBHOOK_NICENESS) return;
  assertEquals((await nicenesses(weir.pid)).has(WEBHOOK_NICENESS), true);
});
