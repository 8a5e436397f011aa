import { assert, assertEquals } from "#assert";
import { PROVIDER_HEADERS } from "../../harness/provider_signatures.ts";
import { until } from "../../harness/until.ts";
import { webhookCall } from "../../harness/webhook_client.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import { WebhookProcess } from "../../harness/webhook_process.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";

const CRM_TOKEN = "crm-token-of-the-environment-4711";
const HEADER = "value-of-a-static-header-0815";
const HEADERS = { "x-tenant": HEADER };
const PATHS = ["/hook", "/reset", "/refuses"];
const EVENT = { event: "agent.reply.completed", data: { n: 1 } };
const PROVIDER_SECRET = "secret-that-a-provider-gave-2342";
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

Deno.test("no key and no secret is in clear in a log, an error, a list, or a file of the store", async () => {
  await using receiver = await WebhookReceiver.start();
  receiver.react = ({ path }) => ({ "/crm": 500, "/reset": "reset" as const, "/refuses": 400 })[path] ?? 200;
  await using weir = await WebhookProcess.open({
    env: { LOG_LEVEL: "trace", WORKFLOW_ENV: "CRM_TOKEN", CRM_TOKEN, WEBHOOK_ENCRYPTION_KEY: OLD_KEY },
    workflows: { "order-intake.yaml": workflow(receiver.url), "broken.yaml": broken(receiver.url) },
  });
  await weir.start();
  const made = await makeAndChange(weir, receiver);
  const answers = await useWellAndBadly(weir, made);
  await until("everything to have been tried", async () => {
    return await weir.isCarriedOut() &&
      PATHS.every((path) =>
        receiver.receptions.some((one) => one.path === path && one.headers["x-svc-event"] === EVENT.event)
      );
  });
  answers.push(...await weir.everything());
  const running = await storeFiles(weir);
  assert(running.length >= 3, "the write-ahead log is there while it runs");
  assertEquals(await weir.stop(), 0);
  const stopped = await storeFiles(weir);

  const found: string[] = [];
  for (const [what, secret] of made.hidden) {
    for (const form of formsOf(secret)) {
      if (weir.lines.some((line) => line.includes(form))) found.push(`${what} in the log`);
      if (answers.some((answer) => answer.includes(form))) found.push(`${what} in an answer`);
      const files = [...running, ...stopped].filter(({ text }) => text.includes(form));
      found.push(...files.map(({ name }) => `${what} in ${name}`));
    }
  }
  assertEquals(found, []);
  // What is looked for is what was used, and what is looked through holds what it should.
  assert(weir.lines.length > 10 && running.some(({ text }) => text.includes(EVENT.event)));
  assert(receiver.receptions.some((one) => one.headers["x-tenant"] === HEADER));
  assert(receiver.receptions.some((one) => one.headers.authorization === `Bearer ${CRM_TOKEN}`));
  assertEquals(receiver.problems, []);
});

interface Made {
  /** Secrets by what they are. */
  readonly hidden: ReadonlyMap<string, string>;
  /** Keys of triggers by their names. */
  readonly triggers: ReadonlyMap<string, string>;
  readonly eventKey: string;
}

/** Everything that has a secret is made, and its secret is changed. */
async function makeAndChange(weir: WebhookProcess, receiver: WebhookReceiver): Promise<Made> {
  const hidden = new Map([
    ["the encryption key", OLD_KEY],
    ["the administration token", ADMIN_TOKEN],
    ["an environment variable", CRM_TOKEN],
    ["a static header", HEADER],
  ]);
  for (const path of PATHS) {
    const endpoint = await weir.endpoint(receiver, path, { headers: HEADERS, standardWebhooks: true });
    hidden.set(`the secret of ${path}`, endpoint.secret);
    const rotated = await weir.api("POST", `/endpoints/${endpoint.id}/rotate`, { activeIn: "1h" });
    hidden.set(`the next secret of ${path}`, rotated.body.secret);
    await weir.api("PATCH", `/endpoints/${endpoint.id}`, { description: "changed", headers: HEADERS });
    await weir.api("POST", `/endpoints/${endpoint.id}/check`);
  }
  const triggers = new Map<string, string>();
  for (const name of ["order-intake", "broken"]) {
    const trigger = await weir.made("/triggers", { name, workflow: name });
    const { body: { key } } = await weir.api("POST", `/triggers/${trigger.id}/rotate`);
    triggers.set(name, key);
    hidden.set(`the key of ${name}`, trigger.key).set(`the next key of ${name}`, key);
  }
  const verify = { scheme: "github", secret: PROVIDER_SECRET };
  const signed = await weir.made("/triggers", { name: "signed", workflow: "order-intake", verify });
  const { body: next } = await weir.api("POST", `/triggers/${signed.id}/rotate`);
  hidden.set("the secret of a provider", PROVIDER_SECRET).set("the next secret of signed calls", next.secret);
  const { key: eventKey } = await weir.made("/event-keys", { name: "agent", kinds: ["agent.*"] });
  hidden.set("the event key", eventKey);
  return { hidden, triggers, eventKey };
}

/** Answers what was answered. */
async function useWellAndBadly(weir: WebhookProcess, { triggers, eventKey }: Made): Promise<string[]> {
  const answers: string[] = [];
  const statuses: number[] = [];
  const tell = async (path: string, options: Parameters<typeof webhookCall>[1]) => {
    const { status, headers, body } = await webhookCall(`${weir.base}/api/v1${path}`, options);
    answers.push(`${path} ${status} ${JSON.stringify([...headers])} ${JSON.stringify(body)}`);
    statuses.push(status);
  };
  await tell("/events", { token: eventKey, body: EVENT });
  for (const [name, token] of triggers) {
    const path = `/workflows/triggers/${name}`;
    await tell(path, { token, body: { n: 1 } });
    await tell(path, { token, body: "{" });
    await tell("/workflows/triggers/other", { token, body: {} });
    await tell(path, { token: `${token}x`, body: {} });
    await tell("/endpoints", { token, method: "GET" });
    await tell("/events", { token, body: EVENT });
  }
  const path = "/workflows/triggers/signed";
  const body = '{"n":1}';
  await tell(path, { body, headers: PROVIDER_HEADERS.github({ secret: PROVIDER_SECRET, body }) });
  await tell(path, { body, headers: PROVIDER_HEADERS.github({ secret: "another secret", body }) });
  const wrong = { verify: { scheme: "standard-webhooks", secret: PROVIDER_SECRET } };
  await tell("/triggers", { token: ADMIN_TOKEN, body: { name: "odd", workflow: "w", ...wrong } });
  await tell("/events", { token: eventKey, body: { event: "other.kind", data: {} } });
  await tell("/endpoints", { token: ADMIN_TOKEN, body: { url: "nowhere", headers: HEADERS } });
  const odd = { url: "https://receiver.example/", headers: { "x-tenant": `${HEADER}\n` } };
  await tell("/endpoints", { token: ADMIN_TOKEN, body: odd });
  const calls = [202, 400, 404, 401, 401, 401];
  assertEquals(statuses, [202, ...calls, ...calls, 202, 401, 422, 403, 422, 422]);
  return answers;
}

/** The files next to the store, byte for byte. */
async function storeFiles({ folder: { path } }: WebhookProcess): Promise<{ name: string; text: string }[]> {
  const files: { name: string; text: string }[] = [];
  for await (const { name, isFile } of Deno.readDir(path)) {
    if (!isFile) continue;
    files.push({ name, text: new TextDecoder("latin1").decode(await Deno.readFile(`${path}/${name}`)) });
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
