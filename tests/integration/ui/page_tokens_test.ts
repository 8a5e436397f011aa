import { assertEquals } from "#assert";
import { needs } from "../../harness/tools.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { type OpenedPage, PageBrowser, stepsOf } from "../../harness/page_browser.ts";
import { ADMIN_TOKEN, pageTest } from "./page_weir.ts";

const DEBUG_TOKEN = "the-token-of-the-debug-port";
const EITHER = "DEBUG_TOKEN or ADMIN_TOKEN";

pageTest(
  "tokens are asked for where they are required, and kept in memory alone",
  { env: { DEBUG_TOKEN } },
  async ({ opened, page, step }) => {
    await step("the live metrics require either token", async () => {
      await opened.isLive("Token required");
      await opened.sees("The live statistics require a token");
      assertEquals(await page.getByLabel(EITHER).getAttribute("type"), "password");
      assertEquals(await page.getByLabel(EITHER).getAttribute("autocomplete"), "off");
      await opened.giveToken(EITHER, "two words");
      await opened.sees("Invalid token: expected visible ASCII without spaces");
      await opened.giveToken(EITHER, "another-token");
      await opened.sees("The service rejected the token.");
      await opened.giveToken(EITHER, DEBUG_TOKEN);
      await opened.isLive();
      await opened.sees("All components healthy");
    });
    await step("that of the debug port does not open the administration", async () => {
      await opened.view("Endpoints");
      await opened.sees("This token gives access to the live statistics, but not to the administration.");
      await opened.giveToken("ADMIN_TOKEN", "wrong-one");
      await opened.sees("The service rejected the token.");
      await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
      await opened.sees("No endpoints yet.");
      await opened.isLive();
    });
    await step("no token is anywhere but in memory", () => tokensHidden(opened));
    await step("a token is forgotten when someone says so", async () => {
      await page.getByRole("button", { name: "Forget the token" }).click();
      await opened.sees("The administration requires a token");
      await opened.view("Overview");
      // The stream that runs is ended with the token that opened it.
      await opened.sees("The live statistics require a token");
    });
    await step("a token is forgotten when the page is loaded again", async () => {
      await opened.giveToken(EITHER, ADMIN_TOKEN);
      await opened.isLive();
      await page.reload();
      await opened.isLive("Token required");
      await opened.giveToken(EITHER, ADMIN_TOKEN);
      await opened.view("Endpoints");
      await opened.sees("No endpoints yet.");
    });
  },
);

async function tokensHidden(opened: OpenedPage): Promise<void> {
  const traces = await opened.traces();
  for (const token of [DEBUG_TOKEN, ADMIN_TOKEN]) assertEquals(traces.includes(token), false);
}

/** Requests that a page may make a browser send to another site, and the status of each. */
const ASKED: Readonly<Record<string, number>> = {
  "/ui/live?script": 403,
  "/stats?script": 403,
  "/stats?frame": 403,
};

/** A page that asks for all that it can get a browser to ask for without its visitor. */
function hostilePage(debug: string): Response {
  const body = `<!doctype html><title>other</title>
<script>
for (const path of ["/ui/live?script", "/stats?script"]) {
  fetch("http://${debug}" + path, { mode: "no-cors" }).catch(() => {});
}
</script>
<iframe src="http://${debug}/stats?frame"></iframe>
<a href="http://${debug}/ui">the page</a>`;
  return new Response(body, { headers: { "content-type": "text/html" } });
}

Deno.test({
  ...needs(
    ["chromium-headless-shell"],
    "page: what is off is said to be off, and other sites can make a browser ask the debug port for nothing",
  ),
  async fn(t) {
    const step = stepsOf(t);
    await using weir = await ServeFixture.start();
    const { debug } = weir.running.addresses;
    await using browser = await PageBrowser.launch();
    await step("without ADMIN_TOKEN", async () => {
      await using opened = await browser.open(`http://${debug}/ui#deliveries`);
      await opened.sees(/ADMIN_TOKEN is not set/);
      assertEquals(await opened.problems(), []);
    });
    await step("without WEBHOOK_STORE", async () => {
      await using other = await ServeFixture.start({ env: { ADMIN_TOKEN } });
      await using opened = await browser.open(`http://${other.running.addresses.debug}/ui#deliveries`);
      await opened.sees(/The webhook service is off: WEBHOOK_STORE/);
      assertEquals(await opened.problems(), []);
    });
    await step("other sites", () => otherSites(browser, debug));
  },
});

async function otherSites(browser: PageBrowser, debug: string): Promise<void> {
  const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
  await using server = Deno.serve(options, () => hostilePage(debug));
  // To a browser the first is another site, the second is the same.
  for (const host of ["localhost", "127.0.0.1"]) {
    await using opened = await browser.open("about:blank");
    const { page } = opened;
    const seen: Record<string, number> = {};
    page.on("response", (response) => {
      const { host, pathname, search } = new URL(response.url());
      if (host === debug) seen[pathname + search] = response.status();
    });
    await page.goto(`http://${host}:${server.addr.port}/`);
    await until("the answers", () => Object.keys(seen).length === Object.keys(ASKED).length);
    assertEquals([host, seen], [host, ASKED]);
    await page.getByRole("link").click();
    await opened.isLive();
  }
}
