import { assert, assertEquals } from "@std/assert";
import { until } from "../support/until.ts";
import { webhookCall } from "../support/webhook_client.ts";
import { ADMIN_TOKEN, WebhookProcess } from "../support/webhook_process.ts";
import { WebhookReceiver } from "../support/webhook_receiver.ts";

const CRM_TOKEN = "crm-token-of-the-environment-4711";
const HEADER = "value-of-a-static-header-0815";
const OLD_KEY = new Uint8Array(32).fill(7).toBase64();
const workflow = (url: string) =>
  `workflow: order-intake
steps:
  - name: enrich
    request:
      method: POST
      url: ${url}/crm
      headers: { authorization: "Bearer {{ env.CRM_TOKEN }}" }
      query: { token: "{{ env.CRM_TOKEN }}" }
      body: { token: "{{ env.CRM_TOKEN }}", n: "{{ input.n }}" }
    retry: { attempts: 2, backoff: 1ms }
`;
const broken = (url: string) =>
  `workflow: broken
steps:
  - name: enrich
    request: { url: "${url}/{{ input.missing }}", headers: { authorization: "Bearer {{ env.CRM_TOKEN }}" } }
`;

Deno.test("no key and no secret stands in clear in a log, an error, a list, or a file of the store", async () => {
  await using receiver = await WebhookReceiver.start();
  receiver.react = ({ path }) => ({ "/crm": 500, "/reset": "reset" as const, "/refuses": 400 })[path] ?? 200;
  await using weir = await WebhookProcess.open({
    env: { LOG_LEVEL: "trace", WORKFLOW_ENV: "CRM_TOKEN", CRM_TOKEN, WEBHOOK_ENCRYPTION_KEY: OLD_KEY },
    workflows: { "order-intake.yaml": workflow(receiver.url), "broken.yaml": broken(receiver.url) },
  });
  await weir.start();
  const hidden = new Map<string, string>([["the encryption key", OLD_KEY], [
    "the administration token",
    ADMIN_TOKEN,
  ]]);
  hidden.set("an environment variable", CRM_TOKEN).set("a static header", HEADER);

  // Everything that has a secret is made, and its secret is changed.
  const headers = { "x-tenant": HEADER };
  for (const path of ["/hook", "/reset", "/refuses"]) {
    const endpoint = await weir.endpoint(receiver, path, { headers, standardWebhooks: true });
    hidden.set(`the secret of ${path}`, endpoint.secret);
    const rotated = await weir.api("POST", `/endpoints/${endpoint.id}/rotate`, { activeIn: "1h" });
    hidden.set(`the next secret of ${path}`, rotated.body.secret);
    await weir.api("PATCH", `/endpoints/${endpoint.id}`, { description: "changed", headers });
    await weir.api("POST", `/endpoints/${endpoint.id}/check`);
  }
  const triggers = new Map<string, string>();
  for (const name of ["order-intake", "broken"]) {
    const trigger = await weir.made("/triggers", { name, workflow: name });
    const rotated = await weir.api("POST", `/triggers/${trigger.id}/rotate`);
    triggers.set(name, rotated.body.key);
    hidden.set(`the key of ${name}`, trigger.key).set(`the next key of ${name}`, rotated.body.key);
  }
  const eventKey = await weir.made("/event-keys", { name: "agent", kinds: ["agent.*"] });
  hidden.set("the event key", eventKey.key);

  // They are used well and badly.
  const answers: string[] = [];
  const tell = async (path: string, options: Parameters<typeof webhookCall>[1]) => {
    const { status, headers, body } = await webhookCall(`${weir.base}/api/v1${path}`, options);
    answers.push(`${path} ${status} ${JSON.stringify([...headers])} ${JSON.stringify(body)}`);
    return status;
  };
  const event = { event: "agent.reply.completed", data: { n: 1 } };
  const statuses = [await tell("/events", { token: eventKey.key, body: event })];
  for (const [name, token] of triggers) {
    const path = `/workflows/triggers/${name}`;
    statuses.push(await tell(path, { token, body: { n: 1 } }));
    statuses.push(await tell(path, { token, body: "{" }));
    statuses.push(await tell("/workflows/triggers/other", { token, body: {} }));
    statuses.push(await tell(`${path}?key=${"x"}`, { token: `${token}x`, body: {} }));
    statuses.push(await tell("/endpoints", { token, method: "GET" }));
    statuses.push(await tell("/events", { token, body: event }));
  }
  statuses.push(await tell("/events", { token: eventKey.key, body: { event: "other.kind", data: {} } }));
  statuses.push(await tell("/endpoints", { token: ADMIN_TOKEN, body: { url: "nowhere", headers } }));
  const odd = { url: `${receiver.url}/x`, headers: { "x-tenant": `${HEADER}\n` } };
  statuses.push(await tell("/endpoints", { token: ADMIN_TOKEN, body: odd }));
  const calls = [202, 400, 404, 401, 401, 401];
  assertEquals(statuses, [202, ...calls, ...calls, 403, 422, 422]);
  await until("everything to have been tried", async () => {
    return await weir.isCarriedOut() &&
      ["/hook", "/reset", "/refuses"].every((path) =>
        receiver.receptions.some((one) => one.path === path && one.headers["x-svc-event"] === event.event)
      );
  });

  const lists = ["endpoints", "triggers", "event-keys", "events", "deliveries", "executions", "audit"];
  for (const list of lists) {
    const { status, body } = await weir.api("GET", `/${list}?limit=200`);
    assertEquals([list, status, body.items.length > 0], [list, 200, true]);
    answers.push(JSON.stringify(body));
    for (const { id } of body.items.slice(0, 5)) {
      answers.push(JSON.stringify((await weir.api("GET", `/${list}/${id}`)).body));
    }
  }
  for (const path of ["/metrics", "/stats", "/rlconfig", "/"]) {
    answers.push(await (await fetch(`http://${weir.weir.debugAddress}${path}`)).text());
  }
  const running = await storeFiles(weir);
  assert(running.length >= 3, "the write-ahead log is there while it runs");
  assertEquals(await weir.stop(), 0);
  const stopped = await storeFiles(weir);

  const found: string[] = [];
  for (const [what, secret] of hidden) {
    for (const form of formsOf(secret)) {
      if (weir.lines.some((line) => line.includes(form))) found.push(`${what} in the log`);
      if (answers.some((answer) => answer.includes(form))) found.push(`${what} in an answer`);
      for (const { name, text } of [...running, ...stopped]) {
        if (text.includes(form)) found.push(`${what} in ${name}`);
      }
    }
  }
  assertEquals(found, []);
  // What is looked for is what was used, and what is looked through holds what it should.
  assert(weir.lines.length > 10 && running.some(({ text }) => text.includes("agent.reply.completed")));
  assert(receiver.receptions.some((one) => one.headers["x-tenant"] === HEADER));
  assert(receiver.receptions.some((one) => one.headers.authorization === `Bearer ${CRM_TOKEN}`));
  assertEquals(receiver.problems.filter((text) => !text.includes("to /crm")), []);
});

/** The files beside the store, byte for byte. */
async function storeFiles({ storePath }: WebhookProcess): Promise<{ name: string; text: string }[]> {
  const folder = storePath.slice(0, storePath.lastIndexOf("/"));
  const files: { name: string; text: string }[] = [];
  for await (const { name } of Deno.readDir(folder)) {
    files.push({ name, text: new TextDecoder("latin1").decode(await Deno.readFile(`${folder}/${name}`)) });
  }
  return files;
}

/** A secret as it may stand somewhere: as it was shown, without its prefix, or the bytes that it stands for. */
function formsOf(secret: string): string[] {
  const bare = secret.replace(/^(?:whsec_|svct_|svce_)/, "");
  const forms = [secret, bare];
  if (secret.startsWith("whsec_")) forms.push(new TextDecoder("latin1").decode(Uint8Array.fromBase64(bare)));
  return forms;
}
