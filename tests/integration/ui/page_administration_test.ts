import { assertEquals, assertStringIncludes } from "#assert";
import { eventually, until } from "../../harness/until.ts";
import { choose, type PageBed, pageTest, sendForm, submit } from "./page_weir.ts";

const workflows = (url: string) => ({
  "wait.yaml": `workflow: wait
steps:
  - name: first
    set: { done: true }
  - name: ask
    request: { method: POST, url: "${url}/wait" }
    retry: { attempts: 5, backoff: 1h }
`,
});

pageTest("endpoints, triggers, deliveries, executions and keys are made, followed and ended", {
  workflows,
  view: "endpoints",
}, async (bed) => {
  const { receiver, step } = bed;
  receiver.react = () => 500;
  await step("an endpoint is added; what is wrong is said at its field", () => addEndpoint(bed));
  await step(
    "an event is posted, its delivery fails, is sent again and acknowledged",
    () => deliver(bed),
  );
  await step("a trigger is added, its key rotated, and it is disabled", () => trigger(bed));
  await step("executions are followed and cancelled", () => executions(bed));
  await step("workflow files are shown with their errors and triggers", () => workflowFiles(bed));
  await step("a trigger is called without its key", () => testCall(bed));
  await step("an endpoint is tested, rotated, disabled, recovered and deleted", () => endpoint(bed));
  await step("an event key is added and deleted", () => eventKey(bed));
  await step("the audit tells of it all", () => audit(bed));
});

async function addEndpoint(bed: PageBed): Promise<void> {
  const { receiver, opened, page, dialog } = bed;
  const add = page.getByRole("button", { name: "Add an endpoint" });
  const go = dialog.getByRole("button", { name: "Add" });
  await add.click();
  await go.click();
  await dialog.getByText("URL is required").waitFor();
  await dialog.getByLabel("URL", { exact: true }).fill("http://user:word@example.com/");
  await go.click();
  await dialog.getByText(/Cannot use "url"/).waitFor();
  assertEquals(await dialog.getByLabel("URL", { exact: true }).getAttribute("aria-invalid"), "true");
  await dialog.getByLabel("URL", { exact: true }).fill(`${receiver.url}/hook`);
  await dialog.getByLabel("Events").fill("agent..*");
  await go.click();
  await dialog.getByText(/Cannot use "events/).waitFor();
  await dialog.getByLabel("Events").fill("agent.* workflow.*");
  await dialog.getByLabel("Headers", { exact: true }).fill("x-tenant: value-of-a-header");
  await dialog.getByLabel("Description").fill("the first one");
  await go.click();
  const secret = await shownOnce(bed, "whsec_");
  receiver.secrets.set("/hook", secret);
  await opened.sees("the first one");
  assertStringIncludes(await page.locator("tbody").textContent() ?? "", "agent.* workflow.*");
  // The dialog has given the focus back.
  await eventually("Add an endpoint", () => opened.value("document.activeElement.textContent"));
}

/** Takes a secret from its dialog, by its button as well, and sees that nothing of it is left behind. */
async function shownOnce({ opened, dialog }: PageBed, start: string): Promise<string> {
  const secret = await dialog.locator(".secret").textContent() ?? "";
  assertEquals(secret.startsWith(start) && secret.length > 40, true);
  await dialog.getByRole("button", { name: "Copy" }).click();
  await dialog.getByText("Copied.").waitFor();
  assertEquals(await opened.value("navigator.clipboard.readText()"), secret);
  await dialog.getByRole("button", { name: "I have saved it" }).click();
  await dialog.waitFor({ state: "detached" });
  const traces = await opened.traces();
  assertEquals([traces.includes(secret), traces.includes(secret.slice(8, 30))], [false, false]);
  return secret;
}

async function deliver({ receiver, opened, page, dialog }: PageBed): Promise<void> {
  await opened.view("Events");
  await submit(dialog, page.getByRole("button", { name: "Post an event" }), {
    Kind: "agent.reply.completed",
    Payload: '{"n": 12345678901234567890}',
  }, "Post");
  await page.getByText("Event posted to 1 endpoint.").waitFor();
  await opened.view("Deliveries");
  await opened.sees("agent.reply.completed");
  await opened.sees("/hook");
  await page.getByLabel("State").selectOption("acknowledged");
  await opened.sees("No matching deliveries.");
  await page.getByLabel("State").selectOption("retrying");
  // The first attempt and the immediate one have failed; on a slow machine the one after half a minute too.
  await opened.sees(/\b[2-9], last 500/);
  await page.locator("[data-action=open]").click();
  await page.getByRole("heading", { name: "Attempt 2" }).waitFor();
  await opened.sees("12345678901234567890");
  await page.locator("summary", { hasText: "Request" }).first().click();
  await page.getByRole("button", { name: "Copy the request of attempt 1 as curl" }).click();
  await page.getByText("Copied.").waitFor();
  const command = String(await opened.value("navigator.clipboard.readText()"));
  const signature = await page.locator(".timeline dd", { hasText: "sha256=" }).first().textContent();
  for (
    const part of ["curl -X POST", `${receiver.url}/hook`, `x-svc-signature: ${signature}`, "--data-raw"]
  ) {
    assertStringIncludes(command, part);
  }
  receiver.react = ({ path }) => path === "/wait" ? 500 : 200;
  await page.getByRole("button", { name: "Resend" }).click();
  await page.getByText("Sending it again").waitFor();
  const byHand = await page.getByRole("heading", { name: /Attempt [3-9].*manual/ }).textContent() ?? "";
  await page.locator("dd .badge", { hasText: "acknowledged" }).waitFor();
  const { receptions } = receiver;
  assertEquals(`${receptions.length}`, /Attempt (\d)/.exec(byHand)?.[1]);
  assertEquals(new Set(receptions.map(({ id }) => id)).size, 1);
  assertEquals(receiver.problems, []);
  await page.getByRole("button", { name: "All deliveries" }).click();
  await page.getByRole("button", { name: "Pause all deliveries" }).click();
  await dialog.getByRole("button", { name: "Pause" }).click();
  await opened.sees("All deliveries are paused by admin since");
  await page.getByRole("button", { name: "Resume all deliveries" }).click();
  await page.getByRole("button", { name: "Pause all deliveries" }).waitFor();
  await page.getByLabel("Event", { exact: true }).fill("other.kind");
  await page.keyboard.press("Enter");
  await opened.sees("No matching deliveries.");
}

async function trigger(bed: PageBed): Promise<void> {
  const { weir, opened, page, dialog } = bed;
  await opened.view("Triggers");
  for (const [name, workflow] of [["order-intake", "echo"], ["long-one", "wait"]] as const) {
    await submit(dialog, page.getByRole("button", { name: "Add a trigger" }), {
      Name: name,
      Workflow: workflow,
    }, "Add");
    const key = await shownOnce(bed, "svct_");
    await weir.trigger(name, key, '{"total": 12345678901234567890}');
  }
  const row = page.locator("tbody tr", { hasText: "order-intake" });
  await choose(page, "order-intake", "Rotate the key");
  await dialog.getByRole("button", { name: "Create a new key" }).click();
  const next = await shownOnce(bed, "svct_");
  const keys = () => row.getByText("…").textContent();
  await until("two keys", async () => (await keys())?.split(" ").length === 2);
  const old = (await keys())?.split(" ").find((one) => one !== `…${next.slice(-4)}`);
  await choose(page, "order-intake", `Revoke the key ${old}`);
  await dialog.getByRole("button", { name: "Revoke the key" }).click();
  await eventually(`…${next.slice(-4)}`, keys);
  await weir.trigger("order-intake", next, "{}").catch(() => {});
  await choose(page, "order-intake", "Disable");
  await row.getByText("disabled").waitFor();
  await eventually("⋯", () => opened.value("document.activeElement.textContent"));
}

async function executions({ opened, page }: PageBed): Promise<void> {
  await opened.view("Executions");
  await page.getByLabel("Status").selectOption("succeeded");
  await page.locator("tr", { hasText: "succeeded" }).locator("[data-action=open]").last().click();
  await page.getByRole("heading", { name: "result set succeeded" }).waitFor();
  await opened.sees("12345678901234567890");
  await page.getByRole("button", { name: "Cancel", exact: true }).waitFor({ state: "hidden" });
  const origin = new URL(page.url()).hash;
  await page.getByRole("button", { name: "Rerun" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run it again" }).click();
  await page.getByText("Run again from").waitFor();
  await page.getByRole("heading", { name: "result set succeeded" }).waitFor();
  await opened.sees("12345678901234567890");
  await page.getByRole("button", { name: origin.split("/").at(-1) ?? "" }).click();
  await page.getByText("Run again from").waitFor({ state: "hidden" });
  assertEquals(new URL(page.url()).hash, origin);
  await page.getByRole("button", { name: "All executions" }).click();
  await page.getByLabel("Status").selectOption("running");
  await page.locator("tr", { hasText: "running" }).locator("[data-action=open]").click();
  await page.getByRole("heading", { name: "first set succeeded" }).waitFor();
  const current = page.locator(".timeline li").last();
  await current.getByRole("heading", { name: "ask request running" }).waitFor();
  for (const text of ["attempt 2", "the server responded with 500"]) {
    await current.getByText(text).waitFor();
  }
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the execution" }).click();
  await page.locator("dd .badge", { hasText: "cancelled" }).waitFor();
  await page.getByRole("button", { name: "Cancel", exact: true }).waitFor({ state: "hidden" });
}

async function workflowFiles({ weir, opened, page }: PageBed): Promise<void> {
  await opened.view("Workflows");
  const row = (id: string) => page.locator("tbody tr", { hasText: `${id}.yaml` });
  await row("echo").getByText("valid", { exact: true }).waitFor();
  assertStringIncludes(await row("echo").textContent() ?? "", "order-intake");
  await weir.write("echo.yaml", "workflow: echo\nsteps:\n  - { name: result, sett: {} }\n");
  await weir.write("nameless.yaml", "steps: 5\n");
  await row("echo").getByText("outdated").waitFor();
  await row("nameless").getByText("invalid").waitFor();
  await opened.sees(/echo\.yaml:3:5: steps\[0\]: a step has one of request, limit, set/);
  await row("echo").getByText("and 1 more").waitFor();
  await page.getByRole("button", { name: "Open workflow echo" }).click();
  await opened.sees(/echo\.yaml:3:21: steps\[0\]: unknown key 'sett'; did you mean 'set'\?/);
  const steps = page.locator(".panel", { hasText: "Steps" });
  await steps.getByText("set", { exact: true }).waitFor();
  await page.locator(".panel", { hasText: "Triggers" }).getByText("order-intake").waitFor();
  await page.getByRole("button", { name: "All workflows" }).click();
  await page.getByRole("button", { name: "Open workflow nameless.yaml" }).click();
  await opened.sees("No version is in use.");
  await page.getByRole("button", { name: "All triggers" }).waitFor({ state: "detached" });
}

async function testCall({ opened, page, dialog }: PageBed): Promise<void> {
  await opened.view("Triggers");
  const row = page.locator("tbody tr", { hasText: "order-intake" });
  const call = () => choose(page, "order-intake", "Call");
  const go = dialog.getByRole("button", { name: "Call" });
  await call();
  await dialog.getByLabel("Input").fill('{"total": 98765432109876543210}');
  await go.click();
  await dialog.getByText("Cannot call the trigger: it is disabled").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await choose(page, "order-intake", "Enable");
  await row.getByText("enabled").waitFor();
  const addresses = [];
  for (let n = 0; n < 2; n++) {
    await call();
    await dialog.getByLabel("Input").fill('{"total": 98765432109876543210}');
    await dialog.getByLabel("Idempotency-Key").fill("once");
    await go.click();
    await page.getByRole("heading", { name: "result set succeeded" }).waitFor();
    await opened.sees("98765432109876543210");
    addresses.push(new URL(page.url()).hash);
    await opened.view("Triggers");
  }
  assertEquals(addresses[0], addresses[1]);
}

async function endpoint(bed: PageBed): Promise<void> {
  const { receiver, opened, page, dialog } = bed;
  await opened.view("Endpoints");
  const row = page.locator("tbody tr", { hasText: "/hook" });
  const act = (action: string) => choose(page, `${receiver.url}/hook`, action);
  await act("Test");
  await opened.sees("The endpoint accepted a signed test event");
  receiver.react = () => 500;
  await act("Test");
  await opened.sees("The endpoint did not accept a test event");
  await act("Rotate");
  await sendForm(dialog, { "Active in": "1h" }, "Create a new secret");
  await shownOnce(bed, "whsec_");
  await page.locator("[data-action=open]").click();
  await opened.sees("Attempts in the last day");
  const secrets = page.locator(".panel", { has: page.getByRole("heading", { name: "Secrets" }) });
  await eventually(["pending", "signing"], () => secrets.locator(".badge").allTextContents());
  await page.getByRole("button", { name: "Disable", exact: true }).click();
  await page.getByRole("button", { name: "Enable", exact: true }).click();
  await page.getByRole("button", { name: "Disable", exact: true }).waitFor();
  await page.getByRole("button", { name: "All endpoints" }).click();
  await act("Recover");
  await sendForm(dialog, {
    "Created since": "2026-01-01T00:00",
    "Created before": "2026-01-02T00:00",
  }, "Count them");
  await page.getByText("No failed deliveries in this time range.").waitFor();
  await act("Disable");
  await row.getByText("disabled").waitFor();
  await act("Delete");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assertEquals(await row.count(), 1);
  await act("Delete");
  await dialog.getByRole("button", { name: "Delete the endpoint" }).click();
  await opened.sees("No endpoints yet.");
}

async function eventKey(bed: PageBed): Promise<void> {
  const { opened, page, dialog } = bed;
  await opened.view("Event keys");
  await submit(dialog, page.getByRole("button", { name: "Add an event key" }), {
    Name: "the agents",
    Kinds: "agent.*",
  }, "Add");
  const key = await shownOnce(bed, "svce_");
  await opened.sees(`…${key.slice(-4)}`);
  await choose(page, "the agents", "Delete");
  await dialog.getByRole("button", { name: "Delete the event key" }).click();
  await opened.sees("No event keys yet.");
  // Who leaves the view, by the key that goes back for example, leaves the secret too.
  await submit(
    dialog,
    page.getByRole("button", { name: "Add an event key" }),
    { Name: "left", Kinds: "*" },
    "Add",
  );
  const left = await dialog.locator(".secret").textContent() ?? "";
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "Endpoints" }).waitFor();
  await dialog.waitFor({ state: "detached" });
  assertEquals([left.startsWith("svce_"), (await opened.traces()).includes(left)], [true, false]);
}

async function audit({ weir, opened, page }: PageBed): Promise<void> {
  await opened.view("Audit");
  for (
    const action of [
      ...["endpoint.created", "trigger.rotated", "trigger.called", "endpoint.deleted", "event_key.deleted"],
    ]
  ) {
    await opened.sees(action);
  }
  await page.getByLabel("Action").fill("endpoint.rotated");
  await page.keyboard.press("Enter");
  await eventually(1, () => page.locator("tbody tr").count());
  for (let n = 0; n < 20; n++) await weir.api("/event-keys", { name: `key ${n}`, kinds: ["a.*"] });
  await page.getByLabel("Action").fill("");
  await page.keyboard.press("Enter");
  const row = page.locator("tbody tr");
  await opened.sees("1–25 of 25+");
  await eventually(25, () => row.count());
  await page.getByRole("button", { name: "Older" }).first().click();
  await opened.sees(/^26–\d+ of \d+/);
  await row.filter({ hasText: "endpoint.created" }).waitFor();
  await page.getByRole("button", { name: "Newer" }).last().click();
  await opened.sees("1–25 of 25+");
  await row.filter({ hasText: "key 19" }).waitFor();
}
