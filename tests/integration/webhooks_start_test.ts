import { assertEquals } from "@std/assert";
import { freePort } from "../support/free_port.ts";
import { until } from "../support/until.ts";
import { api, WebhookFolder } from "../support/webhook_weir.ts";

const REQUEST = JSON.stringify({ domain: "any", descriptors: [{ entries: [{ key: "a", value: "b" }] }] });
const ECHO = { body: { name: "echo", workflow: "echo" } };
const CALL = "/workflows/triggers/echo";

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
    await using weir = await folder.start();
    const { body } = await api(weir.httpAddress, "/triggers", ECHO);
    assertEquals(await weir.stop(), 0);
    return body;
  })();
  const address = `127.0.0.1:${freePort()}`;
  const starting = folder.start({ PORT: address.slice(address.indexOf(":") + 1) });
  const first = await until(
    "the first answer",
    () => api(address, CALL, { token: key, body: '{"total": 1}' }),
    { intervalMs: 2 },
  );
  assertEquals([first.status, first.body.code], [202, undefined]);
  await using weir = await starting;
  await until("health to be good", async () => await health(address) === "OK");
  assertEquals(await weir.stop(), 0);
});

Deno.test("webhooks: a store that cannot be opened keeps nobody from decisions, and webhooks are 503", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await folder.start({ WEBHOOK_STORE: "/proc/nowhere/weir.db" });
  assertEquals(await decision(weir.httpAddress), 200);
  const { status, body } = await api(weir.httpAddress, "/endpoints");
  assertEquals([status, body.code], [503, "webhooks_unavailable"]);
  assertEquals((await health(weir.httpAddress)).startsWith("webhooks: "), true);
  assertEquals(await weir.stop(), 0);
});

for (const questions of [0, 4, 16, 64]) {
  Deno.test(`webhooks: SIGTERM while the thread starts, ${questions} questions after the ports opened`, async () => {
    await using folder = await WebhookFolder.make();
    await using weir = await folder.start();
    for (let asked = 0; asked < questions; asked++) await health(weir.httpAddress);
    assertEquals(await weir.stop(), 0);
    assertEquals(weir.stderrLines.filter((line) => / level=error |panic/.test(line)), []);
  });
}
