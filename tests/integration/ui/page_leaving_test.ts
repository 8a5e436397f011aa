import { assertEquals } from "@std/assert";
import { needs } from "../../harness/tools.ts";
import { type OpenedPage, PageBrowser, stepsOf } from "../../harness/page_browser.ts";
import { ADMIN_TOKEN, PageWeir } from "./page_weir.ts";

Deno.test({
  ...needs(["chromium"], "page: who leaves leaves no token and no secret, and who stays loses none"),
  async fn(t) {
    const step = stepsOf(t);
    await using weir = await PageWeir.start();
    await using browser = await PageBrowser.launch();
    await using opened = await browser.open(`${weir.url}#event-keys`);
    const { page } = opened;
    const dialog = page.getByRole("dialog");
    await step("a token that was typed in and not given", async () => {
      await page.getByLabel("ADMIN_TOKEN").fill("typed-and-not-given");
      await opened.value(`dispatchEvent(new Event("pagehide"))`);
      assertEquals((await opened.traces()).includes("typed-and-not-given"), false);
    });
    await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
    await step("a secret is not lost by a key, however often it is pressed", async () => {
      await addKey(opened, "first");
      await dialog.locator(".secret").waitFor();
      for (let n = 0; n < 3; n++) await page.keyboard.press("Escape");
      assertEquals(await dialog.locator(".secret").isVisible(), true);
      await dialog.click({ position: { x: 5, y: 5 } });
      for (let n = 0; n < 3; n++) await page.keyboard.press("Escape");
      assertEquals(await dialog.locator(".secret").isVisible(), true);
    });
    await step("a secret that is shown while the page is left is gone at once", async () => {
      const secret = await dialog.locator(".secret").textContent() ?? "";
      // Looked at in the same moment: what comes later does not come to a page that is put away.
      const left = await opened.value(`(() => {
        dispatchEvent(new Event("pagehide"));
        return document.documentElement.outerHTML;
      })()`);
      assertEquals([secret.startsWith("svce_"), String(left).includes(secret)], [true, false]);
      await opened.sees("The administration wants its token");
      await page.keyboard.press("Escape");
    });
    await step("what fails after its form was closed is told", async () => {
      await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
      const { promise, resolve } = Promise.withResolvers<void>();
      await page.route("**/api/v1/event-keys", async (route) => {
        await promise;
        await route.fulfill({ status: 409, json: { detail: "Cannot make this key: it is late" } });
      });
      await addKey(opened, "late");
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      resolve();
      await page.getByText("Add an event key: Cannot make this key: it is late").waitFor();
      await page.unrouteAll({ behavior: "ignoreErrors" });
    });
    await step("who comes back to a list finds it as it was", async () => {
      await opened.view("Audit");
      await page.getByLabel("Action").fill("event_key.created");
      await page.keyboard.press("Enter");
      await opened.view("Overview");
      await page.goBack();
      await page.getByRole("heading", { level: 1, name: "Audit" }).waitFor();
      assertEquals(await page.getByLabel("Action").inputValue(), "event_key.created");
    });
    await step("what was today has its day when that is over", async () => {
      await page.locator("tbody time").filter({ hasText: /^\d\d:/ }).first().waitFor();
      await page.clock.setSystemTime(new Date(Date.now() + 86_400_000));
      await page.locator("tbody time").filter({ hasText: /^\d+ \w+ \d\d:/ }).first().waitFor();
    });
    assertEquals(await opened.problems(), []);
  },
});

async function addKey({ page }: OpenedPage, name: string): Promise<void> {
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Add an event key" }).click();
  await dialog.getByLabel("Name").fill(name);
  await dialog.getByLabel("Kinds").fill("a.*");
  await dialog.getByRole("button", { name: "Add it" }).click();
}
