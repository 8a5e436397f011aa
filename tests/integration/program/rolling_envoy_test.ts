import { assertEquals } from "@std/assert";
import { CallLog } from "../../harness/call_log.ts";
import { startEnvoy } from "../../harness/envoy.ts";
import { envoyConfig } from "../../harness/envoy_config.ts";
import { RestartFetchLoad } from "../../harness/restart_fetch_load.ts";
import { restartUnderLoad, RestartWeir } from "../../harness/restart_weir.ts";
import { needs } from "../../harness/tools.ts";

Deno.test({
  ...needs(["envoy"], "rolling restart behind Envoy: no request is refused for want of a decision"),
  async fn() {
    const log = new CallLog();
    const upstream = Deno.serve(
      { hostname: "127.0.0.1", port: 0, onListen: () => {} },
      () => new Response("upstream"),
    );
    {
      await using weir = await RestartWeir.start({ GRPC_ENGINE: "native" });
      const address = `127.0.0.1:${upstream.addr.port}`;
      const config = envoyConfig({ weir: weir.current.grpcAddress, upstream: address, domain: "shop" });
      await using envoy = await startEnvoy(config);
      {
        // Where Envoy gets no decision, this listener of it answers 500.
        const url = `http://${envoy.address("deny")}/cart`;
        await using _load = new RestartFetchLoad(log, { callers: 8, ask: () => fetch(url) });
        await restartUnderLoad(weir, log);
      }
      assertEquals(log.failures, [], String(log));
    }
    await upstream.shutdown();
  },
});
