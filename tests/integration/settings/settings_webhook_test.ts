import { assertEquals } from "#assert";
import { join } from "node:path";
import { freePort } from "../../harness/free_port.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { eventually, until } from "../../harness/until.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import type { Env } from "./settings_bed.ts";

const EVENT = { body: { event: "a", data: {} } };

/** A service with webhooks, as a case looks at it. */
interface WebhookLook {
  readonly service: ServeFixture;
  readonly folder: WebhookFolder;
  /** Address of the HTTP port. */
  readonly http: string;
}

/** The evidence that sets two services with webhooks apart. */
interface WebhookComparison {
  /** Settings that both have; an empty one is not set. */
  readonly env?: Env;
  /** Workflow files of both. */
  readonly workflows?: Readonly<Record<string, string>>;
  look(look: WebhookLook): unknown;
  readonly unset: unknown;
  readonly set: unknown;
}

/** Looks at a service without the changed settings and at one with them, each with its own store. */
async function compare(changed: Env, { env = {}, workflows, look, unset, set }: WebhookComparison) {
  const seen: unknown[] = [];
  for (const extra of [{}, changed]) {
    await using folder = await WebhookFolder.make(workflows);
    seen.push(await lookAt(folder, { ...env, ...extra }, look));
  }
  assertEquals(seen, [unset, set]);
}

/** Starts a service in this folder and looks at it. */
async function lookAt<T>(
  folder: WebhookFolder,
  env: Env,
  look: (look: WebhookLook) => T,
): Promise<Awaited<T>> {
  await using service = await ServeFixture.start({ env: { ...folder.env, ...env } });
  await eventually(false, async () => (await service.page("/healthcheck")).includes("webhooks: starting"));
  return await look({ service, folder, http: service.httpAddress });
}

/** The status of a call of the API at this address, or of another path. */
async function statusAt(
  address: string,
  path: string,
  { token = ADMIN_TOKEN, body }: { readonly token?: string; readonly body?: object } = {},
): Promise<number | "refused"> {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const posted = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(new URL(path, `http://${address}/api/v1/`), { headers, ...posted })
    .catch(() => undefined);
  await response?.body?.cancel();
  return response?.status ?? "refused";
}

/** The status of a posted event, and the code where it is refused. */
async function eventAnswer(http: string): Promise<unknown> {
  const { status, body } = await api(http, "/events", EVENT);
  return body.code ?? status;
}

/** Makes an endpoint and posts so many events; answers what became of their first attempts: a status, or a kind of error. */
async function firstAttempts(http: string, url: string, count = 1): Promise<readonly unknown[]> {
  assertEquals((await api(http, "/endpoints", { body: { url } })).status, 201);
  for (let n = 0; n < count; n++) await api(http, "/events", EVENT);
  return await until("the first attempts", async () => {
    const { items } = (await api(http, "/deliveries")).body;
    const first = items.map(({ attempts }) => attempts[0]);
    return first.length === count && first.every((one) => one?.["finishedAt"] !== undefined) &&
      first.map((one) => one?.["errorKind"] ?? one?.status);
  });
}

/** Starts the workflow so many times; answers the status of each execution once all have ended, or why it was refused. */
async function executions(http: string, workflow: string, count = 1): Promise<readonly unknown[]> {
  const { body: { key } } = await api(http, "/triggers", { body: { name: workflow, workflow } });
  for (let n = 0; n < count; n++) {
    const { body } = await api(http, `/workflows/triggers/${workflow}`, { token: key, body: { n } });
    if (body.code !== undefined) return [body.code];
  }
  return await until("the executions to end", async () => {
    const { items } = (await api(http, "/executions")).body;
    const statuses = items.map(({ status }) => status);
    return statuses.length === count && !statuses.some((status) => /queued|running/.test(String(status))) &&
      items.map(({ status, output }) => (output as { path?: string } | undefined)?.path ?? status);
  });
}

function requestWorkflow(url: string): string {
  return `workflow: ask\nsteps:\n  - name: ask\n    request: { method: POST, url: "${url}", timeout: 2m }\n`;
}

/** A metric of the webhook service. */
async function metric({ service }: WebhookLook, name: string): Promise<number> {
  return (await service.stats())[`ratelimit.webhooks.${name}`] ?? 0;
}

/** Refuses a key over a year, and reports that. */
const REFUSING = `domain: d
descriptors:
- key: k
  events: [over_limit]
  rate_limit: { unit: year, requests_per_unit: 0 }
`;

const OWN = `127.0.0.1:${freePort()}`;

/** Tests that compare a service without a setting to one with it. */
const CASES: Readonly<Record<string, readonly [changed: Env, comparison: WebhookComparison]>> = {
  "WEBHOOK_STORE: the webhook service at all": [{ WEBHOOK_STORE: "" }, {
    look: ({ http }) => statusAt(http, "workflows/triggers/a", { token: "wrong", body: {} }),
    unset: 401,
    set: 404,
  }],
  "WEBHOOK_STORE_MAX_BYTES: an event refused as the store is larger": [{ WEBHOOK_STORE_MAX_BYTES: "1" }, {
    async look(look) {
      await until("the size", async () => await metric(look, "store_used_bytes") > 0);
      return await eventAnswer(look.http);
    },
    unset: 202,
    set: "store_full",
  }],
  "WEBHOOK_MAX_BACKLOG: an event refused as its endpoint has so many": [{ WEBHOOK_MAX_BACKLOG: "2" }, {
    async look(look) {
      const endpoint = { url: "http://127.0.0.1:9/", enabled: false };
      assertEquals(await statusAt(look.http, "endpoints", { body: endpoint }), 201);
      assertEquals([await eventAnswer(look.http), await eventAnswer(look.http)], [202, 202]);
      await until("the measurement", async () => {
        const max = await metric(look, "max_backlog");
        return max > 2 || max === await metric(look, "largest_backlog") && max === 2;
      });
      return await eventAnswer(look.http);
    },
    unset: 202,
    set: "backlog_full",
  }],
  "WORKFLOW_ENV, WORKFLOW_DIRECTORY: a variable that a workflow reads": [{ WORKFLOW_ENV: "PATH" }, {
    workflows: { "path.yaml": 'workflow: path\nsteps:\n  - name: a\n    set: { path: "{{ env.PATH }}" }\n' },
    look: ({ http }) => executions(http, "path"),
    unset: ["workflow_unavailable"],
    set: [Deno.env.get("PATH")],
  }],
  "RATE_LIMIT_EVENTS_MAX_PER_SECOND: events of rules suppressed": [
    { RATE_LIMIT_EVENTS_MAX_PER_SECOND: "0" },
    {
      async look({ http, service }) {
        const endpoint = { url: "http://127.0.0.1:9/", events: ["ratelimit.over_limit"], enabled: false };
        assertEquals(await statusAt(http, "endpoints", { body: endpoint }), 201);
        await Deno.writeTextFile(join(service.rulesFolder, "d.yaml"), REFUSING);
        const body = { domain: "d", descriptors: [{ entries: [{ key: "k", value: "v" }] }] };
        await eventually(429, async () => (await service.ask(body)).status);
        return await until("an event", async () => {
          const { items } = (await api(http, "/events")).body;
          const stats = await service.stats();
          const counts = [stats["ratelimit.events.suppressed"], stats["ratelimit.events.dropped"]];
          const isSent = items.some(({ event }) => event === "ratelimit.over_limit");
          return (isSent || counts[0] !== 0) && [isSent, ...counts];
        });
      },
      unset: [true, 0, 0],
      set: [false, 1, 0],
    },
  ],
  "ADMIN_TOKEN: the administration at all": [{ ADMIN_TOKEN: "" }, {
    look: async (
      { http },
    ) => [await statusAt(http, "endpoints"), await statusAt(http, "endpoints", { token: "b" })],
    unset: [200, 401],
    set: [404, 404],
  }],
  "ADMIN_ADDR: the administration at its own address": [{ ADMIN_ADDR: OWN }, {
    look: async ({ http, service }) => [
      await statusAt(http, "endpoints"),
      await statusAt(OWN, "endpoints"),
      await statusAt(http, "events", EVENT),
      await statusAt(service.debugAddress, "endpoints"),
    ],
    unset: [200, "refused", 202, 200],
    set: [404, 200, 202, 200],
  }],
  "TRIGGER_ADDR: triggers and posted events at their own address, and nothing else there": [
    { TRIGGER_ADDR: OWN },
    {
      async look({ http }) {
        const seen = [];
        for (const address of [http, OWN]) {
          seen.push(
            await statusAt(address, "workflows/triggers/a", { token: "wrong", body: {} }),
            await statusAt(address, "events", EVENT),
            await statusAt(address, "events"),
            await statusAt(address, "/json"),
          );
        }
        return [...seen, await statusAt(OWN, "endpoints")];
      },
      unset: [401, 202, 200, 405, "refused", "refused", "refused", "refused", "refused"],
      set: [404, 404, 200, 405, 401, 202, 405, 404, 404],
    },
  ],
};

for (const [name, [changed, comparison]] of Object.entries(CASES)) {
  Deno.test(`setting ${name}`, () => compare(changed, comparison));
}

Deno.test("WEBHOOK_RETENTION: finished work removed", async () => {
  await using folder = await WebhookFolder.make();
  await lookAt(folder, {}, ({ http }) => api(http, "/events", EVENT));
  const ids = async ({ http }: WebhookLook) =>
    (await api(http, "/events")).body.items.filter(({ event }) => event === "a").length;
  await lookAt(folder, {}, async (look) => assertEquals(await ids(look), 1));
  await lookAt(folder, { WEBHOOK_RETENTION: "1ms" }, (look) => eventually(0, () => ids(look)));
});

/** The concurrency that the setting allows, and the observed one of three pieces of work. */
const AT_ONCE = [["", 3], ["1", 1]] as const;

for (const [limit, atOnce] of AT_ONCE) {
  Deno.test(`WEBHOOK_MAX_IN_FLIGHT=${limit}, WORKFLOW_MAX_RUNNING=${limit}: ${atOnce} of 3 run concurrently`, async () => {
    const env = { WEBHOOK_MAX_IN_FLIGHT: limit, WORKFLOW_MAX_RUNNING: limit, WEBHOOK_TIMEOUT: "2m" };
    await using deliveries = new SlowReceiver(atOnce);
    await using requests = new SlowReceiver(atOnce);
    await using folder = await WebhookFolder.make({ "ask.yaml": requestWorkflow(requests.url) });
    await lookAt(folder, env, async ({ http }) => {
      await firstAttempts(http, deliveries.url, 3);
      await executions(http, "ask", 3);
    });
    assertEquals([deliveries.most, requests.most], [atOnce, atOnce]);
  });
}

Deno.test("WEBHOOK_PROXY: deliveries that go to the proxy", async () => {
  await using proxy = await WebhookReceiver.start();
  await using receiver = await WebhookReceiver.start();
  await compare({ WEBHOOK_PROXY: new URL(proxy.url).origin }, {
    async look({ http }) {
      await firstAttempts(http, receiver.url);
      return [receiver.receptions.length, proxy.receptions.length];
    },
    unset: [1, 0],
    set: [1, 1],
  });
});

Deno.test("WORKFLOW_ALLOW_CIDRS: a request of a workflow to an address inside the range", async () => {
  await using receiver = await WebhookReceiver.start();
  await compare({ WORKFLOW_ALLOW_CIDRS: "127.0.0.0/8" }, {
    env: { WORKFLOW_ALLOW_CIDRS: "" },
    workflows: { "ask.yaml": requestWorkflow(receiver.url) },
    look: ({ http }) => executions(http, "ask"),
    unset: ["failed"],
    set: ["succeeded"],
  });
});

Deno.test({
  ...needs(["openssl"], "WEBHOOK_CA_FILE: a receiver of an authority of one's own trusted"),
  async fn() {
    await using certificates = await makeCertificates();
    const { server: { certFile, keyFile }, authority } = certificates;
    const pair = { cert: await Deno.readTextFile(certFile), key: await Deno.readTextFile(keyFile) };
    const where = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    await using server = Deno.serve({ ...where, ...pair }, () => new Response());
    await compare({ WEBHOOK_CA_FILE: authority.certFile }, {
      look: ({ http }) => firstAttempts(http, `https://127.0.0.1:${server.addr.port}/`),
      unset: ["tls"],
      set: [200],
    });
  },
});

/** Of several requests the next ones come meanwhile, where they may. */
const SOON_MS = 100;

/** A receiver that answers each request after a while, the first when there are so many, and knows how many it had at the same time. */
class SlowReceiver implements AsyncDisposable {
  /** Most requests that were open at the same time. */
  most = 0;
  #open = 0;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #together = Promise.withResolvers<void>();

  constructor(atOnce: number) {
    this.#server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
      this.most = Math.max(this.most, ++this.#open);
      await request.body?.cancel();
      if (this.most >= atOnce) this.#together.resolve();
      await this.#together.promise;
      await new Promise((resolve) => setTimeout(resolve, SOON_MS));
      this.#open--;
      return new Response("{}");
    });
  }

  /** Its address. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}/`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#together.resolve();
    await this.#server.shutdown();
  }
}
