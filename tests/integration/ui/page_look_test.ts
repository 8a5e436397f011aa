import { assertEquals } from "#assert";
import { GrpcClient } from "../../harness/grpc_client.ts";
import { QuotaStreamClient } from "../../harness/quota_stream_client.ts";
import { until } from "../../harness/until.ts";
import type { OpenedPage } from "../../harness/page_browser.ts";
import { axeFindings } from "./page_axe.ts";
import { ADMIN_TOKEN, type PageBed, pageTest } from "./page_weir.ts";

const LIVE = ["Overview", "Diagnostics", "Rules", "Over limit", "Quotas", "Explain", "Reloads", "Settings"];
const ADMINISTRATION = [
  "Deliveries",
  "Executions",
  "Endpoints",
  "Triggers",
  "Workflows",
  "Events",
  "Event keys",
  "Audit",
];
const WIDE = { width: 1280, height: 860 };
const NARROW = { width: 360, height: 740 };
/** A row of two lines has 56 pixels. */
const ARE_LINES = `[...document.querySelectorAll("tbody tr")].every((row) => row.clientHeight < 56)`;
/** Pale in both colour schemes. */
const PALE =
  `document.styleSheets[0].insertRule("main .about { color: rgb(90, 90, 90); background-color: rgb(110, 110, 110) }")`;

pageTest(
  "every view can be read in dark and in light, on a narrow screen and by all readers",
  {},
  async (bed) => {
    const { opened, step } = bed;
    await filled(bed);
    using client = new GrpcClient(bed.weir.weir.grpcAddress);
    const bucket = { account: "bob".repeat(40), plan: "free".repeat(20) };
    new QuotaStreamClient(client).report("shop", { bucket, allowed: 1 }, { bucket: { path: "/login" } });
    for (const view of LIVE) {
      await step(view, async () => assertEquals(await lookAtLive(bed, view), GOOD));
    }
    await opened.view("Deliveries");
    await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
    for (const view of ADMINISTRATION) {
      await step(view, async () => assertEquals(await lookAtAdministration(bed, view), GOOD));
    }
    await step("a dialog", async () => {
      await opened.view("Triggers");
      await opened.page.getByRole("button", { name: "Add a trigger" }).click();
      assertEquals(await look(bed, "dialog"), GOOD);
      await opened.page.keyboard.press("Escape");
    });
    await step("a button without a name would be found", async () => {
      await opened.value(`document.querySelector("main").append(document.createElement("button"))`);
      assertEquals(String(await axeFindings(opened)).split(":")[0], "button-name");
    });
    await step("a text that is too pale would be found", async () => {
      await opened.value(PALE);
      await until("a finding", async () => String(await axeFindings(opened)).includes("color-contrast"));
    });
  },
);

async function filled({ weir }: PageBed): Promise<void> {
  // The connection is refused, so that deliveries have something to tell.
  await weir.api("/endpoints", {
    url: `http://127.0.0.1:9/a-receiver/${"of-orders/".repeat(20)}`,
    description: "orders",
    events: ["*"],
  });
  await weir.api("/endpoints", { url: "http://127.0.0.1:9/another", enabled: false });
  await weir.api("/event-keys", { name: "the agents", kinds: ["agent.*"] });
  await weir.api("/events", { event: "document.write.completed", data: { title: "a".repeat(400) } });
  const { key } = await weir.api("/triggers", { name: "order-intake", workflow: "echo" });
  await weir.trigger("order-intake", key, '{"total": 3}');
  await weir.decide("account", "bob".repeat(40), 9);
}

async function lookAtLive(bed: PageBed, view: string): Promise<Look> {
  const { weir, opened, page } = bed;
  await opened.view(view);
  if (view === "Overview") {
    await opened.isLive();
    await weir.decide("account", "ann", 8);
    await opened.sees("shop_account_ann");
  }
  if (view === "Quotas") await opened.sees("path=/login");
  if (view === "Explain") {
    await page.getByLabel("Domain").fill("shop");
    await page.getByLabel("Descriptors").fill("account=ann\npath=/login");
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    await opened.sees("limited");
  }
  return await look(bed, view);
}

/** The list of a view where it stands, or else the first thing in it. */
async function lookAtAdministration(bed: PageBed, view: string): Promise<Look> {
  const { opened, page } = bed;
  await opened.view(view);
  await page.locator("tbody tr").first().waitFor();
  // Long addresses and details do not break a row.
  if (view === "Deliveries" || view === "Audit") await until("one line", () => opened.value(ARE_LINES));
  const open = page.locator("[data-action=open]");
  if (await open.count() > 0) {
    await open.first().click();
    await page.locator("dl.facts").first().waitFor();
  }
  return await look(bed, view);
}

interface Look {
  /** Findings of axe-core, such as texts that are too pale, in both color schemes and on a narrow screen. */
  readonly axe: readonly unknown[];
  /** Pixels of a narrow page beyond its window. */
  readonly beyond: number;
}

const GOOD: Look = { axe: [[], [], []], beyond: 0 };

/**
 * Looks at a view in both colour schemes and in a narrow window, then keeps pictures. For one of a page that is longer than
 * the window the browser changes the size of the page for a while, so nothing is measured after it.
 */
async function look({ opened, page }: PageBed, view: string): Promise<Look> {
  const name = view.toLowerCase().replaceAll(" ", "-");
  await page.emulateMedia({ colorScheme: "light" });
  const axe = [await axeFindings(opened)];
  await page.emulateMedia({ colorScheme: "dark" });
  axe.push(await axeFindings(opened));
  await resized(opened, NARROW);
  axe.push(await axeFindings(opened));
  const beyond = Number(await opened.value("document.documentElement.scrollWidth")) - NARROW.width;
  await opened.picture(`${name}-narrow`);
  await resized(opened, WIDE);
  await opened.picture(`${name}-dark`);
  await page.emulateMedia({ colorScheme: "light" });
  await opened.picture(`${name}-light`);
  await page.emulateMedia({ colorScheme: "dark" });
  return { axe, beyond };
}

/** Gives the window another size, and waits until the page has it. */
async function resized(opened: OpenedPage, size: typeof WIDE): Promise<void> {
  await opened.page.setViewportSize(size);
  const has = `innerWidth === ${size.width} && innerHeight === ${size.height}`;
  await until("the new size", () => opened.value(has));
}
