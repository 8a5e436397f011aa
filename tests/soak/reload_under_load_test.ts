import { assertEquals } from "#assert";
import { FIRST_RULES, reloadUnderLoad } from "../harness/reload_load.ts";
import { startRedis } from "../harness/redis_server.ts";
import { needs } from "../harness/tools.ts";
import { startWeir } from "../harness/weir_process.ts";
import { bySize } from "./soak_options.ts";

const LOAD = bySize({ short: { swaps: 50, calls: 20_000 }, full: { swaps: 500, calls: 500_000 } });

async function soakReloads(env: Readonly<Record<string, string>>): Promise<void> {
  await using weir = await startWeir({ env, rules: FIRST_RULES });
  await reloadUnderLoad(weir, LOAD);
  assertEquals(await weir.stop(), 0);
}

Deno.test("soak: many versions of the rules follow one another, and no call sees two of them", () =>
  soakReloads({}));

Deno.test({
  ...needs(["redis-server"], "soak: nor does a call that waits for a key-value cache meanwhile"),
  async fn() {
    await using cache = await startRedis();
    await soakReloads({ BACKEND_TYPE: "kv", KV_URL: cache.url, KV_TIMEOUT: "30s" });
  },
});
