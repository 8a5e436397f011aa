import { assertEquals } from "@std/assert";
import {
  decodeHealthCheckResponse,
  encodeHealthCheckRequest,
  SERVING_STATUS,
} from "../../../src/wire/health.ts";
import { decide, GrpcClient } from "../../harness/grpc_client.ts";
import { RestartConnection } from "../../harness/restart_connection.ts";
import { until } from "../../harness/until.ts";
import { startWeir } from "../../harness/weir_process.ts";

const RULES = {
  "shop.yaml": "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {unit: day, requests_per_unit: 100}\n",
};
const HEALTH = "/grpc.health.v1.Health";
const EVERYTHING = encodeHealthCheckRequest({ service: "" });
const DELAY_MS = 5_000;

/** What health says by gRPC over a connection of its own, and whether a decision is made there. */
async function askAnew(address: string): Promise<[status: number | undefined, decides: boolean]> {
  using client = new GrpcClient(address, { "grpc.use_local_subchannel_pool": 1 });
  const { messages: [message] } = await client.unary(`${HEALTH}/Check`, EVERYTHING);
  const decides = "overallCode" in await decide(client, "shop", "user=bob");
  return [message === undefined ? undefined : decodeHealthCheckResponse(message).status, decides];
}

for (const engine of ["native", "grpc-js"]) {
  Deno.test(`SHUTDOWN_DELAY, ${engine}: unhealthy at once, all is served until the delay is over, then asked to go`, async () => {
    await using weir = await startWeir({
      rules: RULES,
      env: { GRPC_ENGINE: engine, SHUTDOWN_DELAY: `${DELAY_MS}ms` },
    });
    using client = new GrpcClient(weir.grpcAddress);
    const told: number[] = [];
    const watch = client.serverStream(`${HEALTH}/Watch`, EVERYTHING, (message) => {
      told.push(decodeHealthCheckResponse(message).status);
    });
    await until("the first word on health", () => told.length === 1);
    const kept = await RestartConnection.open(weir.grpcAddress);
    const before = performance.now();
    weir.signal("SIGTERM");
    await until("health to turn", () => told.length === 2, { intervalMs: 1 });
    const turnedAfter = performance.now() - before;
    assertEquals(await askAnew(weir.grpcAddress), [SERVING_STATUS.NOT_SERVING, true]);
    const pages = [`http://${weir.httpAddress}/healthcheck`, `http://${weir.debugAddress}/healthcheck`];
    for (const page of pages) {
      const response = await fetch(page);
      assertEquals([response.status, await response.text()], [503, "sigterm: the service is stopping\n"]);
    }
    assertEquals([kept?.usable, performance.now() - before < DELAY_MS], [true, true]);
    await until("the connection to be asked to go", () => kept?.usable === false, { intervalMs: 1 });
    const askedAfter = performance.now() - before;
    const { code } = await watch;
    assertEquals((await weir.exited).code, 0);
    kept?.close();
    assertEquals([told, code], [[SERVING_STATUS.SERVING, SERVING_STATUS.NOT_SERVING], 14]);
    assertEquals([turnedAfter < DELAY_MS, askedAfter >= DELAY_MS - 10], [true, true], `${askedAfter} ms`);
  });
}
