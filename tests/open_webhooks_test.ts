import { assertEquals } from "@std/assert";
import { Health } from "../src/health.ts";
import { openWebhooks } from "../src/open_webhooks.ts";
import { readSettings } from "../src/settings/read_settings.ts";
import { StatsStore } from "../src/stats/store.ts";
import type { ToWebhookWorker } from "../src/webhooks/webhook_message.ts";
import type { WebhookLine } from "../src/webhooks/webhook_thread.ts";
import { KeptLog } from "./http/http_fixture.ts";
import { FakeClock } from "./support/fake_clock.ts";

/** A worker that keeps what it is told. */
class KeptLine implements WebhookLine {
  readonly told: ToWebhookWorker[] = [];
  onmessage = null;
  onmessageerror = null;
  onerror = null;

  postMessage(message: ToWebhookWorker): void {
    this.told.push(message);
  }
  terminate(): void {}
}

/** The environment variables that the worker is told for this `WORKFLOW_ENV`. */
async function variablesFor(names: string): Promise<unknown> {
  const { settings } = readSettings({
    ...{ BACKEND_TYPE: "memory", WEBHOOK_STORE: "/nowhere/weir.db", WORKFLOW_ENV: names },
  });
  const line = new KeptLine();
  const parts = { logger: new KeptLog(), clock: new FakeClock(), random: () => 0, health: new Health() };
  const opened = openWebhooks({ ...parts, settings, stats: new StatsStore(10) }, {
    version: "test",
    tracing: { route: (make, decide) => make(decide), work: () => {} },
    counters: { peek: () => Promise.resolve([]), reset: () => Promise.resolve([]) },
    decide: () => Promise.reject(new Error("nothing is decided here")),
    startWorker: () => line,
  });
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
