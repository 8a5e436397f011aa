import { assertEquals } from "#assert";
import { eventually } from "../../harness/until.ts";
import { choose, type PageBed, pageTest, sendForm } from "./page_weir.ts";

pageTest("events are replayed and deliveries retried, counted first", { view: "endpoints" }, async (bed) => {
  const { weir, receiver, step } = bed;
  for (const total of [1, 200, 300]) await weir.api("/events", { event: "order.created", data: { total } });
  await weir.api("/events", { event: "agent.done", data: { total: 400 } });
  receiver.react = () => 500;
  await weir.api("/endpoints", { url: `${receiver.url}/new`, events: ["order.*", "agent.*"] });
  await step("past events go to a new endpoint", () => replay(bed));
  await weir.failDeliveries(2);
  await step("all failed deliveries are retried in one call", () => retry(bed));
  await step("the audit log leads to the replay", async () => {
    await bed.opened.view("Audit");
    await bed.page.getByRole("button", { name: /^replay:/ }).last().click();
    await bed.opened.sees("2 of 2");
  });
});

async function replay({ receiver, opened, page, dialog }: PageBed): Promise<void> {
  const send = async (fields: Readonly<Record<string, string>>) => {
    await choose(page, `${receiver.url}/new`, "Replay events");
    await sendForm(dialog, fields, "Count them");
  };
  const since = { "Created since": "2020-01-01T00:00" };
  await send({ ...since, Events: "order.*", Filter: '{"total": {"near": 1}}' });
  await dialog.getByText(/Cannot use "filter/).waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await send({ ...since, Events: "invoice.*" });
  await page.getByText("No matching events.").waitFor();
  await send({ ...since, Events: "order.*", Filter: '{"total": {"greater": 9}}' });
  await dialog.getByText("2 matching events.").waitFor();
  await dialog.getByRole("button", { name: "Replay them" }).click();
  await opened.sees("2 of 2");
  await page.locator("dd .badge", { hasText: "finished" }).waitFor();
  await page.getByRole("button", { name: "All its deliveries" }).click();
  await eventually(2, () => page.locator("tbody tr").count());
  await page.getByRole("button", { name: "Retry all matching" }).click();
  await page.getByText("and not by their replay").waitFor();
}

async function retry({ weir, opened, page, dialog }: PageBed): Promise<void> {
  await opened.view("Deliveries");
  await page.getByLabel("Replay", { exact: true }).fill("");
  await page.keyboard.press("Enter");
  await page.getByLabel("State").selectOption("all states");
  await page.getByLabel("Event", { exact: true }).fill("order.created");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Retry all matching" }).click();
  await dialog.getByText("2 failed deliveries.").waitFor();
  await dialog.getByRole("button", { name: "Retry them" }).click();
  await opened.sees("2 of 2");
  await page.locator("dd .badge", { hasText: "finished" }).waitFor();
  assertEquals((await weir.api("/audit?event=replay.started")).items.length, 2);
  await page.getByRole("button", { name: "All replays" }).click();
  await eventually(2, () => page.locator("tbody tr", { hasText: "finished" }).count());
}
