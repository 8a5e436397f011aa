import { FIRST_RULES, reloadUnderLoad } from "../../harness/reload_load.ts";
import { startRedis } from "../../harness/redis_server.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";

const LOAD = { swaps: 10, calls: 2_000 };

Deno.test("reload under load: versions of the rules follow one another, and no call sees two of them", async () => {
  await using weir = await ServeFixture.start({ rules: FIRST_RULES });
  await reloadUnderLoad(weir, LOAD);
});

Deno.test({
  ...needs(["redis-server"], "reload under load: nor does a call that waits for a key-value cache meanwhile"),
  async fn() {
    await using cache = await startRedis();
    const env = { BACKEND_TYPE: "kv", KV_URL: cache.url, KV_TIMEOUT: "30s" };
    await using weir = await ServeFixture.start({ env, rules: FIRST_RULES });
    await reloadUnderLoad(weir, LOAD);
  },
});
