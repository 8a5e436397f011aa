/** Runs Envoy with `config/deploy/envoy.yaml`, which the pages show. */
import { assertEquals } from "@std/assert";
import { parse } from "yaml";
import { startEnvoy } from "../../harness/envoy.ts";
import { STILL_CLOCK } from "../../harness/example_session.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";

const ROOT = new URL("../../../", import.meta.url);

Deno.test({
  ...needs(["envoy"], "Envoy limits with config/deploy/envoy.yaml"),
  async fn() {
    const shop = await Deno.readTextFile(new URL("config/rules/shop.yaml", ROOT));
    await using weir = await ServeFixture.start({ rules: { "shop.yaml": shop }, clock: STILL_CLOCK });
    const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    await using application = Deno.serve(quiet, () => new Response("hello from the application"));
    const ports = new Map([
      [10_000, 0],
      [3_000, application.addr.port],
      [8_081, portOf(weir.running.addresses.grpc)],
    ]);
    const text = await Deno.readTextFile(new URL("config/deploy/envoy.yaml", ROOT));
    await using envoy = await startEnvoy(
      parse(text, (key, value) => {
        if (key === "port_value") return ports.get(Number(value));
        // A busy machine is no failure.
        return key === "timeout" || key === "connect_timeout" ? "60s" : value;
      }),
    );
    const url = `http://127.0.0.1:${portOf(envoy.address("edge"))}/`;
    const seen: unknown[] = [];
    for (let call = 1; call <= 6; call++) seen.push(await statusOf(url, { "x-account": "bob" }));
    assertEquals([...seen, await statusOf(url, {})], [200, 200, 200, 200, 200, 429, 200]);
  },
});

async function statusOf(url: string, headers: Record<string, string>): Promise<number> {
  const response = await fetch(url, { headers });
  await response.body?.cancel();
  return response.status;
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}
