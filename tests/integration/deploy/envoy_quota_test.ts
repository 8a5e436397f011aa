import { assert, assertEquals } from "#assert";
import { join } from "node:path";
import { parse } from "yaml";
import { validateEnvoyConfig } from "../../harness/envoy.ts";
import { EnvoyBed, shippedConfig } from "../../harness/envoy_bed.ts";
import { needs } from "../../harness/tools.ts";
import { eventually, until } from "../../harness/until.ts";

const RULES = `domain: shop
descriptors:
  - key: account
    rate_limit: { unit: second, requests_per_unit: 5 }
  - key: account
    value: blocked
    rate_limit: { unit: second, requests_per_unit: 0 }
  - key: account
    value: halved
    rate_limit: { unit: second, requests_per_unit: 20 }
`;
const WINDOW_MS = 2_000;

Deno.test({
  ...needs(["envoy"], "Envoy accepts envoy-quota.yaml"),
  async fn() {
    const file = new URL("../../../config/deploy/envoy-quota.yaml", import.meta.url);
    assertEquals(await validateEnvoyConfig(parse(await Deno.readTextFile(file))), "");
  },
});

Deno.test({
  ...needs(["envoy"], "an Envoy enforces the quotas that Weir sends, as envoy-quota.yaml says"),
  async fn() {
    await using bed = await EnvoyBed.start({
      rules: { "shop.yaml": RULES },
      config: (places) => shippedConfig(places, (_, value) => value, "envoy-quota.yaml"),
    });
    const ask = (account: string) => bed.status("edge", "/", { headers: { "x-account": account } });
    const stats = async (name: string) => (await bed.weir.stats())[`ratelimit.${name}`] ?? 0;
    assertEquals(await bed.status("edge", "/"), 200);
    // Passes until the first quota, of which there is none before all Envoys could have reported.
    assertEquals(await ask("blocked"), 200);
    await until("the blocked account to be refused", async () => await ask("blocked") === 429);
    // More than a second's tokens in a moment: the bucket is empty then.
    await until("an account to be refused over its limit", async () => {
      const statuses = await Promise.all(Array.from({ length: 40 }, () => ask("busy")));
      return statuses.includes(429);
    });
    await until("tokens to come back", async () => await ask("busy") === 200);
    const shareOf = async (account: string) => {
      const page = await bed.weir.page(`/quotas?domain=shop&bucket=account=${account}`);
      return JSON.parse(page).quotas[0]?.clients[0]?.share;
    };
    assertEquals(await ask("halved"), 200);
    await eventually(20, () => shareOf("halved"));
    await until("the reports to be counted", async () => {
      return await stats("service.rate_limit.shop.account.over_limit") > 0;
    });
    await Deno.writeTextFile(
      join(bed.weir.rulesFolder, "shop.yaml"),
      RULES.replace("requests_per_unit: 0", "requests_per_unit: 100").replace(": 20", ": 10"),
    );
    bed.weir.reload();
    await until("the account to pass again", async () => await ask("blocked") === 200);
    await eventually(10, () => shareOf("halved"));
    await until("its bucket to be empty", async () => await ask("halved") === 429);
    assert(await passed(() => ask("halved")) <= 10 * (WINDOW_MS / 1_000 + 1));
    await eventually([1, 0], async () => [await stats("quota.streams"), await stats("quota.bad_buckets")]);
  },
});

/** Requests that pass in a time, one after the other. */
async function passed(ask: () => Promise<number>): Promise<number> {
  const end = performance.now() + WINDOW_MS;
  let count = 0;
  while (performance.now() < end) if (await ask() === 200) count++;
  return count;
}
