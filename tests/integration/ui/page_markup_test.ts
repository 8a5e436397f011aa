import { assertEquals } from "#assert";
import { join } from "node:path";
import type { OpenedPage } from "../../harness/page_browser.ts";
import { ADMIN_TOKEN, choose, MARKUP, type PageBed, pageTest } from "./page_weir.ts";

const WRITE = `document.body.innerHTML = ${JSON.stringify(MARKUP)}`;

pageTest("what comes from outside is text, and the policy would stop it if it were not", {}, async (bed) => {
  const { receiver, opened, step } = bed;
  receiver.react = () => 500;
  receiver.answer = () => MARKUP;
  await fillWithMarkup(bed);
  await step("rules, keys and the error of a load", () => liveViews(bed));
  await step("events, endpoints, answers and what workflows were given", () => administration(bed));
  await step("addresses", () => addresses(opened));
  await step("the test sees markup that runs, and the policy stops it in the page", () => control(bed));
});

async function fillWithMarkup({ weir, receiver }: PageBed): Promise<void> {
  await weir.decide("account", MARKUP, 8);
  const url = `${receiver.url}/hook?markup=${MARKUP.replaceAll(" ", "+")}`;
  await weir.api("/endpoints", { url, description: MARKUP, events: ["a.*"] });
  await weir.api("/event-keys", { name: MARKUP, kinds: ["a.*"] });
  await weir.api("/events", { event: "a.b", data: { [MARKUP]: MARKUP } });
  const { key } = await weir.api("/triggers", {
    name: "echo",
    workflow: "echo",
    limit: { domain: MARKUP, descriptors: [{ [MARKUP]: MARKUP }] },
  });
  await weir.trigger("echo", key, JSON.stringify({ total: MARKUP }));
  await Deno.writeTextFile(
    join(weir.weir.rulesFolder, "z.yaml"),
    `domain: z\n${JSON.stringify(MARKUP)}: 1\n`,
  );
  weir.weir.reload();
}

async function liveViews({ opened, page }: PageBed): Promise<void> {
  await opened.isLive();
  await seesMarkup(opened, ".remarks");
  await seesMarkup(opened, ".ranking");
  await opened.view("Rules");
  await seesMarkup(opened, "tbody");
  await opened.view("Over limit");
  await seesMarkup(opened, "tbody");
  await opened.view("Explain");
  await page.getByLabel("Domain").fill("shop");
  await page.getByLabel("Descriptors").fill(
    "account=<img src=x onerror=alert(1)>".replaceAll("=x", ""),
  );
  await page.getByRole("button", { name: "Explain", exact: true }).click();
  await page.locator(".problem, .walk").filter({ hasText: "<img src" }).first().waitFor();
}

async function administration({ opened, page }: PageBed): Promise<void> {
  await opened.view("Endpoints");
  await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
  await seesMarkup(opened, "tbody .prose");
  await seesMarkup(opened, "tbody .link", MARKUP.replaceAll(" ", "+"));
  await choose(page, "", "Rotate the secret");
  await page.getByRole("dialog").getByText("<script>").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await choose(page, "", "Test");
  await opened.sees("The endpoint did not accept a test event");
  await opened.view("Deliveries");
  await page.locator("[data-action=open]").click();
  await page.locator("summary", { hasText: "Response" }).first().click();
  await page.getByRole("region", { name: "Response to attempt 1" }).getByText("<script>").waitFor();
  await page.getByRole("region", { name: "Body" }).getByText("<script>").waitFor();
  await opened.view("Events");
  await page.locator("tr", { hasText: "a.b" }).locator("[data-action=open]").click();
  await page.getByRole("region", { name: "Payload" }).getByText("<script>").waitFor();
  await opened.view("Triggers");
  await seesMarkup(opened, "tbody");
  await opened.view("Executions");
  await page.locator("[data-action=open]").click();
  await page.getByRole("region", { name: "Input" }).getByText("<script>").waitFor();
  await opened.view("Event keys");
  await seesMarkup(opened, "tbody");
  await opened.view("Audit");
  await opened.sees("<script>");
}

async function addresses(opened: OpenedPage): Promise<void> {
  for (
    const hash of [
      MARKUP,
      `deliveries/${MARKUP}`,
      "deliveries/%3Cscript%3E",
      "deliveries/%",
      "javascript:alert(1)",
    ]
  ) {
    await opened.value(`location.hash = ${JSON.stringify(hash)}`);
    await opened.page.getByRole("heading", { level: 1 }).waitFor();
  }
  const asked: string[] = [];
  opened.page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  for (const hash of ["deliveries/..", "executions/%2e%2e", "events/."]) {
    await opened.value(`location.hash = "${hash}"`);
    await opened.page.locator("tbody tr").first().waitFor();
  }
  assertEquals(
    asked.filter((path) => path.startsWith("/api/") && !/^\/api\/v1\/[a-z]+(?:\/pause)?$/.test(path)),
    [],
  );
  // Neither a link nor anything that loads has an address that is not ours.
  const found = await opened.value(
    `[...document.querySelectorAll("[href], [src], [style]:not(table), [action]")].map((one) => one.getAttribute("href") ?? "?")
      .filter((href) => !/^#[a-z-]+$/.test(href) && href !== "/ui/page.css" && !href.startsWith("data:image/svg"))`,
  );
  assertEquals(found, ["?"]);
}

async function control({ weir, browser }: PageBed): Promise<void> {
  await using opened = await browser.open(weir.url);
  const refusal = await opened.value(
    `(() => { try { ${WRITE}; return ""; } catch (error) { return error.name; } })()`,
  );
  assertEquals(refusal, "TypeError");
  const violations = await opened.value("violations.length") as number;
  assertEquals(violations > 0, true);
  await opened.page.goto("about:blank");
  await opened.value(WRITE);
  await opened.page.waitForFunction("globalThis.wasRun === 'image'");
}

async function seesMarkup(opened: OpenedPage, place: string, markup = MARKUP): Promise<void> {
  const text = markup.slice(0, 60);
  await opened.page.getByRole("main").locator(place).filter({ hasText: text }).first().waitFor();
}
