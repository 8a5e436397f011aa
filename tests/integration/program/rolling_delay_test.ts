import { assertEquals } from "#assert";
import { HEALTH_CHECK_REQUEST, HEALTH_CHECK_RESPONSE, SERVING_STATUS } from "../../../src/wire/health.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { decide, GrpcClient } from "../../harness/grpc_client.ts";
import { RestartConnection } from "../../harness/restart_connection.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";

const RULES = {
  "shop.yaml": "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {unit: day, requests_per_unit: 100}\n",
};
const HEALTH = "/grpc.health.v1.Health";
const EVERYTHING = HEALTH_CHECK_REQUEST.encode({ service: "" });
const DELAY_MS = 5_000;

/** The answers of health and of a decision by gRPC, each over its own connection. */
async function askAnew(address: string): Promise<[status: number | undefined, decides: boolean]> {
  using client = new GrpcClient(address, { "grpc.use_local_subchannel_pool": 1 });
  const { messages: [message] } = await client.unary(`${HEALTH}/Check`, EVERYTHING);
  const decides = "overallCode" in await decide(client, "shop", "user=bob");
  return [message === undefined ? undefined : HEALTH_CHECK_RESPONSE.decode(message).status, decides];
}

for (const engine of ["native", "grpc-js"]) {
  Deno.test(`SHUTDOWN_DELAY, ${engine}: unhealthy immediately, all is served until the delay is over, then asked to go`, async () => {
    const clock = new FakeClock();
    const env = { GRPC_ENGINE: engine, SHUTDOWN_DELAY: `${DELAY_MS}ms` };
    await using weir = await ServeFixture.start({ rules: RULES, env, clock });
    using client = new GrpcClient(weir.grpcAddress);
    const seen: number[] = [];
    const watch = client.serverStream(`${HEALTH}/Watch`, EVERYTHING, (message) => {
      seen.push(HEALTH_CHECK_RESPONSE.decode(message).status);
    });
    await until("the first word on health", () => seen.length === 1);
    const kept = await RestartConnection.open(weir.grpcAddress);
    weir.beginStop();
    await until("health to turn", () => seen.length === 2);
    for (const elapsedMs of [0, DELAY_MS - 1]) {
      clock.advance(elapsedMs);
      assertEquals(await askAnew(weir.grpcAddress), [SERVING_STATUS.NOT_SERVING, true]);
      for (const address of [weir.httpAddress, weir.debugAddress]) {
        const response = await fetch(`http://${address}/healthcheck`);
        assertEquals([response.status, await response.text()], [503, "sigterm: the service is stopping\n"]);
      }
      assertEquals(kept?.usable, true);
    }
    clock.advance(1);
    await until("the connection to be asked to go", () => kept?.usable === false);
    kept?.close();
    await weir.stop();
    assertEquals([seen, (await watch).code], [[SERVING_STATUS.SERVING, SERVING_STATUS.NOT_SERVING], 14]);
  });
}
