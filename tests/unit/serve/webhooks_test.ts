import { NO_ADMINISTRATORS } from "../../harness/administrators.ts";
import { assertEquals } from "#assert";
import { Health } from "../../../src/base/health.ts";
import { openWebhooks, storeFolderProblem } from "../../../src/serve/webhooks.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { StatsStore } from "../../../src/stats/store.ts";
import type { ToWebhookWorker, WebhookOptions } from "../../../src/webhooks/service/message.ts";
import type { WebhookWorkerHandle } from "../../../src/webhooks/service/supervisor.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

/** A worker that keeps its messages. */
class KeptLine implements WebhookWorkerHandle {
  readonly told: ToWebhookWorker[] = [];
  onmessage = null;
  onmessageerror = null;
  onerror = null;

  postMessage(message: ToWebhookWorker): void {
    this.told.push(message);
  }
  terminate(): void {}
}

function bed(environment: Readonly<Record<string, string>> = {}) {
  const variables = { BACKEND_TYPE: "memory", WEBHOOK_STORE: "/nowhere/weir.db", ...environment };
  const { settings } = readSettings(variables);
  const line = new KeptLine();
  const clock = new FakeClock();
  const health = new Health();
  const parts = { logger: new RecordedLogger(), clock, random: () => 0, health };
  const opened = openWebhooks({ ...parts, settings, version: "test", stats: new StatsStore(10) }, {
    administrators: NO_ADMINISTRATORS,
    tracing: { route: (make, decide) => make(decide), work: () => {}, workLogger: (logger) => logger },
    counters: { peek: () => Promise.resolve([]), reset: () => Promise.resolve([]) },
    quotas: { peek: () => Promise.resolve({}) },
    decide: () => Promise.reject(new Error("nothing is decided here")),
    createWorker: () => line,
  });
  return { opened, line, clock, health };
}

/** The start message of the worker. */
async function optionsFor(environment: Readonly<Record<string, string>>): Promise<WebhookOptions> {
  const { opened, line } = bed(environment);
  opened.start();
  await opened.close(0);
  const [start] = line.told;
  if (start?.type !== "start") throw new Error("The worker was not started");
  return start.options;
}

Deno.test("webhooks: a variable of WORKFLOW_ENV that is not set is reported as such, and not as empty", async () => {
  Deno.env.set("WEIR_TEST_EMPTY", "");
  try {
    const { workflowEnv } = await optionsFor({ WORKFLOW_ENV: "WEIR_TEST_EMPTY,WEIR_TEST_UNSET" });
    assertEquals(workflowEnv, { WEIR_TEST_EMPTY: "", WEIR_TEST_UNSET: undefined });
  } finally {
    Deno.env.delete("WEIR_TEST_EMPTY");
  }
});

const KEY = btoa("k".repeat(32));
const ADDRESS = "postgres://a:b@localhost/c";
const POSTGRES = {
  kind: "postgres",
  address: ADDRESS,
  addressFile: undefined,
  poolSize: 10,
  connectTimeoutMs: 5_000,
  statementTimeoutMs: 10_000,
  lockTimeoutMs: 5_000,
};

/** Settings, and the options of the worker that differ by them. */
const OPTIONS: readonly (readonly [env: Readonly<Record<string, string>>, options: object])[] = [
  [{ WEBHOOK_STORE: "/b/c.db" }, { store: { kind: "file", path: "/b/c.db" } }],
  [{ WEBHOOK_ENCRYPTION_KEY: KEY }, { encryptionKeys: [KEY] }],
  [{ WEBHOOK_ENCRYPTION_KEY_FILE: "/k" }, { encryptionKeyFile: "/k" }],
  [{ WEBHOOK_TIMEOUT: "7s" }, { timeoutMs: 7_000 }],
  [{ WEBHOOK_TIMEOUT: "48h" }, { timeoutMs: 86_400_000 }],
  [{ WEBHOOK_CONNECT_TIMEOUT: "7s" }, { connectTimeoutMs: 7_000 }],
  [{ WEBHOOK_RETENTION: "7s" }, { retentionMs: 7_000 }],
  [{ WEBHOOK_DISABLE_AFTER: "7s" }, { disableAfterMs: 7_000 }],
  [{ WEBHOOK_STORE_MAX_BYTES: "7" }, { maxStoreBytes: 7 }],
  [{ WEBHOOK_STORE_MAX_BYTES: "0" }, { maxStoreBytes: undefined }],
  [{ WEBHOOK_MAX_BACKLOG: "7" }, { maxBacklog: 7 }],
  [{ WEBHOOK_MAX_BACKLOG: "0" }, { maxBacklog: undefined }],
  [{ WEBHOOK_MAX_IN_FLIGHT: "7" }, { maxInFlight: 7 }],
  [{ WEBHOOK_ALLOW_CIDRS: "10.0.0.0/8" }, { allowCidrs: ["10.0.0.0/8"] }],
  [{ WEBHOOK_PROXY: "http://a:1" }, { proxy: "http://a:1" }],
  [{ WEBHOOK_CA_FILE: "/c" }, { caFile: "/c" }],
  [{ WORKFLOW_DIRECTORY: "/w" }, { workflowDirectory: "/w" }],
  [{ WORKFLOW_ALLOW_CIDRS: "10.0.0.0/8" }, { workflowAllowCidrs: ["10.0.0.0/8"] }],
  [{ WORKFLOW_MAX_RUNNING: "7" }, { maxRunning: 7 }],
  [{ TRACING_ENABLED: "true" }, { isTraced: true }],
  ...([
    [{}, {}],
    [{ WEBHOOK_STORE_POOL_SIZE: "7" }, { poolSize: 7 }],
    [{ WEBHOOK_STORE_CONNECT_TIMEOUT: "7s" }, { connectTimeoutMs: 7_000 }],
    [{ WEBHOOK_STORE_STATEMENT_TIMEOUT: "6999.5ms" }, { statementTimeoutMs: 7_000 }],
    [{ WEBHOOK_STORE_STATEMENT_TIMEOUT: "1000h" }, { statementTimeoutMs: 2_147_483_647 }],
    [{ WEBHOOK_STORE_LOCK_TIMEOUT: "6999.5ms" }, { lockTimeoutMs: 7_000 }],
  ] as const).map(([env, store]) =>
    [{ WEBHOOK_STORE: ADDRESS, WEBHOOK_ENCRYPTION_KEY: KEY, ...env }, {
      encryptionKeys: [KEY],
      store: { ...POSTGRES, ...store },
    }] as const
  ),
];

for (const [env, options] of OPTIONS) {
  Deno.test(`webhooks: the worker is started with ${JSON.stringify(env)}`, async () => {
    assertEquals(await optionsFor(env), { ...await optionsFor({}), ...options });
  });
}

Deno.test("webhooks: the thread is started once, when it is asked to", async () => {
  const { opened, line, clock, health } = bed();
  assertEquals(line.told, []);
  assertEquals(health.failing(), [{ name: "webhooks", healthy: false, reason: "starting" }]);
  opened.start();
  opened.start();
  clock.advance(2_000);
  assertEquals(line.told.map(({ type }) => type), ["start"]);
  await opened.close(0);
  assertEquals(clock.waiting, 0);
});

Deno.test("webhooks: while the rest waits for its rules the thread is started all the same", async () => {
  const { opened, line, clock } = bed();
  clock.advance(1_000);
  assertEquals(line.told.map(({ type }) => type), ["start"]);
  await opened.close(0);
  assertEquals(clock.waiting, 0);
});

Deno.test("webhooks: a service that ends before it has begun starts no thread", async () => {
  const { opened, line, clock } = bed();
  await opened.close(0);
  clock.advance(2_000);
  opened.start();
  assertEquals([line.told, clock.waiting], [[], 0]);
});

const STORE_PLACES: readonly (readonly [path: string, settings: Record<string, string>, isBad: boolean])[] = [
  ["/srv/data/weir.db", { RUNTIME_ROOT: "/srv/root" }, false],
  ["/srv/weir.db", { RUNTIME_ROOT: "/srv/root" }, true],
  ["/srv/root/../weir.db", { RUNTIME_ROOT: "/srv/root/" }, true],
  ["/srv/root/weir.db", { RUNTIME_ROOT: "/srv/root" }, true],
  ["/srv/root/a/weir.db", { RUNTIME_ROOT: "/srv/root", RUNTIME_SUBDIRECTORY: "a" }, true],
  ["/srv/root/a/config/weir.db", { RUNTIME_ROOT: "/srv/root", RUNTIME_SUBDIRECTORY: "a" }, true],
  ["/srv/flows/weir.db", { WORKFLOW_DIRECTORY: "/srv/flows" }, true],
  ["/etc/weir/weir.db", { GRPC_SERVER_TLS_CERT: "/etc/weir/tls.crt" }, true],
  ["/etc/weir/weir.db", { HTTP_SERVER_TLS_KEY: "/etc/weir/tls.key" }, true],
  ["data/weir.db", { RUNTIME_ROOT: "config" }, false],
];

for (const [path, environment, isBad] of STORE_PLACES) {
  Deno.test(`a store at "${path}" with ${JSON.stringify(environment)} is ${isBad ? "warned of" : "fine"}`, () => {
    const { settings } = readSettings({ BACKEND_TYPE: "memory", ...environment });
    const problem = storeFolderProblem(path, settings);
    assertEquals(problem?.includes(path), isBad ? true : undefined);
  });
}
