import { NO_ADMINISTRATORS } from "../../harness/administrators.ts";
import { assertEquals } from "@std/assert";
import { Health } from "../../../src/base/health.ts";
import { openWebhooks, storeFolderProblem } from "../../../src/serve/webhooks.ts";
import { readSettings } from "../../../src/settings/read_settings.ts";
import { StatsStore } from "../../../src/stats/store.ts";
import type { ToWebhookWorker } from "../../../src/webhooks/service/message.ts";
import type { WebhookWorkerHandle } from "../../../src/webhooks/service/supervisor.ts";
import { KeptLog } from "../../harness/http_fixture.ts";
import { FakeClock } from "../../harness/fake_clock.ts";

/** A worker that keeps what it is told. */
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
  const { settings } = readSettings({
    ...{ BACKEND_TYPE: "memory", WEBHOOK_STORE: "/nowhere/weir.db", ...environment },
  });
  const line = new KeptLine();
  const clock = new FakeClock();
  const health = new Health();
  const parts = { logger: new KeptLog(), clock, random: () => 0, health };
  const opened = openWebhooks({ ...parts, settings, stats: new StatsStore(10) }, {
    version: "test",
    administrators: NO_ADMINISTRATORS,
    tracing: { route: (make, decide) => make(decide), work: () => {}, workLogger: (logger) => logger },
    counters: { peek: () => Promise.resolve([]), reset: () => Promise.resolve([]) },
    decide: () => Promise.reject(new Error("nothing is decided here")),
    createWorker: () => line,
  });
  return { opened, line, clock, health };
}

/** The environment variables that the worker is told for this `WORKFLOW_ENV`. */
async function variablesFor(names: string): Promise<unknown> {
  const { opened, line } = bed({ WORKFLOW_ENV: names });
  opened.start();
  await opened.close(0);
  const [start] = line.told;
  return start?.type === "start" ? start.options.workflowEnv : start;
}

Deno.test("webhooks: a variable of WORKFLOW_ENV that is not set is told as such, and not as empty", async () => {
  Deno.env.set("WEIR_TEST_EMPTY", "");
  try {
    assertEquals(await variablesFor("WEIR_TEST_EMPTY,WEIR_TEST_UNSET"), {
      WEIR_TEST_EMPTY: "",
      WEIR_TEST_UNSET: undefined,
    });
  } finally {
    Deno.env.delete("WEIR_TEST_EMPTY");
  }
});

Deno.test("webhooks: the thread is started once, when it is told to", async () => {
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
