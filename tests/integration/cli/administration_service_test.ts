import { assert, assertEquals, assertMatch } from "#assert";
import { freePort } from "../../harness/free_port.ts";
import { until } from "../../harness/until.ts";
import { type Ran, ran, TOKEN } from "../../harness/administration_fixture.ts";
import type { AnswerBody } from "../../harness/webhook_client.ts";
import { WebhookFolder } from "../../harness/webhook_weir.ts";
import { receiving } from "./webhooks_fixture.ts";

const WORKFLOW =
  'workflow: greet\nsteps:\n  - name: result\n    set: { greeting: "hello {{ input.name }}" }\n';

/** Runs one command after the other against a service. */
class Console {
  readonly #environment: Readonly<Record<string, string>>;
  readonly url: string;
  /** The secret that was shown once. */
  readonly secrets: string[] = [];
  /** Everything that was printed. */
  printed = "";

  constructor(url: string) {
    this.url = url;
    this.#environment = { WEIR_URL: url, ADMIN_TOKEN: TOKEN };
  }

  async run(line: string): Promise<Ran> {
    const result = await ran(line, { environment: this.#environment });
    this.printed += result.stdout + result.stderr;
    return result;
  }

  /** The answer as it came, or nothing; the command has to be fine. */
  async json(line: string): Promise<AnswerBody> {
    const { code, stdout, stderr } = await this.run(`${line} --json`);
    assertEquals([code, stderr.replace(/^Save the (?:key|secret) now: it is shown only once\n/, "")], [
      0,
      "",
    ]);
    return JSON.parse(stdout === "" ? "null" : stdout);
  }
}

Deno.test("the commands over the administration of a running service", async (test) => {
  await using folder = await WebhookFolder.make({ "greet.yaml": WORKFLOW });
  await using weir = await folder.serve({ ADMIN_TOKEN: TOKEN }, { isAwaited: false });
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
  const added = await weirConsole.json(`endpoints add ${url} --event agent.*`);
  weirConsole.secrets.push(added.secret);
  assertEquals([added["url"], added["events"], added["enabled"]], [url, ["agent.*"], true]);
  // Commands of tests have a clock that stands still.
  const flags = ["--port", port, "--secret", added.secret, "--tolerance", "1000000h"];
  await receiving(flags, async (receiver) => {
    const posted = await weirConsole.json(`events post agent.reply.completed --data '{"n":1.10}'`);
    assertEquals(posted["deliveries"], 1);
    const verified = (line: string) => line.endsWith(", verified, responded with 200");
    await until("the delivery", () => receiver.lines.some(verified));
    assert(receiver.lines.includes('  {"event":"agent.reply.completed","data":{"n":1.10}}'));
    const listed = `deliveries list --endpoint ${added.id} --state acknowledged`;
    const { items: [delivery] } = await until("it to be acknowledged", async () => {
      const list = await weirConsole.json(listed);
      return list.items.length === 1 && list;
    });
    const id = delivery?.id ?? "";
    const { stdout: resent } = await weirConsole.run(`deliveries resend ${id}`);
    assertEquals(resent, `delivery ${id} has one more attempt queued\n`);
    await until("it to come again", () => receiver.lines.some((line) => line.includes("(received 2 times)")));
    assertMatch((await weirConsole.run(`deliveries why ${id}`)).stdout, /^\S.+\n$/);
    assertMatch(
      (await weirConsole.run(`deliveries show ${id}`)).stdout,
      /\nattempts:\n {2}number .*\n {2}1 /,
    );
    const event = await weirConsole.json(`events show ${posted.id}`);
    assertEquals([event["event"], event["data"]], ["agent.reply.completed", { n: 1.1 }]);
    await weirConsole.json(`events erase ${posted.id}`);
    assertEquals((await weirConsole.json(`endpoints test ${added.id}`))["ok"], true);
    const edited = await weirConsole.json(`endpoints edit ${added.id} --disable --attempt-timeout 5s`);
    assertEquals(edited["timeoutMs"], 5_000);
    weirConsole.secrets.push((await weirConsole.json(`endpoints rotate ${added.id} --active-in 0`)).secret);
    const recovery = await weirConsole.json(`endpoints recover ${added.id} --since 1h --dry-run`);
    assertEquals(recovery["count"], 0);
    await weirConsole.json(`endpoints delete ${added.id}`);
    assertEquals((await weirConsole.json("endpoints list")).items, []);
  });
}

async function triggerSteps(weirConsole: Console): Promise<void> {
  const made = await weirConsole.json("triggers create greet --workflow greet");
  weirConsole.secrets.push(made.key);
  const called = await weirConsole.json(`triggers call greet --data '{"name":"Ada"}'`);
  const { executionId } = called;
  const ended = await until("the execution to end", async () => {
    const execution = await weirConsole.json(`executions show ${executionId}`);
    return execution.status === "succeeded" && execution;
  });
  assertEquals(ended["output"], { greeting: "hello Ada" });
  const listed = await weirConsole.json("executions list --state succeeded");
  assertEquals(listed.items.map(({ id }) => id), [executionId]);
  const cancelled = await weirConsole.run(`executions cancel ${executionId}`);
  assertEquals(cancelled.code, 1);
  assertMatch(cancelled.stderr, /^Cannot run "executions cancel": 409 already_ended: .*\n$/);
  weirConsole.secrets.push((await weirConsole.json(`triggers rotate ${made.id}`)).key);
  const { keys } = await weirConsole.json(`triggers show ${made.id}`);
  await weirConsole.json(`triggers revoke ${made.id} ${(keys as AnswerBody["items"])[1]?.id}`);
  const limit = "--limit-domain edge --limit-descriptor 'customer={{ input.name }}'";
  const edited = await weirConsole.json(`triggers edit ${made.id} ${limit} --require-idempotency-key`);
  assertEquals(edited["limit"], { domain: "edge", descriptors: [{ customer: "{{ input.name }}" }] });
  assertEquals((await weirConsole.json(`triggers edit ${made.id} --no-limit`))["limit"], undefined);
  const taken = await weirConsole.run("triggers create greet --workflow greet");
  assertMatch(taken.stderr, /^Cannot run "triggers create": 409 name_taken: .*\n$/);
  await weirConsole.json(`triggers delete ${made.id}`);
  assertEquals((await weirConsole.json("triggers list")).items, []);
}

async function eventKeySteps(weirConsole: Console): Promise<void> {
  const made = await weirConsole.json("event-keys create agents --kind agent.*");
  weirConsole.secrets.push(made.key);
  const environment = { WEIR_URL: weirConsole.url, ADMIN_TOKEN: made.key };
  const post = () => ran("events post agent.x --idempotency-key 1 --json", { environment });
  const good = await post();
  assertEquals([good.code, await post()], [0, good]);
  const refused = await ran("events post other.x", { environment });
  assertEquals([refused.code, refused.stdout], [1, ""]);
  assertMatch(refused.stderr, /^Cannot run "events post": 403 /);
  assertEquals((await weirConsole.json("event-keys list")).items.length, 1);
  await weirConsole.json(`event-keys delete ${made.id}`);
}

async function auditSteps(weirConsole: Console): Promise<void> {
  const all = await weirConsole.run("audit --all --limit 2");
  for (const action of ["endpoint.created", "trigger.created", "event_key.deleted"]) {
    assertMatch(all.stdout, new RegExp(`  admin +${action.replace(".", "\\.")} `));
  }
  const one = await weirConsole.run("audit --limit 1 --action endpoint.created");
  assertEquals([one.code, one.stdout.trimEnd().split("\n").length], [0, 2]);
}
