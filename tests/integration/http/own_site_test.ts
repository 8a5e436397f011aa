import { assertEquals } from "#assert";
import { freePort } from "../../harness/free_port.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";

Deno.test("pages of other sites get 403 from the HTTP, trigger and administration ports", async () => {
  const folder = await Deno.makeTempDir({ prefix: "weir_" });
  const [admin, triggers] = [`127.0.0.1:${freePort()}`, `127.0.0.1:${freePort()}`];
  try {
    await using service = await ServeFixture.start({
      env: {
        ADMIN_TOKEN: "a-token-of-the-administration-for-tests",
        ADMIN_ADDR: admin,
        TRIGGER_ADDR: triggers,
        WEBHOOK_STORE: `${folder}/weir.db`,
      },
    });
    const { http } = service.running.addresses;
    const seen: number[][] = [];
    for (
      const url of [`${http}/json`, `${http}/livez`, `${triggers}/api/v1/events`, `${admin}/api/v1/endpoints`]
    ) {
      const statuses = [];
      for (const site of ["cross-site", "same-origin"]) {
        const response = await fetch(`http://${url}`, { headers: { "sec-fetch-site": site } });
        await response.body?.cancel();
        statuses.push(response.status);
      }
      seen.push(statuses);
    }
    assertEquals(seen, [[405, 405], [403, 200], [403, 405], [403, 401]]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
