import { assert, assertEquals, assertMatch } from "@std/assert";
import { freePort } from "../../harness/free_port.ts";
import { until } from "../../harness/until.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { type Ran, ran, TOKEN } from "../../harness/administration_fixture.ts";
import { receiving } from "./webhooks_fixture.ts";

const WORKFLOW =
  'workflow: greet\nsteps:\n  - name: result\n    set: { greeting: "hello {{ input.name }}" }\n';

/** Fields of answers; which of them are there is what the test is about. */
interface Answer {
  readonly id: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly enabled: boolean;
  readonly secret: string;
  readonly key: string;
  readonly keys: readonly { readonly id: string }[];
  readonly timeoutMs: number;
  readonly ok: boolean;
  readonly count: number;
  readonly event: string;
  readonly data: unknown;
  readonly deliveries: number;
  readonly status: string;
  readonly output: unknown;
  readonly limit: unknown;
  readonly items: readonly Answer[];
}

/** Runs one command after the other against a service. */
class Console {
  readonly #environment: Readonly<Record<string, string>>;
  readonly url: string;
  /** What was shown once. */
  readonly secrets: string[] = [];
  /** Everything that was printed. */
  printed = "";

  constructor(url: string) {
    this.url = url;
    this.#environment = { WEIR_URL: url, ADMIN_TOKEN: TOKEN };
  }

  async run(...args: readonly string[]): Promise<Ran> {
    const result = await ran(args, { environment: this.#environment });
    this.printed += result.stdout + result.stderr;
    return result;
  }

  /** What a command that is fine prints. */
  async text(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args);
    assertEquals([code, stderr], [0, ""]);
    return stdout;
  }

  /** The answer as it came; the command has to be fine. */
  async json(...args: readonly string[]): Promise<Answer> {
    const { code, stdout, stderr } = await this.run(...args, "--json");
    assertEquals([code, stderr.replace(/^Save the (?:key|secret) now: it is shown only once\n/, "")], [
      0,
      "",
    ]);
    return JSON.parse(stdout);
  }
}

Deno.test("the commands over the administration of a running service", async (test) => {
  const folder = await Deno.makeTempDir();
  await using stack = new AsyncDisposableStack();
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  await Deno.mkdir(`${folder}/workflows`);
  await Deno.writeTextFile(`${folder}/workflows/greet.yaml`, WORKFLOW);
  await using weir = await ServeFixture.start({
    env: {
      WEBHOOK_STORE: `${folder}/weir.db`,
      WORKFLOW_DIRECTORY: `${folder}/workflows`,
      WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
      ADMIN_TOKEN: TOKEN,
    },
  });
  const url = `http://${weir.httpAddress}`;
  const weirConsole = new Console(url);
  await until("the store to be open", async () => (await weirConsole.run("audit")).code === 0);

  await test.step("an endpoint receives a signed event", () => endpointSteps(weirConsole));
  await test.step("a trigger starts a workflow", () => triggerSteps(weirConsole));
  await test.step("an event key posts what it may", () => eventKeySteps(weirConsole));
  await test.step("the audit log tells of it, page by page", () => auditSteps(weirConsole));

  await test.step("the wrong token is one line", async () => {
    const { code, stderr } = await ran(["audit"], { environment: { WEIR_URL: url, ADMIN_TOKEN: "wrong" } });
    assertEquals([code, stderr.trimEnd().split("\n").length], [1, 1]);
    assertMatch(stderr, /^Cannot run "audit": 401 .*; ADMIN_TOKEN or --token-file differs from the token/);
  });

  await test.step("each secret was shown once", () => {
    for (const secret of weirConsole.secrets) assertEquals(weirConsole.printed.split(secret).length - 1, 1);
    assertEquals(weirConsole.secrets.length, 5);
    assert(!weirConsole.printed.includes(TOKEN));
  });
});

async function endpointSteps(weirConsole: Console): Promise<void> {
  const port = `${freePort()}`;
  const url = `http://127.0.0.1:${port}/`;
  const added = await weirConsole.json("endpoints", "add", url, "--event", "agent.*");
  weirConsole.secrets.push(added.secret);
  assertEquals([added.url, added.events, added.enabled], [url, ["agent.*"], true]);
  // Commands of tests have a clock that stands still.
  const args = ["--port", port, "--secret", added.secret, "--tolerance", "1000000h"];
  await receiving(args, async (receiver) => {
    const posted = await weirConsole.json(
      "events",
      "post",
      "agent.reply.completed",
      "--data",
      '{"n":1.10}',
    );
    assertEquals(posted.deliveries, 1);
    await until(
      "the delivery",
      () => receiver.lines.some((line) => line.endsWith(", verified, responded with 200")),
    );
    assert(receiver.lines.includes('  {"event":"agent.reply.completed","data":{"n":1.10}}'));
    const filters = ["--endpoint", added.id, "--state", "acknowledged"];
    await until("it to be acknowledged", async () => {
      return (await weirConsole.json("deliveries", "list", ...filters)).items.length === 1;
    });
    const id = (await weirConsole.json("deliveries", "list")).items[0]?.id ?? "";
    assertEquals(
      (await weirConsole.run("deliveries", "resend", id)).stdout,
      `delivery ${id} has one more attempt queued\n`,
    );
    await until("it to come again", () => receiver.lines.some((line) => line.includes("(received 2 times)")));
    assertMatch((await weirConsole.run("deliveries", "why", id)).stdout, /^\S.+\n$/);
    assertMatch(
      (await weirConsole.run("deliveries", "show", id)).stdout,
      /\nattempts:\n {2}number .*\n {2}1 /,
    );
    const event = await weirConsole.json("events", "show", posted.id);
    assertEquals([event.event, event.data], ["agent.reply.completed", { n: 1.1 }]);
    await weirConsole.text("events", "erase", posted.id);
    assertEquals((await weirConsole.run("events", "list", "--event", "agent.reply.completed")).code, 0);
    assertEquals((await weirConsole.json("endpoints", "check", added.id)).ok, true);
    assertEquals(
      (await weirConsole.json("endpoints", "edit", added.id, "--disable", "--attempt-timeout", "5s"))
        .timeoutMs,
      5_000,
    );
    weirConsole.secrets.push(
      (await weirConsole.json("endpoints", "rotate", added.id, "--active-in", "0")).secret,
    );
    assertEquals(
      (await weirConsole.json("endpoints", "recover", added.id, "--since", "1h", "--dry-run")).count,
      0,
    );
    assertMatch((await weirConsole.run("endpoints", "show", added.id)).stdout, /^id .*\n/);
    await weirConsole.text("endpoints", "delete", added.id);
    assertEquals((await weirConsole.json("endpoints", "list")).items, []);
  });
}

async function triggerSteps(weirConsole: Console): Promise<void> {
  const made = await weirConsole.json("triggers", "create", "greet", "--workflow", "greet");
  weirConsole.secrets.push(made.key);
  const answer = await fetch(`${weirConsole.url}/api/v1/workflows/triggers/greet`, {
    method: "POST",
    headers: { authorization: `Bearer ${made.key}`, "content-type": "application/json" },
    body: '{"name":"Ada"}',
  });
  const { executionId } = await answer.json();
  await until("the execution to end", async () => {
    return (await weirConsole.json("executions", "show", executionId)).status === "succeeded";
  });
  assertEquals((await weirConsole.json("executions", "show", executionId)).output, {
    greeting: "hello Ada",
  });
  const listed = await weirConsole.json("executions", "list", "--state", "succeeded");
  assertEquals(listed.items.map((item: { id: string }) => item.id), [executionId]);
  const cancelled = await weirConsole.run("executions", "cancel", executionId);
  assertEquals(cancelled.code, 1);
  assertMatch(cancelled.stderr, /^Cannot run "executions cancel": 409 already_ended: .*\n$/);
  weirConsole.secrets.push((await weirConsole.json("triggers", "rotate", made.id)).key);
  const { keys } = await weirConsole.json("triggers", "show", made.id);
  await weirConsole.text("triggers", "revoke", made.id, keys[1]?.id ?? "");
  const limit = ["--limit-domain", "edge", "--limit-descriptor", "customer={{ input.name }}"];
  const edited = await weirConsole.json("triggers", "edit", made.id, ...limit, "--require-idempotency-key");
  assertEquals(edited.limit, { domain: "edge", descriptors: [{ customer: "{{ input.name }}" }] });
  assertEquals((await weirConsole.json("triggers", "edit", made.id, "--no-limit")).limit, undefined);
  const taken = await weirConsole.run("triggers", "create", "greet", "--workflow", "greet");
  assertMatch(taken.stderr, /^Cannot run "triggers create": 409 name_taken: .*\n$/);
  await weirConsole.text("triggers", "delete", made.id);
  assertEquals((await weirConsole.json("triggers", "list")).items, []);
}

async function eventKeySteps(weirConsole: Console): Promise<void> {
  const made = await weirConsole.json("event-keys", "create", "agents", "--kind", "agent.*");
  weirConsole.secrets.push(made.key);
  const environment = { WEIR_URL: weirConsole.url, ADMIN_TOKEN: made.key };
  const good = await ran(["events", "post", "agent.x", "--idempotency-key", "1", "--json"], {
    environment,
  });
  const again = await ran(["events", "post", "agent.x", "--idempotency-key", "1", "--json"], {
    environment,
  });
  assertEquals([good.code, again], [0, good]);
  const refused = await ran(["events", "post", "other.x"], { environment });
  assertEquals([refused.code, refused.stdout], [1, ""]);
  assertMatch(refused.stderr, /^Cannot run "events post": 403 /);
  assertEquals((await weirConsole.json("event-keys", "list")).items.length, 1);
  await weirConsole.text("event-keys", "delete", made.id);
}

async function auditSteps(weirConsole: Console): Promise<void> {
  const all = await weirConsole.run("audit", "--all", "--limit", "2");
  for (const action of ["endpoint.created", "trigger.created", "event_key.deleted"]) {
    assertMatch(all.stdout, new RegExp(`  admin +${action.replace(".", "\\.")} `));
  }
  const one = await weirConsole.run("audit", "--limit", "1", "--action", "endpoint.created");
  assertEquals([one.code, one.stdout.trimEnd().split("\n").length], [0, 2]);
}
