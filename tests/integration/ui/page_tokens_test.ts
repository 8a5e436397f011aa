import { assertEquals } from "@std/assert";
import { needs } from "../../harness/tools.ts";
import { startWeir } from "../../harness/weir_process.ts";
import { type OpenedPage, PageBrowser, stepsOf } from "../../harness/page_browser.ts";
import { ADMIN_TOKEN, PageWeir } from "./page_weir.ts";

const DEBUG_TOKEN = "the-token-of-the-debug-port";
const EITHER = "DEBUG_TOKEN or ADMIN_TOKEN";

Deno.test({
  ...needs(["chromium"], "page: tokens are asked for where they are wanted, and kept in memory alone"),
  async fn(t) {
    const step = stepsOf(t);
    await using weir = await PageWeir.start({ env: { DEBUG_TOKEN } });
    await using browser = await PageBrowser.launch();
    await using opened = await browser.open(weir.url);
    const { page } = opened;
    await step("the live figures want either token", async () => {
      await opened.isLive("A token is wanted");
      await opened.sees("The live figures want a token");
      assertEquals(await page.getByLabel(EITHER).getAttribute("type"), "password");
      assertEquals(await page.getByLabel(EITHER).getAttribute("autocomplete"), "off");
      await opened.giveToken(EITHER, "two words");
      await opened.sees("A token is wanted: visible ASCII without a space");
      await opened.giveToken(EITHER, "another-token");
      await opened.sees("The service did not take that token.");
      await opened.picture("token-refused");
      await opened.giveToken(EITHER, DEBUG_TOKEN);
      await opened.isLive();
      await opened.sees("Healthy");
    });
    await step("that of the debug port does not open the administration", async () => {
      await opened.view("Endpoints");
      await opened.sees("That token opens the live figures, but not the administration.");
      await opened.giveToken("ADMIN_TOKEN", "wrong-one");
      await opened.sees("The service did not take that token.");
      await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
      await opened.sees("There is no endpoint yet.");
      await opened.isLive();
    });
    await step("no token is anywhere but in memory", () => tokensHidden(opened));
    await step("a token is forgotten when someone says so", async () => {
      await page.getByRole("button", { name: "Forget the token" }).click();
      await opened.sees("The administration wants its token");
      await opened.view("Overview");
      // The stream that runs is ended with the token that opened it.
      await opened.sees("The live figures want a token");
    });
    await step("a token is forgotten when the page is loaded again", async () => {
      await opened.giveToken(EITHER, ADMIN_TOKEN);
      await opened.isLive();
      await page.reload();
      await opened.isLive("A token is wanted");
      await opened.giveToken(EITHER, ADMIN_TOKEN);
      await opened.view("Endpoints");
      await opened.sees("There is no endpoint yet.");
    });
    assertEquals(await opened.problems(), []);
  },
});

async function tokensHidden(opened: OpenedPage): Promise<void> {
  const traces = await opened.traces();
  for (const token of [DEBUG_TOKEN, ADMIN_TOKEN]) assertEquals(traces.includes(token), false);
}

Deno.test({
  ...needs(["chromium"], "page: what is off is said to be off"),
  async fn() {
    await using browser = await PageBrowser.launch();
    const cases: readonly (readonly [Record<string, string>, RegExp])[] = [
      [{}, /ADMIN_TOKEN of the service is not set/],
      [{ ADMIN_TOKEN }, /The webhook service is off: WEBHOOK_STORE/],
    ];
    for (const [env, text] of cases) {
      await using weir = await startWeir({ env });
      await using opened = await browser.open(`http://${weir.debugAddress}/ui#deliveries`);
      await opened.sees(text);
      assertEquals(await opened.problems(), []);
    }
  },
});
