import { assertEquals } from "#assert";
import type { Locator } from "playwright-core";
import type { OpenedPage } from "../../harness/page_browser.ts";
import { eventually } from "../../harness/until.ts";
import { ADMIN_TOKEN, choose, type PageBed, pageTest } from "./page_weir.ts";

const READ_TOKEN = "the-token-with-the-role-read-of-this-test";
const URL_SHOWN = "http://127.0.0.1:9/first";

pageTest("a read token sees lists without buttons; a filter is edited as JSON", {
  env: { ADMIN_TOKENS: `ci:read:${READ_TOKEN}` },
}, async (bed) => {
  const { weir, opened, page, dialog, step } = bed;
  const { id } = await weir.api("/endpoints", { url: URL_SHOWN });
  const event = await weir.api("/events", { event: "a.b", data: {} });
  await step("a read token shows no button that changes something", async () => {
    await opened.view("Endpoints");
    await opened.giveToken("ADMIN_TOKEN", READ_TOKEN);
    await opened.sees(URL_SHOWN);
    assertEquals(await buttons(opened), []);
    await page.goto(`${weir.url}#events/${event.id}`);
    await opened.sees(event.id);
    assertEquals(await page.getByRole("button", { name: "Erase the payload" }).isVisible(), false);
    await weir.failDeliveries(1);
    await opened.view("Deliveries");
    await page.locator("tbody tr").filter({ hasText: "failed" }).waitFor();
    assertEquals(await page.locator("tbody input").count(), 0);
    assertEquals(await buttons(opened), []);
  });
  await step("another token shows them, and sets and removes a filter", async () => {
    await page.getByRole("button", { name: "Forget the token" }).click();
    await opened.view("Endpoints");
    await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
    await opened.sees(URL_SHOWN);
    await eventually(true, async () => (await buttons(opened)).includes("Add an endpoint"));
    const filter = '{"customer.plan":["pro"],"id":[12345678901234567890]}';
    await fillFilter(bed, '{"customer.plan": "pro"}');
    await dialog.getByText(/Cannot use "filter.customer.plan"/).waitFor();
    await saveFilter(dialog, filter);
    await opened.sees(filter);
    await fillFilter(bed, "");
    await dialog.waitFor({ state: "detached" });
    assertEquals((await weir.api(`/endpoints/${id}`))["filter"], undefined);
  });
});

/** The names of the buttons in the view. */
async function buttons({ page }: OpenedPage): Promise<readonly string[]> {
  const names = await page.locator("main button:not(.link)").filter({ visible: true }).allTextContents();
  return names.filter((name) => !["Newer", "Older"].includes(name));
}

async function fillFilter({ page, dialog }: PageBed, text: string): Promise<void> {
  await choose(page, URL_SHOWN, "Edit");
  await saveFilter(dialog, text);
}

async function saveFilter(dialog: Locator, text: string): Promise<void> {
  await dialog.getByLabel("Filter").fill(text);
  await dialog.getByRole("button", { name: "Save" }).click();
}
