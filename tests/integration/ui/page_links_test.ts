import { assertEquals, assertMatch } from "#assert";
import type { OpenedPage } from "../../harness/page_browser.ts";
import { eventually, until } from "../../harness/until.ts";
import { type PageBed, pageTest } from "./page_weir.ts";

const POSTED = "document.write.completed";
const COMPLETED = "workflow.execution.completed";
/** Nothing listens there. */
const URL_OF_ENDPOINT = "http://127.0.0.1:9/a-receiver";
const POSTS = 2;
const EXECUTIONS = 4;
const FAILED = POSTS + EXECUTIONS;

pageTest(
  "links between records, times of lists, several deliveries sent again",
  { view: "executions" },
  async (bed) => {
    const { weir, opened, step } = bed;
    const { key } = await weir.api("/triggers", { name: "order-intake", workflow: "echo" });
    await weir.api("/endpoints", { url: URL_OF_ENDPOINT, description: "orders", events: ["*"] });
    for (let count = 0; count < POSTS; count++) await weir.api("/events", { event: POSTED, data: {} });
    let execution = "";
    for (let count = 0; count < EXECUTIONS; count++) {
      execution = await weir.trigger("order-intake", key, "{}");
    }
    await weir.failDeliveries(FAILED);
    await weir.api("/events", { event: POSTED, data: {} });
    await opened.value(`location.hash = "executions/${execution}"`);
    await step("from an execution to its event and back", () => links(bed, execution));
    await step("the audit log leads to its records", async () => {
      await opened.view("Audit");
      await opened.page.getByRole("button", { name: /^endpoint:/ }).first().click();
      await fact(opened, "URL", URL_OF_ENDPOINT);
    });
    await step("a list of a time", () => times(bed));
    await step("several deliveries are sent again", () => sendAgain(bed));
  },
);

/** Waits for a fact of a record. */
async function fact({ page }: OpenedPage, name: string, text: string): Promise<void> {
  const row = page.locator(".facts > div", { has: page.getByText(name, { exact: true }) });
  await row.getByText(text).first().waitFor();
}

async function links({ opened, page }: PageBed, execution: string): Promise<void> {
  const link = (name: string) =>
    page.locator(".facts > div", { has: page.getByText(name, { exact: true }) })
      .getByRole("button");
  await link("Event").click();
  await fact(opened, "Kind", COMPLETED);
  await fact(opened, "Execution", execution);
  await link("Deliveries").click();
  await page.getByRole("heading", { level: 1, name: "Deliveries" }).waitFor();
  const event = await until("the event", () => page.getByLabel("Event identifier").inputValue());
  assertMatch(event, /^[0-9a-f-]{36}$/);
  await eventually(1, () => page.locator("tbody tr").count());
  await page.locator("[data-action=open]").click();
  await page.locator(".timeline").getByRole("button", { name: event }).waitFor();
  await link("Endpoint").click();
  await fact(opened, "URL", URL_OF_ENDPOINT);
  const failures = page.locator(".panel", { has: page.getByRole("heading", { name: "Last failures" }) });
  await failures.getByRole("button", { name: "Show all of them" }).click();
  await eventually(FAILED, () => page.locator("tbody tr").count());
  assertEquals(await page.getByLabel("State").inputValue(), "failed");
  // The filters of the link before are gone, and come back with it.
  assertEquals(await page.getByLabel("Event identifier").inputValue(), "");
  await page.goBack();
  await page.goBack();
  await page.getByRole("button", { name: execution }).click();
  await fact(opened, "Identifier", execution);
}

async function times({ opened, page }: PageBed): Promise<void> {
  await opened.view("Events");
  const rows = page.locator("tbody tr");
  // Weir itself sends events, such as those of loads.
  await page.getByLabel("Kind").fill(POSTED);
  await page.keyboard.press("Enter");
  const all = POSTS + 1;
  await eventually(all, () => rows.count());
  const created = page.getByLabel("Created", { exact: true });
  await created.selectOption("in the last 15 minutes");
  await eventually(all, () => rows.count());
  assertEquals(await page.getByLabel("From").isVisible(), false);
  await created.selectOption("between…");
  await page.getByLabel("From").fill("2020-01-01T00:00");
  await eventually(all, () => rows.count());
  await page.getByLabel("to", { exact: true }).fill("2020-01-02T00:00");
  await opened.sees("No matching events.");
  // The list is the same when the reader comes back.
  await opened.view("Audit");
  await opened.view("Events");
  await opened.sees("No matching events.");
  await created.selectOption("at any time");
  await eventually(all, () => rows.count());
}

async function sendAgain(bed: PageBed): Promise<void> {
  const { opened, page, dialog } = bed;
  await opened.view("Deliveries");
  await page.getByLabel("State").selectOption("all states");
  await eventually(FAILED + 1, () => page.locator("tbody tr").count());
  const boxes = page.locator("tbody input[type=checkbox]");
  assertEquals(await boxes.count(), FAILED);
  await boxes.first().check();
  await opened.sees("1 selected");
  await page.getByRole("button", { name: "Clear the selection" }).click();
  await eventually(false, () => boxes.first().isChecked());
  await page.getByRole("button", { name: "Select all failed on this page" }).click();
  await boxes.first().uncheck();
  const count = FAILED - 1;
  await page.getByRole("button", { name: `Resend ${count}` }).click();
  await dialog.getByText(`Selected: ${count}.`).waitFor();
  assertEquals(await resent(bed), 0);
  await dialog.getByRole("button", { name: `Resend ${count}` }).click();
  await page.getByText(`Resend: ${count} of ${count}.`).waitFor();
  assertEquals(await resent(bed), count);
  await eventually(0, () => page.locator("tbody input:checked").count());
}

async function resent({ weir }: PageBed): Promise<number> {
  return (await weir.api("/audit?event=delivery.resend_asked")).items.length;
}
