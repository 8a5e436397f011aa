import { assertEquals, assertMatch } from "#assert";
import { eventually, until } from "../../harness/until.ts";
import { axeFindings } from "./page_axe.ts";
import { ADMIN_TOKEN, type PageBed, pageTest } from "./page_weir.ts";

const RECEIVER = "http://127.0.0.1:9/a-receiver";

pageTest("whatever has a name is found by it, links keep what was filtered, and little room is enough", {
  view: "deliveries",
}, async (bed) => {
  const { weir, opened, page, step } = bed;
  const endpoint = await weir.api("/endpoints", { url: RECEIVER, events: ["a.*"] });
  const { id } = await weir.api("/events", { event: "a.b", data: {} });
  await step("what was chosen stays chosen while more is found", () => lateAnswer(bed));
  await step("views, rules and settings are found by a part of their name", () => names(bed));
  await step("it stays where it was opened, and only there", () => whileLeaving(bed));
  await step("a record is found by its identifier", async () => {
    await find(bed, endpoint.id);
    await option(bed, RECEIVER, "Endpoint");
    await find(bed, endpoint.id.slice(0, 8));
    await option(bed, RECEIVER, "Endpoint");
    const key = await weir.api("/event-keys", { name: "desk", kinds: ["a.*"] });
    const replay = await weir.api("/deliveries/retry", { state: "failed" });
    await find(bed, key.id.slice(0, 8));
    await option(bed, "desk", "Event key");
    await find(bed, replay.id.slice(0, 8));
    await option(bed, replay.id, "Replay");
    await find(bed, "ech");
    await option(bed, "echo", "Workflow");
    await page.keyboard.press("Enter");
    await until("the workflow", () => page.url().endsWith("#workflows/echo"));
    await find(bed, id);
    await option(bed, id, "Event");
    await page.keyboard.press("Enter");
    await until("the event", () => page.url().endsWith(`#events/${id}`));
    await find(bed, "ffffffff-0000-4000-8000-000000000000");
    await page.getByText(/Nothing found for "ffffffff/).waitFor();
    assertEquals(await axeFindings(opened), []);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });
  await step("Explain has the request of a rule, and of a key over its limit", () => explain(bed));
  await step("filters are in the address, and come with a link to it", () => filters(bed));
  await step("the menu and the filters fold where there is little room", () => fold(bed));
  await step("a token outlives a reload only where someone keeps it for the tab", () => keep(bed));
});

async function find({ page }: PageBed, text: string): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Find" }).fill(text);
}

async function option({ page }: PageBed, text: string, kind: string): Promise<void> {
  await page.getByRole("option", { name: `${text} ${kind}` }).waitFor();
}

/** The page hears of a new address after the keys that were pressed since. */
async function whileLeaving({ opened, page }: PageBed): Promise<void> {
  await opened.value(`location.hash = "#rules";
    document.dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true })); 0`);
  await page.locator("h1", { hasText: "Rules" }).waitFor();
  await page.getByRole("combobox", { name: "Find" }).waitFor();
  await opened.value(`location.hash = "#deliveries"; 0`);
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

/** Workflows are listed before settings, and are answered last. */
async function lateAnswer(bed: PageBed): Promise<void> {
  const { page } = bed;
  const { promise, resolve } = Promise.withResolvers<void>();
  await page.route("**/api/v1/workflows?*", async (route) => {
    await promise;
    await route.continue();
  });
  await find(bed, "ec");
  await option(bed, "Executions", "View");
  await page.getByRole("option", { name: / Setting$/ }).first().waitFor();
  await page.keyboard.press("ArrowUp");
  const chosen = page.locator("[role=option][aria-selected=true]");
  const text = await chosen.textContent() ?? "";
  assertMatch(text, /Setting$/);
  resolve();
  await option(bed, "echo", "Workflow");
  assertEquals(await chosen.textContent(), text);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

async function names(bed: PageBed): Promise<void> {
  const { opened, page } = bed;
  await opened.isLive();
  await find(bed, "quot");
  await option(bed, "Quotas", "View");
  await option(bed, "QUOTA_MAX_BUCKETS", "Setting");
  await page.keyboard.press("ArrowDown");
  const chosen = page.locator("[role=option][aria-selected=true]");
  assertMatch(await chosen.textContent() ?? "", /^QUOTA_/);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
  await eventually(1, () => page.locator("tbody tr").count());
  await find(bed, "path_/login");
  await page.getByRole("option", { name: "shop.path_/login Rule" }).click();
  await page.getByRole("heading", { level: 1, name: "Rules" }).waitFor();
  assertEquals(await page.getByLabel("Filter").inputValue(), "shop.path_/login");
  await opened.sees("1 found among 7");
}

async function explain({ weir, opened, page }: PageBed): Promise<void> {
  await opened.view("Rules");
  await page.getByLabel("Filter").fill("");
  await page.getByRole("button", { name: "shop.path_/login" }).click();
  await page.getByRole("region", { name: "Explanation" }).getByText("100 per hour").waitFor();
  await opened.view("Rules");
  await page.getByRole("button", { name: "shop.account" }).click();
  await eventually("account=", () => page.getByLabel("Descriptors").inputValue());
  await weir.decide("account", "ann_bob", 9);
  await opened.view("Over limit");
  await page.getByRole("button", { name: "shop_account_ann_bob" }).click();
  await eventually("account=ann_bob", () => page.getByLabel("Descriptors").inputValue());
  await opened.sees(/\d+ used, 0 left/);
}

async function filters({ opened, page }: PageBed): Promise<void> {
  await opened.view("Deliveries");
  await page.getByLabel("State").selectOption("acknowledged");
  await opened.sees("No matching deliveries.");
  await page.getByLabel("Event", { exact: true }).fill("a.b");
  await page.keyboard.press("Enter");
  await until("the address", () => page.url().endsWith("#deliveries?state=acknowledged&event=a.b"));
  const address = page.url();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await until("the address", () => page.url().endsWith("#deliveries"));
  await eventually(1, () => page.locator("tbody tr").count());
  await opened.value(`location.href = ${JSON.stringify(address)}`);
  await opened.sees("No matching deliveries.");
  assertEquals(await page.getByLabel("State").inputValue(), "acknowledged");
}

async function fold({ opened, page }: PageBed): Promise<void> {
  await page.setViewportSize({ width: 360, height: 740 });
  const states = page.getByLabel("State");
  await states.waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Filters", exact: true }).click();
  await states.waitFor();
  const views = page.getByRole("navigation");
  await views.waitFor({ state: "hidden" });
  const menu = page.getByRole("button", { name: "Menu" });
  await menu.click();
  await views.waitFor();
  assertEquals(await axeFindings(opened), []);
  await views.getByRole("link", { name: "Events", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Events" }).waitFor();
  await views.waitFor({ state: "hidden" });
  assertEquals(await menu.getAttribute("aria-expanded"), "false");
  await page.setViewportSize({ width: 1_280, height: 860 });
}

async function keep({ opened, page }: PageBed): Promise<void> {
  await page.reload();
  await opened.sees("The administration requires a token");
  await page.getByLabel("Keep it for this tab").check();
  await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
  await opened.sees("a.b");
  await page.reload();
  await opened.sees("a.b");
  await page.getByText("Token kept for this tab").waitFor();
  await page.getByRole("button", { name: "Forget the token" }).click();
  await opened.sees("The administration requires a token");
  assertEquals((await opened.traces()).includes(ADMIN_TOKEN), false);
  await page.reload();
  await opened.sees("The administration requires a token");
}
