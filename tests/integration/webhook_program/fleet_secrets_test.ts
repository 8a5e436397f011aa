import { assert, assertEquals } from "#assert";
import { POSTGRES_USER } from "../../harness/postgres_folder.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needing } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { ADMIN_TOKEN, type WebhookCalls } from "../../harness/webhook_calls.ts";
import { webhookCall } from "../../harness/webhook_client.ts";
import { WebhookFleet } from "../../harness/webhook_fleet.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { WebhookServed } from "../../harness/webhook_served.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();
const installed = needing("postgres");

const WRONG_PASSWORD = "wr:ong@pass-0815";
const TRACE = { LOG_LEVEL: "trace" };

installed.test("the password of the database is in no log, error, list, metric or debug page", async () => {
  await using receiver = await WebhookReceiver.start();
  await using fleet = await WebhookFleet.open({ size: 1, env: TRACE });
  const { server, database, first } = fleet;
  const WEBHOOK_STORE = server.url(database).replace(
    encodeURIComponent(POSTGRES_USER.password),
    encodeURIComponent(WRONG_PASSWORD),
  );
  const WEBHOOK_ENCRYPTION_KEY = new Uint8Array(32).toBase64();
  await using stranger = await WebhookServed.open({
    env: { ...TRACE, WEBHOOK_STORE, WEBHOOK_ENCRYPTION_KEY },
  });
  await fleet.start();
  await fleet.endpoint(receiver, "/hook");
  await fleet.event({ n: 1 }, "event-1");
  await until("the event to be delivered", () => fleet.isDelivered());
  const answers = await first.everything();

  await stranger.start({ isAwaited: false });
  await until("the wrong password to be reported", async () => {
    const { status, text } = await stranger.health();
    answers.push(text);
    return status === 503 && text.includes("password authentication failed");
  });
  answers.push(...await stranger.everything());

  // While the database is unavailable, and when it is back.
  await server.stop("immediate");
  const { status } = await event(first, answers);
  assertEquals(status, 503);
  await until("health to show it", async () => {
    const health = await first.health();
    answers.push(health.text);
    return health.status === 503;
  });
  answers.push(...await first.everything());
  await server.start();
  await until("events to be taken again", async () => (await event(first, answers)).status === 202);
  assertEquals(await first.stop(), 0);
  await stranger.stop();

  const written = [...answers, ...fleet.lines, ...stranger.lines, ...await refusals(server.url(database))];
  assertEquals(written.filter((text) => hidden().some((form) => text.includes(form))), []);
  // What was looked through holds what it should.
  assert(written.length > 50 && written.some((text) => text.includes(`127.0.0.1:${server.port}`)));
});

/** The passwords as they may stand somewhere. */
function hidden(): readonly string[] {
  return [POSTGRES_USER.password, WRONG_PASSWORD].flatMap((password) => [
    password,
    encodeURIComponent(password),
    encodeURI(password),
    btoa(password),
  ]);
}

async function event({ base }: WebhookCalls, answers: string[]): Promise<{ readonly status: number }> {
  const body = { event: "agent.reply.completed", data: {} };
  const answered = await webhookCall(`${base}/api/v1/events`, { token: ADMIN_TOKEN, body });
  answers.push(JSON.stringify([...answered.headers]), JSON.stringify(answered.body));
  return answered;
}

/** The errors of addresses that cannot be valid; nothing starts. */
async function refusals(url: string): Promise<string[]> {
  const wrong = [
    url.replace(/:\d+\//, ":99999/"),
    `${url}?sslmode=sometimes`,
    `${url}?sslrootcert=/nowhere/ca.pem&sslmode=verify-full&colour=red`,
    url.replace("@127", "@@127"),
  ];
  const texts: string[] = [];
  for (const address of wrong) {
    const key = new Uint8Array(32).toBase64();
    const env = { ...TRACE, WEBHOOK_STORE: address, WEBHOOK_ENCRYPTION_KEY: key };
    const started = await ServeFixture.start({ env }).then(
      async (service) => await service[Symbol.asyncDispose](),
      (error: unknown) => void texts.push(Deno.inspect(error)),
    );
    assertEquals(started, undefined);
  }
  assertEquals(texts.filter((text) => text.includes("WEBHOOK_STORE")).length, wrong.length);
  return texts;
}
