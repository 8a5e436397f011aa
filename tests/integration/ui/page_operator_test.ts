import { assertEquals, assertMatch } from "#assert";
import { join } from "node:path";
import { decide, GrpcClient } from "../../harness/grpc_client.ts";
import { eventually } from "../../harness/until.ts";
import { ADMIN_TOKEN, type PageBed, pageTest } from "./page_weir.ts";

const BROKEN =
  "domain: broken\ndescriptors:\n- key: a\n  rate_limit: { unit: fortnight, requests_per_unit: 1 }\n";
const DEBUG_TOKEN = "a-debug-token-that-the-page-never-shows";
/** Nothing listens there. */
const NO_CACHE = {
  BACKEND_TYPE: "kv",
  KV_URL: "127.0.0.1:9",
  CACHE_ON_FAILURE: "local",
  LOCAL_CACHE_SIZE_IN_BYTES: "0",
};
/** A snapshot with these metrics. */
const snapshotOf = (metrics: Readonly<Record<string, number>>) =>
  `event: snapshot\ndata: ${JSON.stringify({ at: Date.now(), cache: "kv", metrics })}\n\n`;

pageTest(
  "diagnostics, rules, reloads and settings show what an operator needs",
  { env: { DEBUG_TOKEN } },
  async (bed) => {
    const { opened, step } = bed;
    await opened.giveToken("DEBUG_TOKEN or ADMIN_TOKEN", DEBUG_TOKEN);
    await step("latency and errors, since the start and in two minutes", () => diagnostics(bed));
    await step("each rule has its file and line", async () => {
      await opened.view("Rules");
      const row = opened.page.getByRole("row").filter({ hasText: "shop.path_/login" });
      const place = row.getByText("shop.yaml:5", { exact: true });
      assertMatch(await place.getAttribute("title") ?? "", /\/config\/shop\.yaml:5$/);
      await opened.page.getByLabel("Filter").fill("shop.yaml:13");
      await opened.sees("1 found among 7");
    });
    await step("each load has its files, and a rejected one its errors with their positions", () => {
      return reloads(bed);
    });
    await step("settings have their values and sources, but no secrets", () => settings(bed));
  },
);

pageTest(
  "a cache that fails, with its breaker and what is done without it",
  { env: NO_CACHE },
  async ({ weir, opened, page }) => {
    await opened.isLive();
    await opened.view("Diagnostics");
    const panel = (title: string) =>
      page.locator(".panel", { has: page.getByRole("heading", { name: title }) });
    await panel("Cache").getByText("no connection", { exact: true }).waitFor();
    await panel("Cache").getByText("closed", { exact: true }).waitFor();
    assertEquals(await weir.decide("account", "ann", 3), 0);
    await panel("Cache").getByText("kv", { exact: true }).waitFor();
    await panel("Errors").getByText("Calls with a failing cache").waitFor();
    await panel("Errors").getByText("Descriptors counted in this process without the cache").waitFor();
    await opened.view("Overview");
    const remark = page.locator(".remarks li", { hasText: "cache" });
    await remark.getByText(/^no connection to 127\.0\.0\.1:\d+: /).waitFor();
    const errors = page.locator(".metric", { hasText: "Errors" });
    await errors.getByText("in two minutes, 3 since start").waitFor();
    await opened.view("Diagnostics");
    const evictions = page.getByRole("row").filter({ hasText: "Counters in this process" });
    assertMatch(await evictions.textContent() ?? "", /Counters in this process[1-9]/);
    const metrics = { "ratelimit.kv_pool.breaker_open": 1, "ratelimit.kv_pool.cx_active": 4 };
    await page.route(
      "**/ui/live",
      (route) => route.fulfill({ status: 200, body: snapshotOf(metrics), contentType: "text/event-stream" }),
    );
    await page.getByRole("button", { name: "Pause updates", exact: true }).click();
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await panel("Cache").getByText("1 open", { exact: true }).waitFor();
    await panel("Cache").getByText("healthy", { exact: true }).waitFor();
  },
);

async function diagnostics({ weir, opened, page }: PageBed): Promise<void> {
  await opened.isLive();
  await opened.sees("All components healthy");
  await opened.view("Diagnostics");
  await opened.sees("No errors since the start.");
  await opened.sees("No decisions over gRPC in the last two minutes");
  using client = new GrpcClient(weir.weir.running.addresses.grpc);
  for (let count = 0; count < 12; count++) await decide(client, "shop", "path=/login");
  const row = page.getByRole("row").filter({ hasText: "Decision over gRPC" });
  await row.getByText("12", { exact: true }).first().waitFor();
  const cells = await row.getByRole("cell").allTextContents();
  for (const latency of [cells[1], cells[2], cells[4], cells[5]]) assertMatch(latency ?? "", /^[\d.]+ m?s$/);
  assertMatch(
    await page.locator(".chart svg").getAttribute("aria-label") ?? "",
    /p99 at most [\d.]+ m?s, now/,
  );
  // A domain that is empty is an invalid call.
  await decide(client, "", "path=/login");
  const errors = page.getByRole("row").filter({ hasText: "Invalid calls" });
  await errors.getByText("+1", { exact: true }).waitFor();
  await opened.view("Overview");
  const tile = page.locator(".metric", { hasText: "Errors" });
  await tile.locator(".value").getByText("1", { exact: true }).waitFor();
  assertMatch(await page.locator(".metric", { hasText: "Response time" }).textContent() ?? "", /\d m?s/);
}

async function reloads({ weir, opened, page }: PageBed): Promise<void> {
  await opened.view("Reloads");
  const rows = page.locator("tbody tr");
  await rows.first().getByText(/\/config\/shop\.yaml/).waitFor();
  assertEquals(await rows.count(), 1);
  const file = join(weir.weir.rulesFolder, "broken.yaml");
  await Deno.writeTextFile(file, BROKEN);
  weir.weir.reload();
  const rejected = rows.filter({ hasText: "rejected" }).filter({ hasText: "/config/broken.yaml" }).first();
  await rejected.getByText(/\/config\/broken\.yaml:4:23: .*fortnight/).waitFor();
  await Deno.remove(file);
  weir.weir.reload();
  await rows.first().getByText("loaded").waitFor();
}

async function settings({ opened, page }: PageBed): Promise<void> {
  await opened.view("Settings");
  const row = (name: string) => page.getByRole("row").filter({ has: page.getByText(name, { exact: true }) });
  const cells = async (name: string) => (await row(name).getByRole("cell").allTextContents()).slice(1, -1);
  await row("LOCAL_CACHE_SIZE_IN_BYTES").waitFor();
  assertEquals(await cells("LOCAL_CACHE_SIZE_IN_BYTES"), ["1000000"]);
  for (const secret of ["ADMIN_TOKEN", "DEBUG_TOKEN"]) {
    assertEquals(await cells(secret), ["not shown"]);
  }
  assertEquals(await row("NEAR_LIMIT_RATIO").count(), 0);
  await page.getByLabel("Show").selectOption("all settings");
  await eventually(["0.8", "default"], () => cells("NEAR_LIMIT_RATIO"));
  await page.getByLabel("Filter").fill("near_limit");
  await opened.sees(/^\d+ of \d+$/);
  await eventually(1, () => row("NEAR_LIMIT_RATIO").count());
  await page.getByLabel("Filter").fill("nothing has this name");
  await opened.sees("No matching settings.");
  const traces = await opened.traces();
  for (const secret of [ADMIN_TOKEN, DEBUG_TOKEN]) assertEquals(traces.includes(secret), false);
}
