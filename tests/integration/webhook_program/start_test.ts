import { assertEquals } from "#assert";
import { freePort } from "../../harness/free_port.ts";
import { until } from "../../harness/until.ts";
import { endEarly } from "../../harness/webhook_early_end.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import { webhookCall } from "../../harness/webhook_client.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const REQUEST = JSON.stringify({ domain: "any", descriptors: [{ entries: [{ key: "a", value: "b" }] }] });
const ECHO = { body: { name: "echo", workflow: "echo" } };
const CALL = "/workflows/triggers/echo";
/** So long a call waits for the store when the process starts. */
const PATIENCE_MS = 5_000;

async function decision(address: string): Promise<number> {
  const response = await fetch(`http://${address}/json`, { method: "POST", body: REQUEST });
  await response.body?.cancel();
  return response.status;
}

async function health(address: string): Promise<string> {
  return await (await fetch(`http://${address}/healthcheck`)).text();
}

Deno.test("webhooks: a trigger that is called as soon as there is a port is accepted", async () => {
  await using folder = await WebhookFolder.make();
  const { key } = await (async () => {
    await using weir = await folder.serve();
    return (await api(weir.running.addresses.http, "/triggers", ECHO)).body;
  })();
  const address = `127.0.0.1:${freePort()}`;
  const begin = performance.now();
  const starting = folder.serve({ PORT: address.slice(address.indexOf(":") + 1) });
  // Where the test fails before the end, its own error is the one to tell of.
  starting.catch(() => {});
  const call = () => api(address, CALL, { token: key, body: '{"total": 1}' });
  const first = await until("the first answer", call, { intervalMs: 2 });
  const tookMs = performance.now() - begin;
  await using _weir = await starting;
  // It waits for the store of a machine that is not as slow as that.
  if (tookMs < PATIENCE_MS) assertEquals([first.status, first.body.code], [202, undefined]);
  assertEquals((await call()).status, 202);
  await until("health to be good", async () => await health(address) === "OK");
});

Deno.test("webhooks: a store that cannot be opened does not stop decisions, and webhooks are 503", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.serve({ WEBHOOK_STORE: "/proc/nowhere/weir.db" }, { isAwaited: false });
  const { http } = weir.running.addresses;
  assertEquals(await decision(http), 200);
  const { status, body } = await webhookCall(`http://${http}/api/v1/endpoints`, {
    method: "GET",
    token: ADMIN_TOKEN,
  });
  assertEquals([status, body.code], [503, "webhooks_unavailable"]);
  assertEquals((await health(http)).startsWith("webhooks: "), true);
});

Deno.test("webhooks: SIGTERM while the thread starts, 16 calls after the ports opened", () => endEarly(16));
