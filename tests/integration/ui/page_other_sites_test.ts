import { assertEquals } from "@std/assert";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { startWeir } from "../../harness/weir_process.ts";
import { PageBrowser } from "../../harness/page_browser.ts";

/** What a page may make a browser ask for, and how it is answered to another site. */
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
    ["chromium"],
    "page: other sites may link to the debug port, and can make a browser ask it for nothing",
  ),
  async fn() {
    await using weir = await startWeir({ rules: {} });
    const debug = weir.debugAddress;
    const options = { hostname: "127.0.0.1", port: 0, onListen() {} };
    await using server = Deno.serve(options, () => hostilePage(debug));
    await using browser = await PageBrowser.launch();
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
  },
});
