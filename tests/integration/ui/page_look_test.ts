import { assertEquals } from "@std/assert";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { type OpenedPage, PageBrowser, stepsOf } from "../../harness/page_browser.ts";
import { axeFindings } from "./page_axe.ts";
import { WORST_CONTRASTS } from "./page_contrast.ts";
import { ADMIN_TOKEN, PageWeir } from "./page_weir.ts";

const LIVE = ["Overview", "Diagnostics", "Rules", "Over limit", "Explain", "Reloads", "Settings"];
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
/** Pale in both colour schemes. */
const PALE =
  `document.styleSheets[0].insertRule("main .about { color: rgb(90, 90, 90); background-color: rgb(110, 110, 110) }")`;

Deno.test({
  ...needs(
    ["chromium-headless-shell"],
    "page: every view can be read in dark and in light, on a narrow screen and by all readers",
  ),
  async fn(t) {
    const step = stepsOf(t);
    await using weir = await PageWeir.start();
    await filled(weir);
    await using browser = await PageBrowser.launch();
    await using opened = await browser.open(weir.url);
    for (const view of LIVE) {
      await step(view, async () => assertEquals(await lookAtLive(weir, opened, view), GOOD));
    }
    await opened.view("Deliveries");
    await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
    for (const view of ADMINISTRATION) {
      await step(view, async () => assertEquals(await lookAtAdministration(opened, view), GOOD));
    }
    await step("a dialog", async () => {
      await opened.view("Triggers");
      await opened.page.getByRole("button", { name: "Add a trigger" }).click();
      assertEquals(await look(opened, "dialog"), GOOD);
      await opened.page.keyboard.press("Escape");
    });
    assertEquals(await opened.problems(), []);
    await step("a button without a name would be found", async () => {
      await opened.value(`document.querySelector("main").append(document.createElement("button"))`);
      assertEquals(String(await axeFindings(opened)).split(":")[0], "button-name");
    });
    await step("a text that is too pale would be found", async () => {
      await opened.value(PALE);
      await until("a finding", async () => (await opened.value(WORST_CONTRASTS) as string[]).length > 0);
    });
  },
});

async function filled(weir: PageWeir): Promise<void> {
  // Nobody listens there, so that deliveries have something to tell.
  await weir.api("/endpoints", {
    url: "http://127.0.0.1:9/a-receiver",
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

async function lookAtLive(weir: PageWeir, opened: OpenedPage, view: string): Promise<Look> {
  await opened.view(view);
  if (view === "Overview") {
    await opened.isLive();
    await weir.decide("account", "ann", 8);
    await opened.sees("shop_account_ann");
  }
  if (view === "Explain") {
    await opened.page.getByLabel("Domain").fill("shop");
    await opened.page.getByLabel("Descriptors").fill("account=ann\npath=/login");
    await opened.page.getByRole("button", { name: "Explain", exact: true }).click();
    await opened.sees("limited");
  }
  return await look(opened, view);
}

/** The list of a view where it stands, or else the first thing in it. */
async function lookAtAdministration(opened: OpenedPage, view: string): Promise<Look> {
  const { page } = opened;
  await opened.view(view);
  await page.locator("tbody tr").first().waitFor();
  const open = page.locator("[data-action=open]");
  if (await open.count() > 0) {
    await open.first().click();
    await page.locator("dl.facts").first().waitFor();
  }
  return await look(opened, view);
}

/** What is wrong with the looks of a view. */
interface Look {
  /** Texts that are too pale. */
  readonly dark: unknown;
  readonly light: unknown;
  /** What axe-core finds in both color schemes, and on a narrow screen. */
  readonly axe: readonly unknown[];
  /** How far a narrow page goes beyond its window. */
  readonly beyond: number;
}

const GOOD: Look = { dark: [], light: [], axe: [[], [], []], beyond: 0 };

/**
 * Looks at a view in both colour schemes and in a narrow window, then keeps pictures. For one of a page that is longer than
 * the window the browser changes the size of the page for a while, so nothing is measured after it.
 */
async function look(opened: OpenedPage, view: string): Promise<Look> {
  const { page } = opened;
  const name = view.toLowerCase().replaceAll(" ", "-");
  const dark = await opened.value(WORST_CONTRASTS);
  await page.emulateMedia({ colorScheme: "light" });
  const light = await opened.value(WORST_CONTRASTS);
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
  return { dark, light, axe, beyond };
}

/** Gives the window another size, and waits until the page has it. */
async function resized(opened: OpenedPage, size: typeof WIDE): Promise<void> {
  await opened.page.setViewportSize(size);
  const has = `innerWidth === ${size.width} && innerHeight === ${size.height}`;
  await until("the new size", () => opened.value(has));
}
