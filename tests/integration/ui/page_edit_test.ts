import { assertEquals } from "#assert";
import { eventually } from "../../harness/until.ts";
import { ADMIN_TOKEN, choose, type PageBed, pageTest, submit } from "./page_weir.ts";

pageTest("only what was edited is sent; who leaves leaves no token and no secret, and who stays loses none", {
  view: "endpoints",
}, async (bed) => {
  const { opened, step } = bed;
  await step("an endpoint", () => editEndpoint(bed));
  await step("a number that is none changes nothing", () => badNumber(bed));
  await step("a rate is set, shown and removed; one that is none changes nothing", () => rate(bed));
  await step("the secret that signs next is shown, not one that never will", () => secrets(bed));
  await step("a trigger", () => editTrigger(bed));
  await opened.value(`location.hash = "event-keys"`);
  await opened.page.reload();
  await leave(bed);
});

async function editEndpoint({ weir, opened, page, dialog }: PageBed): Promise<void> {
  const change = dialog.getByRole("button", { name: "Save" });
  const { id } = await weir.api("/endpoints", {
    url: "http://127.0.0.1:9/first",
    events: ["a.*", "b.c"],
    description: "the first one",
    headers: { "x-tenant": "a-value", "x-other": "another" },
    timeoutMs: 2_500,
    standardWebhooks: true,
  });
  await choose(page, "http://127.0.0.1:9/first", "Edit");
  assertEquals(await dialog.getByLabel("URL", { exact: true }).inputValue(), "http://127.0.0.1:9/first");
  assertEquals(await dialog.getByLabel("Events").inputValue(), "a.* b.c");
  assertEquals(await dialog.getByLabel("Milliseconds").inputValue(), "2500");
  assertEquals(await dialog.getByLabel("Standard Webhooks").isChecked(), true);
  await dialog.getByText("x-tenant, x-other").waitFor();
  // Somebody else changes something in the meantime.
  await weir.api(`/endpoints/${id}`, { description: "of somebody else" }, "PATCH");
  await dialog.getByLabel("URL", { exact: true }).fill("http://127.0.0.1:9/second");
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
  await eventually("⋯", () => opened.value("document.activeElement.textContent"));
  await choose(page, "http://127.0.0.1:9/second", "Edit");
  await change.click();
  await page.getByText("Nothing changed.").waitFor();
  await choose(page, "http://127.0.0.1:9/second", "Edit");
  await dialog.getByLabel("Remove these headers").check();
  await change.click();
  await dialog.waitFor({ state: "detached" });
  await eventually([], async () => (await weir.api(`/endpoints/${id}`)).headers);
}

async function badNumber({ page, dialog }: PageBed): Promise<void> {
  await choose(page, "http://127.0.0.1:9/second", "Edit");
  await dialog.getByLabel("Milliseconds").focus();
  await page.keyboard.type("12e");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText(/Invalid Timeout of an attempt in milliseconds: expected an integer/).waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
}

async function rate({ weir, opened, page, dialog }: PageBed): Promise<void> {
  const { id } = await weir.api("/endpoints", { url: "http://127.0.0.1:9/paced" });
  const save = dialog.getByRole("button", { name: "Save" });
  const edit = async (text: string, overlap: string, onGone = "") => {
    await opened.view("Triggers");
    await opened.view("Endpoints");
    await choose(page, "http://127.0.0.1:9/paced", "Edit");
    await dialog.getByLabel("Rate limit").fill(text);
    await dialog.getByLabel("Rotation overlap").fill(overlap);
    await dialog.getByLabel("On status 410").selectOption(onGone);
    await dialog.getByLabel("Template").fill(onGone && '{"text": "{{ event }}", "n": 1.10}');
    await save.click();
  };
  const found = async () => {
    const { rateLimit, rotationOverlapMs, onGone, template } = await weir.api(`/endpoints/${id}`);
    return [rateLimit, rotationOverlapMs, onGone, template];
  };
  await edit("fast", "");
  await dialog.getByText('Invalid rate "fast": expected a number and a unit such as 10/second').waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await edit("10/fortnight", "");
  await dialog.getByText(/expected one of second, minute, hour, day/).waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await edit("10/second", "86400000", "disable");
  await dialog.waitFor({ state: "detached" });
  assertEquals(await found(), [{ unit: "second", requestsPerUnit: 10 }, 86_400_000, "disable", {
    text: "{{ event }}",
    n: 1.1,
  }]);
  await opened.value(`location.hash = "endpoints/${id}"`);
  await opened.sees("10/second");
  await opened.sees("1 d");
  await opened.sees("{{ event }}");
  await edit("", "");
  await dialog.waitFor({ state: "detached" });
  assertEquals(await found(), [undefined, undefined, undefined, undefined]);
}

async function secrets({ weir, opened, page }: PageBed): Promise<void> {
  const { id } = await weir.api("/endpoints", { url: "http://127.0.0.1:9/rotated" });
  await opened.value(`location.hash = "endpoints/${id}"`);
  const shows = async (activeIn: string, count: number) => {
    await weir.api(`/endpoints/${id}/rotate`, { activeIn });
    await eventually(count, () => page.locator(".activity").getByText("pending", { exact: true }).count());
  };
  await shows("24h", 1);
  await shows("0", 0);
}

async function editTrigger({ weir, opened, page, dialog }: PageBed): Promise<void> {
  const change = dialog.getByRole("button", { name: "Save" });
  const descriptors = [{ customer: "{{ input.customer }}" }, { path: "/a,b" }];
  const { id } = await weir.api("/triggers", {
    name: "order-intake",
    workflow: "echo",
    limit: { domain: "shop", descriptors },
  });
  await opened.view("Triggers");
  await choose(page, "order-intake", "Edit");
  await dialog.getByLabel("Workflow").fill("other");
  await dialog.getByLabel("When the rate limit decision fails").selectOption("allow");
  await change.click();
  await dialog.waitFor({ state: "detached" });
  await page.locator("tbody tr", { hasText: "other" }).waitFor();
  const first = await weir.api(`/triggers/${id}`);
  assertEquals([first.workflow, first.onLimitError, first.limit], ["other", "allow", {
    domain: "shop",
    descriptors,
  }]);
  await choose(page, "order-intake", "Edit");
  await dialog.getByLabel("Rate limit domain").fill("store");
  await change.click();
  await dialog.waitFor({ state: "detached" });
  assertEquals((await weir.api(`/triggers/${id}`)).limit, { domain: "store", descriptors });
  await page.locator("tbody tr", { hasText: "store" }).waitFor();
  await choose(page, "order-intake", "Edit");
  await dialog.getByLabel("Rate limit domain").fill("");
  await dialog.getByLabel("Rate limit descriptors").fill("");
  await change.click();
  await dialog.waitFor({ state: "detached" });
  assertEquals((await weir.api(`/triggers/${id}`)).limit, undefined);
}

async function leave(bed: PageBed): Promise<void> {
  const { opened, page, dialog, step } = bed;
  await step("a token that was typed in and not given", async () => {
    await page.getByLabel("ADMIN_TOKEN").fill("typed-and-not-given");
    await opened.value(`dispatchEvent(new Event("pagehide"))`);
    assertEquals((await opened.traces()).includes("typed-and-not-given"), false);
  });
  await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
  await step("a secret is not lost by a key, however often it is pressed", async () => {
    await addKey(bed, "first");
    await dialog.locator(".secret").waitFor();
    for (let n = 0; n < 3; n++) await page.keyboard.press("Escape");
    assertEquals(await dialog.locator(".secret").isVisible(), true);
    await dialog.click({ position: { x: 5, y: 5 } });
    for (let n = 0; n < 3; n++) await page.keyboard.press("Escape");
    assertEquals(await dialog.locator(".secret").isVisible(), true);
  });
  await step("a secret that is shown while the page is left is gone immediately", async () => {
    const secret = await dialog.locator(".secret").textContent() ?? "";
    // Looked at in the same moment: what comes later does not come to a page that is put away.
    const left = await opened.value(`(() => {
        dispatchEvent(new Event("pagehide"));
        return document.documentElement.outerHTML;
      })()`);
    assertEquals([secret.startsWith("svce_"), String(left).includes(secret)], [true, false]);
    await opened.sees("The administration requires a token");
    await page.keyboard.press("Escape");
  });
  await step("what fails after its form was closed is shown", async () => {
    await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
    const { promise, resolve } = Promise.withResolvers<void>();
    await page.route("**/api/v1/event-keys", async (route) => {
      await promise;
      await route.fulfill({ status: 409, json: { detail: "Cannot make this key: it is late" } });
    });
    await addKey(bed, "late");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    resolve();
    await page.getByText("Add an event key: Cannot make this key: it is late").waitFor();
    await page.unrouteAll({ behavior: "ignoreErrors" });
  });
  await step("who leaves a record while it is being deleted stays where they went", () => leaveRecord(bed));
  await step("who comes back to a list finds it as it was", async () => {
    await opened.view("Audit");
    await page.getByLabel("Action").fill("event_key.created");
    await page.keyboard.press("Enter");
    await opened.view("Overview");
    await page.goBack();
    await page.getByRole("heading", { level: 1, name: "Audit" }).waitFor();
    await eventually("event_key.created", () => page.getByLabel("Action").inputValue());
  });
  await step("times are relative, and grow", async () => {
    await page.locator("tbody time").filter({ hasText: /^\d+ (s|min) ago$/ }).first().waitFor();
    await page.clock.setSystemTime(new Date(Date.now() + 86_400_000));
    await page.locator("tbody time").filter({ hasText: /^1 d ago$/ }).first().waitFor();
  });
}

async function leaveRecord({ weir, opened, page, dialog }: PageBed): Promise<void> {
  const { id } = await weir.api("/endpoints", { url: "http://127.0.0.1:9/deleted" });
  const { promise, resolve } = Promise.withResolvers<void>();
  const asked: string[] = [];
  await page.route(`**/api/v1/endpoints/${id}`, async (route) => {
    const method = route.request().method();
    asked.push(method);
    if (method === "DELETE") await promise;
    await route.continue();
  });
  await opened.value(`location.hash = "endpoints/${id}"`);
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await dialog.getByRole("button", { name: "Delete the endpoint" }).click();
  await opened.view("Audit");
  // The list of this view asks every few seconds: calls of the view before are behind it.
  await page.waitForResponse("**/api/v1/audit?*");
  asked.length = 0;
  resolve();
  await page.getByText("Deleted the endpoint.").waitFor();
  await page.waitForResponse("**/api/v1/audit?*");
  assertEquals(asked, []);
  assertEquals(await page.getByRole("heading", { level: 1 }).textContent(), "Audit");
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

async function addKey({ page, dialog }: PageBed, name: string): Promise<void> {
  await submit(
    dialog,
    page.getByRole("button", { name: "Add an event key" }),
    { Name: name, Kinds: "a.*" },
    "Add",
  );
}
