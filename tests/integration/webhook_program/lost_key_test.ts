import { assertEquals } from "#assert";
import { eventually, until } from "../../harness/until.ts";
import { WebhookServed } from "../../harness/webhook_served.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

const KEY = /the key "[0-9a-f]{16}"/;
const RIGHT =
  "add it to WEBHOOK_ENCRYPTION_KEY and restart, or give the endpoints other secrets (weir endpoints " +
  "rotate ID --active-in 0) and set their headers, authentication and certificates again";

/** The health of the webhooks, which does not name the key. */
async function noteOf(weir: WebhookServed): Promise<{ readonly status: number; readonly text: string }> {
  const { status, text } = await until("a note of health", async () => {
    const health = await weir.health();
    return health.status === 200 && health.text !== "OK" && health;
  });
  return { status, text: text.replace(KEY, "the key") };
}

Deno.test("a key file that is lost next to its store: health stays good and says what cannot be read", async () => {
  await using weir = await WebhookServed.open();
  const keyFile = `${weir.folder.store}.key`;
  await weir.start();
  const url = "http://127.0.0.1:9/hook";
  await weir.made("/endpoints", { url, headers: { "x-tenant": "a" } });
  await weir.made("/endpoints", { url });
  assertEquals(await weir.health(), { status: 200, text: "OK" });
  await weir.stop();
  const key = (await Deno.readTextFile(keyFile)).trim();
  await Deno.remove(keyFile);

  await weir.start();
  assertEquals(await noteOf(weir), {
    status: 200,
    text:
      "OK\nwebhooks: 3 secrets of 2 endpoints cannot be read: the key that encrypted them is missing and another " +
      `one was created because the key file was missing; ${RIGHT}\n`,
  });
  const said = weir.lines.filter((line) => line.includes("only the former key opens"));
  assertEquals(said.map((line) => line.includes(" level=error ") && line.includes(keyFile)), [true]);
  // It serves what can be served.
  assertEquals((await weir.all("/endpoints")).length, 2);
  await weir.made("/endpoints", { url });
  await weir.stop();

  await weir.start();
  assertEquals(await noteOf(weir), {
    status: 200,
    text:
      `OK\nwebhooks: 3 secrets of 2 endpoints cannot be read: the key that encrypted them is missing; ${RIGHT}\n`,
  });
  await weir.stop();

  await weir.start({ env: { WEBHOOK_ENCRYPTION_KEY: key } });
  // The metrics bring what there is to be said, once a second.
  await until("metrics of the service", async () => await weir.metric("is_dispatcher") === 1);
  await eventually({ status: 200, text: "OK" }, () => weir.health());
  await weir.stop();
});
