import { assertEquals } from "#assert";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { eventually, until } from "../../harness/until.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";

Deno.test("a store that is moved away at run time fails health and refuses events, until it is back", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await started(folder);
  const post = async () => {
    const answer = await api(weir.running.addresses.http, "/events", {
      body: { event: "order.created", data: {} },
    });
    return `${answer.status} ${answer.body.code}`;
  };
  const healthStatus = async () => {
    const response = await fetch(`http://${weir.running.addresses.http}/healthcheck`);
    return [response.status, (await response.text()).includes("deleted or replaced")];
  };
  assertEquals(await post(), "202 undefined");
  await Deno.rename(folder.store, `${folder.store}.moved`);
  await until("health to fail without a call", async () => (await healthStatus()).join() === "503,true");
  assertEquals(await post(), "503 store_unavailable");
  await until("the log", () => weir.log.some((line) => line.includes("was deleted or replaced")));
  await Deno.rename(`${folder.store}.moved`, folder.store);
  assertEquals(await post(), "202 undefined");
});

Deno.test("a process whose lock file is replaced stops its work while another process holds the new one", async () => {
  await using folder = await WebhookFolder.make();
  await using weir = await started(folder);
  const isWorking = async () => {
    const text = await (await fetch(`http://${weir.running.addresses.debug}/stats`)).text();
    return text.includes("ratelimit.webhooks.is_dispatcher: 1");
  };
  await until("the work", isWorking);
  {
    using file = await Deno.open(`${folder.store}.other`, { createNew: true, write: true });
    await file.lock(true);
    await Deno.rename(`${folder.store}.other`, `${folder.store}.lock`);
    await until("the end of the work", async () => !await isWorking());
    const line = "Cannot keep the lock of the store: another process holds it";
    await eventually(1, () => weir.log.filter((text) => text.includes(line)).length);
    const post = () =>
      api(weir.running.addresses.http, "/events", { body: { event: "order.created", data: {} } });
    await until("a new worker", async () => (await post()).status === 202);
    assertEquals(await isWorking(), false);
  }
  await until("the work of the new worker", isWorking);
});

/** A service on the folder that has its store. */
async function started(folder: WebhookFolder): Promise<ServeFixture> {
  const weir = await ServeFixture.start({ env: folder.env });
  await until("the store", async () => (await api(weir.running.addresses.http, "/triggers")).status === 200);
  return weir;
}
