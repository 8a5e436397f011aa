import { assertEquals } from "@std/assert";
import { join } from "node:path";
import { runCommand } from "../../../src/cli/commands.ts";
import { freePort } from "../../harness/free_port.ts";
import { until } from "../../harness/until.ts";
import { ADMIN_TOKEN, api, WebhookFolder, WebhookReceiver } from "../../harness/webhook_weir.ts";
import { ADMINISTRATION_CASES } from "./settings_administration_cases.ts";
import type { SettingCases } from "./settings_case.ts";
import { CERTIFICATES } from "./settings_certificates.ts";
import {
  compareWebhooks,
  endedExecutions,
  firstAttempts,
  lookAt,
  resultOf,
  SlowReceiver,
  triggerAnswer,
} from "./settings_webhook_bed.ts";
import { WEBHOOK_HEALTH_CASES } from "./settings_webhook_health_cases.ts";
import { LIMIT_EVENT_CASES } from "./settings_limit_event_cases.ts";
import { WEBHOOK_BOUND_CASES } from "./settings_webhook_bound_cases.ts";
import { WEBHOOK_POSTGRES_CASES } from "./settings_webhook_postgres_cases.ts";

const SHORT = "100ms";
/** Of several requests the next ones come meanwhile, where they may. */
const SOON_MS = 100;
/** How much may run at once by the setting, and how much of three pieces of work does. */
const AT_ONCE = [["", 3], ["1", 1]] as const;

/** Tests of the settings of the webhook service, its workflows and its administration. */
export const WEBHOOK_CASES: SettingCases = {
  ...WEBHOOK_POSTGRES_CASES,
  ...WEBHOOK_HEALTH_CASES,
  ...LIMIT_EVENT_CASES,
  ...ADMINISTRATION_CASES,
  ...WEBHOOK_BOUND_CASES,
  WEBHOOK_STORE: {
    sees: "the webhook service at all",
    async run() {
      await using folder = await WebhookFolder.make();
      const status = (WEBHOOK_STORE: string) =>
        lookAt(folder, { WEBHOOK_STORE }, async ({ http }) => {
          const response = await fetch(`http://${http}/api/v1/workflows/triggers/a`, { method: "POST" });
          await response.body?.cancel();
          return response.status;
        });
      assertEquals([await status(""), await status(folder.store)], [404, 401]);
    },
  },
  WEBHOOK_ENCRYPTION_KEY: {
    sees: "no key made beside the store",
    run: () => comparesKeyFiles({ WEBHOOK_ENCRYPTION_KEY: new Uint8Array(32).fill(7).toBase64() }),
  },
  WEBHOOK_ENCRYPTION_KEY_FILE: {
    sees: "a key made in another place",
    run: async () => {
      const folder = await Deno.makeTempDir({ prefix: "weir_key_" });
      try {
        await comparesKeyFiles({ WEBHOOK_ENCRYPTION_KEY_FILE: join(folder, "weir.key") });
        await Deno.stat(join(folder, "weir.key"));
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    },
  },
  WEBHOOK_MAX_BODY_BYTES: {
    sees: "a body refused for its size",
    run: () =>
      compareWebhooks({ WEBHOOK_MAX_BODY_BYTES: "40" }, {
        look: ({ http }) => triggerAnswer(http, "echo", { total: 1, more: "x".repeat(40) }),
        unset: 202,
        // Making the trigger is within the bound, the call is not.
        set: "too_large",
      }),
  },
  WEBHOOK_TIMEOUT: {
    sees: "an attempt given up earlier",
    async run() {
      await using receiver = new SlowReceiver(0, Infinity);
      const seen = await attemptsTo(receiver, { WEBHOOK_TIMEOUT: SHORT });
      assertEquals(seen, { set: "timeout", unset: 200 });
    },
  },
  WEBHOOK_CONNECT_TIMEOUT: {
    sees: "connecting given up earlier",
    async run() {
      using silent = new SilentListener();
      const seen = await attemptsTo(silent, { WEBHOOK_CONNECT_TIMEOUT: SHORT });
      const isGivenUp = (result: unknown) => result === "timeout" || result === "connect";
      assertEquals([seen.set, seen.unset].map(isGivenUp), [true, false]);
    },
  },
  WEBHOOK_RETENTION: {
    sees: "finished work removed",
    async run() {
      await using kept = await WebhookFolder.make();
      await using removed = await WebhookFolder.make();
      for (const folder of [kept, removed]) {
        await lookAt(folder, {}, ({ http }) => api(http, "/events", { body: { event: "a", data: {} } }));
      }
      const events = async ({ http }: { http: string }) => {
        const { items } = (await api(http, "/events")).body;
        return items.filter(({ event }) => event === "a").length;
      };
      // What is old is removed at the start of the work, which of this service is earlier.
      await lookAt(kept, {}, async (first) => {
        await lookAt(removed, { WEBHOOK_RETENTION: "1ms" }, async (second) => {
          await until("the event to be removed", async () => await events(second) === 0);
        });
        assertEquals(await events(first), 1);
      });
    },
  },
  WEBHOOK_MAX_IN_FLIGHT: {
    sees: "how many attempts run at once",
    async run() {
      for (const [WEBHOOK_MAX_IN_FLIGHT, atOnce] of AT_ONCE) {
        await using receiver = new SlowReceiver(SOON_MS, atOnce);
        await using folder = await WebhookFolder.make();
        const env = { WEBHOOK_MAX_IN_FLIGHT, WEBHOOK_TIMEOUT: "2m" };
        await lookAt(folder, env, ({ http }) => firstAttempts(http, receiver.url, 3));
        assertEquals(receiver.most, atOnce);
      }
    },
  },
  WEBHOOK_ALLOW_CIDRS: {
    sees: "an endpoint inside the range accepted",
    run: () =>
      compareWebhooks({ WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" }, {
        env: { WEBHOOK_ALLOW_CIDRS: "" },
        async look({ http }) {
          return (await api(http, "/endpoints", { body: { url: "http://127.0.0.1:9/" } })).status;
        },
        unset: 422,
        set: 201,
      }),
  },
  WEBHOOK_PROXY: {
    sees: "deliveries that go to the proxy",
    async run() {
      await using proxy = new WebhookReceiver();
      await using receiver = new WebhookReceiver();
      await compareWebhooks({ WEBHOOK_PROXY: new URL(proxy.url).origin }, {
        async look({ http }) {
          await firstAttempts(http, receiver.url);
          return [receiver.received.length, proxy.received.length];
        },
        unset: [1, 0],
        set: [1, 1],
      });
    },
  },
  WEBHOOK_CA_FILE: {
    sees: "a receiver of an authority of one's own trusted",
    tools: ["openssl"],
    async run() {
      const certificates = CERTIFICATES.value;
      const { certFile, keyFile } = certificates.server;
      const pair = { cert: await Deno.readTextFile(certFile), key: await Deno.readTextFile(keyFile) };
      const server = Deno.serve(
        { hostname: "127.0.0.1", port: 0, onListen: () => {}, ...pair },
        () => new Response(),
      );
      await compareWebhooks({ WEBHOOK_CA_FILE: certificates.authority.certFile }, {
        async look({ http }) {
          return resultOf((await firstAttempts(http, `https://127.0.0.1:${server.addr.port}/`))[0]);
        },
        unset: "tls",
        set: 200,
      });
      await server.shutdown();
    },
  },
  WORKFLOW_DIRECTORY: {
    sees: "the workflows of a folder",
    async run() {
      await using folder = await WebhookFolder.make();
      await compareWebhooks({ WORKFLOW_DIRECTORY: `${folder.path}/workflows` }, {
        env: { WORKFLOW_DIRECTORY: "" },
        look: ({ http }) => triggerAnswer(http, "echo"),
        unset: "workflow_unavailable",
        set: 202,
      });
    },
  },
  WORKFLOW_ENV: {
    sees: "a variable that a workflow reads",
    run: () =>
      compareWebhooks({ WORKFLOW_ENV: "PATH" }, {
        workflows: {
          "path.yaml": 'workflow: path\nsteps:\n  - name: a\n    set: { path: "{{ env.PATH }}" }\n',
        },
        async look({ http }) {
          const answer = await triggerAnswer(http, "path");
          if (answer !== 202) return answer;
          const output = await until("the output", async () =>
            (await api(http, "/executions")).body.items[0]?.["output"]);
          return (output as { path: string }).path;
        },
        unset: "workflow_unavailable",
        set: Deno.env.get("PATH"),
      }),
  },
  WORKFLOW_ALLOW_CIDRS: {
    sees: "a request of a workflow to an address inside the range",
    async run() {
      await using receiver = new WebhookReceiver();
      await compareWebhooks({ WORKFLOW_ALLOW_CIDRS: "127.0.0.0/8" }, {
        env: { WORKFLOW_ALLOW_CIDRS: "" },
        workflows: { "ask.yaml": requestWorkflow(receiver.url) },
        look: async ({ http }) => (await endedExecutions(http, "ask"))[0]?.status,
        unset: "failed",
        set: "succeeded",
      });
    },
  },
  WORKFLOW_MAX_RUNNING: {
    sees: "how many executions run at once",
    async run() {
      for (const [WORKFLOW_MAX_RUNNING, atOnce] of AT_ONCE) {
        await using receiver = new SlowReceiver(SOON_MS, atOnce);
        const text = requestWorkflow(receiver.url).replace('" }', '", timeout: 2m }');
        await using folder = await WebhookFolder.make({ "ask.yaml": text });
        await lookAt(folder, { WORKFLOW_MAX_RUNNING }, ({ http }) => endedExecutions(http, "ask", 3));
        assertEquals(receiver.most, atOnce);
      }
    },
  },
  ADMIN_ADDR: {
    sees: "the administration at an address of its own",
    async run() {
      const own = `127.0.0.1:${freePort()}`;
      await compareWebhooks({ ADMIN_ADDR: own }, {
        async look({ http, service }) {
          const there = await api(own, "/endpoints").then(({ status }) => status, () => "nobody");
          const event = { body: { event: "a", data: {} } };
          const posted = (await api(http, "/events", event)).status;
          const onDebug = (await api(service.running.addresses.debug, "/endpoints")).status;
          return [(await api(http, "/endpoints")).status, there, posted, onDebug];
        },
        unset: [200, "nobody", 202, 200],
        set: [404, 200, 202, 200],
      });
    },
  },
  TRIGGER_ADDR: {
    sees: "triggers and posted events at their own address, and nothing else there",
    async run() {
      const own = `127.0.0.1:${freePort()}`;
      await compareWebhooks({ TRIGGER_ADDR: own }, {
        async look({ http }) {
          const statusAt = async (address: string, path: string, call: Parameters<typeof api>[2] = {}) =>
            await api(address, path, call).then(({ status }) => status, () => "nobody");
          const event = { body: { event: "a", data: {} } };
          const statuses = [];
          for (const address of [http, own]) {
            statuses.push(
              await statusAt(address, "/workflows/triggers/a", { token: "wrong", body: {} }),
              await statusAt(address, "/events", event),
              await statusAt(address, "/events"),
            );
          }
          const [json, endpoints] = await Promise.all(
            ["/json", "/api/v1/endpoints"].map((path) =>
              fetch(`http://${own}${path}`).then(async (response) => {
                await response.body?.cancel();
                return response.status;
              }, () => "nobody")
            ),
          );
          return { statuses, json, endpoints };
        },
        unset: {
          statuses: [401, 202, 200, "nobody", "nobody", "nobody"],
          json: "nobody",
          endpoints: "nobody",
        },
        set: { statuses: [404, 404, 200, 401, 202, 405], json: 404, endpoints: 404 },
      });
    },
  },
  WEIR_URL: {
    sees: "the service that the command line calls",
    async run() {
      await using folder = await WebhookFolder.make();
      await lookAt(folder, {}, async ({ http }) => {
        const { body: { id } } = await api(http, "/event-keys", { body: { name: "a", kinds: ["*"] } });
        const seen: boolean[] = [];
        for (const WEIR_URL of ["", `http://${http}`]) {
          const lines: string[] = [];
          const output = { stdout: (line: string) => void lines.push(line), stderr: () => {} };
          await runCommand(["event-keys", "list", "--json"], {
            environment: { WEIR_URL, ADMIN_TOKEN },
            output,
          });
          seen.push(lines.join("").includes(id));
        }
        assertEquals(seen, [false, true]);
      });
    },
  },
};

/** Whether a key is made beside the store. */
async function comparesKeyFiles(changed: Record<string, string>): Promise<void> {
  await compareWebhooks(changed, {
    look: async ({ folder, http }) => {
      // The store is open once this is answered.
      await api(http, "/endpoints");
      return await Deno.stat(`${folder.store}.key`).then(() => "made", () => "none");
    },
    unset: "made",
    set: "none",
  });
}

/** Takes attempts and does not go on with them before it is told to. */
interface Reluctant {
  readonly url: string;
  /** How many attempts have come, up to now or at once. */
  readonly most: number;
  release(): void;
}

/** What becomes of two first attempts: without a setting, and with it before the receiver goes on. */
async function attemptsTo(
  receiver: Reluctant,
  changed: Record<string, string>,
): Promise<{ set: unknown; unset: unknown }> {
  const attempt = async (env: Record<string, string>) => {
    await using folder = await WebhookFolder.make();
    return await lookAt(
      folder,
      env,
      async ({ http }) => resultOf((await firstAttempts(http, receiver.url))[0]),
    );
  };
  const unset = attempt({});
  try {
    await until("the attempt without the setting", () => receiver.most > 0);
    const set = await attempt(changed);
    receiver.release();
    return { set, unset: await unset };
  } finally {
    receiver.release();
    await unset.catch(() => {});
  }
}

/** Takes connections and says nothing, until it closes them. */
class SilentListener implements Disposable {
  most = 0;
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #open: Deno.TcpConn[] = [];

  constructor() {
    void this.#accept();
  }

  get url(): string {
    return `https://127.0.0.1:${this.#listener.addr.port}/`;
  }

  /** Closes what is open. */
  release(): void {
    for (const connection of this.#open.splice(0)) connection.close();
  }

  async #accept(): Promise<void> {
    try {
      for await (const connection of this.#listener) {
        this.#open.push(connection);
        this.most++;
      }
    } catch {
      // It was closed.
    }
  }

  [Symbol.dispose](): void {
    this.release();
    this.#listener.close();
  }
}

function requestWorkflow(url: string): string {
  return `workflow: ask\nsteps:\n  - name: ask\n    request: { method: POST, url: "${url}" }\n`;
}
