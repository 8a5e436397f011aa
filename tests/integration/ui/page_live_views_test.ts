import { assertEquals, assertStringIncludes } from "#assert";
import { join } from "node:path";
import { EventReader } from "../../harness/event_reader.ts";
import { eventually, until } from "../../harness/until.ts";
import { ADMIN_TOKEN, type PageBed, pageTest } from "./page_weir.ts";

const BROKEN = "domain: broken\ndescriptors:\n- key: a\n  rate_limit: { unit: fortnight }\n";
/** Says to the page that it is hidden, or visible. */
const hidden = (isHidden: boolean) =>
  `Object.defineProperty(document, "hidden", { value: ${isHidden}, configurable: true });
   document.dispatchEvent(new Event("visibilitychange"));`;

pageTest("overview, rules, over limit and explain show the service as it is", {}, async (bed) => {
  const { opened, step } = bed;
  await step("the overview counts decisions", () => overview(bed));
  await step("a load that failed is shown with its error, and no more after a good one", () => {
    return configuration(bed);
  });
  await step("the rules change in place under who types, sorts and filters", () => rules(bed));
  await step("the keys most often over their limit are ranked", async () => {
    await opened.view("Over limit");
    await opened.sees("shop_account_bob");
  });
  await step("a request is explained, its counter is shown and reset", () => explain(bed));
  await step("a bucket shows its level, and a concurrency limit what is in flight", () => {
    return algorithms(bed);
  });
  await step("a link that is pressed while its row changes is followed", () => pressed(bed));
  await step("the stream rests while the page is hidden, stops and starts", () => rest(bed));
  await step("the stream comes back after the service was unavailable", () => comeBack(bed));
});

async function overview({ weir, opened, page }: PageBed): Promise<void> {
  await opened.isLive();
  const metric = (title: string) => page.locator(".metric", { hasText: title }).locator(".value");
  await opened.sees("All components healthy");
  assertEquals(await weir.decide("account", "bob", 12), 7);
  await page.locator(".metric", { hasText: "Decisions per second" }).getByText("12 in the last hour")
    .waitFor();
  await eventually("58.3%", () => metric("Over the limit").textContent());
  const bar =
    "[...document.querySelectorAll('.chart rect.over')].some((one) => Number(one.getAttribute('height')) > 0)";
  await until("a bar of the chart", () => opened.value(bar));
  assertStringIncludes(
    await page.locator(".chart svg").first().getAttribute("aria-label") ?? "",
    "decisions per minute at most",
  );
  await opened.sees("shop_account_bob");
  const shown = () => Promise.all(["Rules", "Cache"].map((title) => metric(title).textContent()));
  await eventually(["7", "memory"], shown);
  await page.locator(".metric", { hasText: "Oldest due delivery" }).getByText("no delivery is due").waitFor();
}

async function configuration({ weir, opened, page }: PageBed): Promise<void> {
  const file = join(weir.weir.rulesFolder, "broken.yaml");
  await Deno.writeTextFile(file, BROKEN);
  weir.weir.reload();
  await opened.sees("Degraded");
  await opened.sees(/fortnight|unit/);
  await Deno.remove(file);
  weir.weir.reload();
  await page.getByText("All components healthy").waitFor();
}

async function rules({ weir, opened, page }: PageBed): Promise<void> {
  await opened.view("Rules");
  const filter = page.getByLabel("Filter");
  await filter.fill("ACCOUNT");
  await opened.sees("1 found among 7");
  const row = page.locator("tbody tr");
  await eventually(1, () => row.count());
  await opened.value(`globalThis.kept = document.querySelector("tbody tr")`);
  await weir.decide("account", "ann", 3);
  await row.getByText("15", { exact: true }).waitFor();
  // The row is the one that it was, and who types goes on typing.
  assertEquals(await opened.value("kept.isConnected && kept === document.querySelector('tbody tr')"), true);
  assertEquals(await opened.value("document.activeElement.id"), "rules-filter");
  await filter.fill("");
  await page.getByRole("button", { name: "Over", exact: true }).click();
  const over = page.getByRole("columnheader", { name: "Over", exact: true });
  await eventually("descending", () => over.getAttribute("aria-sort"));
  assertStringIncludes(await row.first().textContent() ?? "", "shop.account");
  await row.getByText("shadow").waitFor();
  // Rows change places by what they are sorted by, but not while someone points at them.
  await page.getByRole("button", { name: "Hits", exact: true }).click();
  await row.first().hover();
  await weir.decide("path", "/login", 20);
  await row.getByText("20", { exact: true }).first().waitFor();
  assertStringIncludes(await row.first().textContent() ?? "", "shop.account");
  await page.getByRole("heading", { level: 1 }).hover();
  await row.first().getByText("shop.path_/login").waitFor();
  await filter.fill("nothing has this name");
  await opened.sees("No matching rules.");
  await filter.fill("");
}

async function explain({ opened, page }: PageBed): Promise<void> {
  await opened.view("Explain");
  const go = page.getByRole("button", { name: "Explain", exact: true });
  await go.click();
  await opened.sees("Domain is required");
  assertEquals(await opened.value("document.activeElement.getAttribute('aria-invalid')"), "true");
  await page.getByLabel("Domain").fill("shop");
  await page.getByLabel("Descriptors").fill("account");
  await go.click();
  await opened.sees(/"account" has no equals sign: expected key=value/);
  await page.getByLabel("Descriptors").fill("account=bob\ncolour=red");
  await go.click();
  await opened.sees("no limit");
  await opened.sees(/Counts are not shown/);
  await page.getByText("Show and reset counts").click();
  await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
  await go.click();
  await opened.sees(/\d+ used, 0 left/);
  await page.getByRole("button", { name: "Reset these counters" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Reset", exact: true }).click();
  await opened.sees("0 used, 5 left");
  await page.getByText(/Counters reset/).waitFor();
}

async function algorithms({ weir, opened, page }: PageBed): Promise<void> {
  await weir.decide("burst", "ann", 3);
  await weir.decide("flight", "ann", 6);
  await opened.view("Rules");
  await opened.sees("10 per day, token bucket of 30");
  await opened.sees("4 in flight");
  await opened.view("Explain");
  await page.getByLabel("Domain").fill("shop");
  await page.getByLabel("Descriptors").fill("burst=ann\nflight=ann");
  await page.getByRole("button", { name: "Explain", exact: true }).click();
  await opened.sees("3 taken, 27 left");
  await opened.sees("4 in flight, 0 left");
}

async function pressed({ weir, opened, page }: PageBed): Promise<void> {
  await opened.view("Rules");
  await page.getByRole("button", { name: "shop.account" }).hover();
  await page.mouse.down();
  await weir.decide("account", "zoe");
  const reader = new EventReader(await fetch(new URL("/ui/live", weir.url)));
  // The page hears of the hit between these.
  for (let snapshot = 0; snapshot < 3; snapshot++) await reader.data();
  await reader.cancel();
  await page.mouse.up();
  await page.getByRole("heading", { level: 1, name: "Explain" }).waitFor();
  await opened.view("Rules");
  await page.locator("tbody tr", { hasText: "shop.account" }).getByText("16", { exact: true }).waitFor();
}

async function rest({ opened, page }: PageBed): Promise<void> {
  await opened.value(hidden(true));
  await opened.isLive(/page is hidden/);
  await opened.value(hidden(false));
  await opened.isLive();
  await page.getByRole("button", { name: "Pause updates", exact: true }).click();
  await opened.isLive("Stopped");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await opened.isLive();
}

async function comeBack({ weir, opened, page }: PageBed): Promise<void> {
  await opened.view("Overview");
  await weir.weir.stop();
  await opened.isLive(/Reconnecting in \d+ s/);
  await opened.sees("Not live: as of");
  await weir.startAgain();
  await until("the stream to come back", async () => {
    await opened.connectNow();
    return await page.locator(".live[data-state=live]").count() > 0;
  });
  // The history is that of the process.
  await page.locator(".metric", { hasText: "Decisions per second" }).getByText(/^0 in the last hour/)
    .waitFor();
  await page.getByText("Not live").waitFor({ state: "hidden" });
}
