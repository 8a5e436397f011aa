import { assertEquals } from "@std/assert";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { type OpenedPage, PageBrowser, stepsOf } from "../../harness/page_browser.ts";
import { ADMIN_TOKEN, PageWeir } from "./page_weir.ts";

Deno.test({
  ...needs(["chromium"], "page: endpoints and triggers are edited, and only what was changed is sent"),
  async fn(t) {
    const step = stepsOf(t);
    await using weir = await PageWeir.start();
    await using browser = await PageBrowser.launch();
    await using opened = await browser.open(`${weir.url}#endpoints`);
    await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
    await step("an endpoint", () => editEndpoint(weir, opened));
    await step("a number that is none changes nothing", () => badNumber(opened));
    await step("the secret that signs next is told, not one that never will", () => secrets(weir, opened));
    await step("a trigger", () => editTrigger(weir, opened));
    assertEquals(await opened.problems(), []);
  },
});

async function editEndpoint(weir: PageWeir, opened: OpenedPage): Promise<void> {
  const { page } = opened;
  const dialog = page.getByRole("dialog");
  const change = dialog.getByRole("button", { name: "Change it" });
  const { id } = await weir.api("/endpoints", {
    url: "http://127.0.0.1:9/first",
    events: ["a.*", "b.c"],
    description: "the first one",
    headers: { "x-tenant": "a-value", "x-other": "another" },
    timeoutMs: 2_500,
    standardWebhooks: true,
  });
  await page.getByRole("button", { name: "Edit http://127.0.0.1:9/first" }).click();
  assertEquals(await dialog.getByLabel("URL").inputValue(), "http://127.0.0.1:9/first");
  assertEquals(await dialog.getByLabel("Events").inputValue(), "a.* b.c");
  assertEquals(await dialog.getByLabel("Milliseconds").inputValue(), "2500");
  assertEquals(await dialog.getByLabel("Standard Webhooks").isChecked(), true);
  await dialog.getByText("x-tenant, x-other").waitFor();
  await opened.picture("endpoint-edit");
  // Somebody else changes something in the meantime.
  await weir.api(`/endpoints/${id}`, { description: "of somebody else" }, "PATCH");
  await dialog.getByLabel("URL").fill("nowhere");
  await change.click();
  await dialog.getByText(/Cannot use "url"/).waitFor();
  await dialog.getByLabel("URL").fill("http://127.0.0.1:9/second");
  await dialog.getByLabel("Milliseconds").fill("");
  await dialog.getByLabel("Standard Webhooks").uncheck();
  await change.click();
  await dialog.waitFor({ state: "detached" });
  await opened.sees("http://127.0.0.1:9/second");
  await opened.sees("of somebody else");
  const changed = await weir.api(`/endpoints/${id}`);
  assertEquals([changed.url, changed.events, changed.description, changed.headers, changed.timeoutMs], [
    "http://127.0.0.1:9/second",
    ["a.*", "b.c"],
    "of somebody else",
    ["x-tenant", "x-other"],
    undefined,
  ]);
  assertEquals([changed.standardWebhooks, changed.concurrency], [false, 4]);
  assertEquals(await opened.value("document.activeElement.textContent"), "Edit");
  await page.getByRole("button", { name: "Edit http://127.0.0.1:9/second" }).click();
  await change.click();
  await page.getByText("Nothing was changed.").waitFor();
  await page.getByRole("button", { name: "Edit http://127.0.0.1:9/second" }).click();
  await dialog.getByLabel("Send none of those headers any more").check();
  await change.click();
  await dialog.waitFor({ state: "detached" });
  await until("no headers", async () => String((await weir.api(`/endpoints/${id}`)).headers) === "");
}

async function badNumber(opened: OpenedPage): Promise<void> {
  const { page } = opened;
  const dialog = page.getByRole("dialog");
  await page.getByRole("button", { name: "Edit http://127.0.0.1:9/second" }).click();
  await dialog.getByLabel("Milliseconds").focus();
  await page.keyboard.type("12e");
  await dialog.getByRole("button", { name: "Change it" }).click();
  await dialog.getByText(/Cannot read "Milliseconds for an attempt": a whole number is wanted/).waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
}

async function secrets(weir: PageWeir, opened: OpenedPage): Promise<void> {
  const { id } = await weir.api("/endpoints", { url: "http://127.0.0.1:9/rotated" });
  const next = opened.page.locator("tbody tr", { hasText: "/rotated" }).getByText("next");
  await weir.api(`/endpoints/${id}/rotate`, { activeIn: "24h" });
  await next.waitFor();
  await weir.api(`/endpoints/${id}/rotate`, { activeIn: "0" });
  await next.waitFor({ state: "detached" });
}

async function editTrigger(weir: PageWeir, opened: OpenedPage): Promise<void> {
  const { page } = opened;
  const dialog = page.getByRole("dialog");
  const change = dialog.getByRole("button", { name: "Change it" });
  const descriptors = [{ customer: "{{ input.customer }}" }, { path: "/a,b" }];
  const { id } = await weir.api("/triggers", {
    name: "order-intake",
    workflow: "echo",
    limit: { domain: "shop", descriptors },
  });
  await opened.view("Triggers");
  await page.getByRole("button", { name: "Edit order-intake" }).click();
  await dialog.getByLabel("Workflow").fill("other");
  await dialog.getByLabel("When that decision fails").selectOption("allow");
  await change.click();
  await dialog.waitFor({ state: "detached" });
  await page.locator("tbody tr", { hasText: "other" }).waitFor();
  const first = await weir.api(`/triggers/${id}`);
  assertEquals([first.workflow, first.onLimitError, first.limit], ["other", "allow", {
    domain: "shop",
    descriptors,
  }]);
  await page.getByRole("button", { name: "Edit order-intake" }).click();
  await dialog.getByLabel("Domain of its rate limit").fill("store");
  await change.click();
  await dialog.waitFor({ state: "detached" });
  assertEquals((await weir.api(`/triggers/${id}`)).limit, { domain: "store", descriptors });
  await page.locator("tbody tr", { hasText: "store" }).waitFor();
  await page.getByRole("button", { name: "Edit order-intake" }).click();
  await dialog.getByLabel("Domain of its rate limit").fill("");
  await dialog.getByLabel("Descriptors of its rate limit").fill("");
  await change.click();
  await dialog.waitFor({ state: "detached" });
  assertEquals((await weir.api(`/triggers/${id}`)).limit, undefined);
}
