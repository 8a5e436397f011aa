import { assertEquals } from "@std/assert";
import { needs } from "../../harness/tools.ts";
import { type OpenedPage, PageBrowser, stepsOf } from "../../harness/page_browser.ts";
import { ADMIN_TOKEN, PageWeir } from "./page_weir.ts";

const READ_TOKEN = "the-token-with-the-role-read-of-this-test";
const URL_SHOWN = "http://127.0.0.1:9/first";

Deno.test({
  ...needs(
    ["chromium-headless-shell"],
    "page: a read token sees lists without buttons; a filter is edited as JSON",
  ),
  async fn(t) {
    const step = stepsOf(t);
    await using weir = await PageWeir.start({ env: { ADMIN_TOKENS: `ci:read:${READ_TOKEN}` } });
    const { id } = await weir.api("/endpoints", { url: URL_SHOWN });
    const event = await weir.api("/events", { event: "a.b", data: {} });
    await using browser = await PageBrowser.launch();
    await using opened = await browser.open(weir.url);
    const { page } = opened;
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
      assertEquals((await buttons(opened)).includes("Add an endpoint"), true);
      const filter = '{"customer.plan":["pro"],"id":[12345678901234567890]}';
      await fillFilter(opened, '{"customer.plan": "pro"}');
      await page.getByRole("dialog").getByText(/Cannot use "filter.customer.plan"/).waitFor();
      await saveFilter(opened, filter);
      await opened.sees(filter);
      assertEquals(
        ((await weir.api(`/endpoints/${id}`))["filter"] as object | undefined) === undefined,
        false,
      );
      await fillFilter(opened, "");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      assertEquals((await weir.api(`/endpoints/${id}`))["filter"], undefined);
    });
    assertEquals(await opened.problems(), []);
  },
});

/** The names of the buttons in the view. */
async function buttons({ page }: OpenedPage): Promise<readonly string[]> {
  const names = await page.locator("main button:not(.link)").filter({ visible: true }).allTextContents();
  return names.filter((name) => !["Newer", "Older"].includes(name));
}

async function fillFilter(opened: OpenedPage, text: string): Promise<void> {
  await opened.page.getByRole("button", { name: `Edit ${URL_SHOWN}` }).click();
  await saveFilter(opened, text);
}

async function saveFilter({ page }: OpenedPage, text: string): Promise<void> {
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Filter").fill(text);
  await dialog.getByRole("button", { name: "Save" }).click();
}
