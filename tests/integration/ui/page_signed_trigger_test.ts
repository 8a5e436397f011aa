import { assertEquals } from "#assert";
import { PROVIDER_HEADERS } from "../../harness/provider_signatures.ts";
import { choose, type PageBed, pageTest, sendForm } from "./page_weir.ts";

const BODY = '{"total":1}';

pageTest(
  "a signed trigger is added, and its secrets are rotated and revoked",
  { view: "triggers" },
  async (bed) => {
    const { step } = bed;
    let secret = "";
    await step("with a generated secret, which signs", async () => {
      secret = await addGithub(bed);
      assertEquals(await call(bed, secret, "1"), 202);
      assertEquals(await call(bed, "another secret", "2"), 401);
    });
    await step("a second secret of the provider lives with the first one", async () => {
      await rotate(bed, "given by the provider");
      assertEquals(await call(bed, secret, "3"), 202);
      assertEquals(await call(bed, "given by the provider", "4"), 202);
    });
    await step("the first secret is revoked", async () => {
      await revokeOldest(bed);
      assertEquals(await call(bed, secret, "5"), 401);
      assertEquals(await call(bed, "given by the provider", "6"), 202);
    });
    await step("the fields of a signature are shown where they apply", () => addGeneric(bed));
  },
);

async function call({ weir }: PageBed, secret: string, id: string): Promise<number> {
  const url = `http://${weir.weir.running.addresses.http}/api/v1/workflows/triggers/hub`;
  const headers = PROVIDER_HEADERS.github({ secret, body: BODY, id });
  const response = await fetch(url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: BODY,
  });
  await response.body?.cancel();
  return response.status;
}

async function addGithub({ page, dialog }: PageBed): Promise<string> {
  await page.getByRole("button", { name: "Add a trigger" }).click();
  await dialog.getByLabel("Name").fill("hub");
  await dialog.getByLabel("Workflow").fill("echo");
  assertEquals(await dialog.getByLabel("Secret of the provider").isVisible(), false);
  await dialog.getByLabel("Callers prove themselves with").selectOption("github");
  assertEquals(await dialog.getByLabel("Header of the signature").isVisible(), false);
  await dialog.getByRole("button", { name: "Add" }).click();
  const secret = await dialog.locator(".secret").textContent() ?? "";
  assertEquals(secret.startsWith("whsec_"), true);
  await dialog.getByRole("button", { name: "I have saved it" }).click();
  await page.locator("tbody tr", { hasText: "github" }).waitFor();
  return secret;
}

async function rotate({ page, dialog }: PageBed, secret: string): Promise<void> {
  await choose(page, "hub", "Rotate the secret");
  await sendForm(dialog, { "Secret of the provider": secret }, "Add a secret");
  await dialog.waitFor({ state: "detached" });
  await page.locator("tbody tr", { hasText: "2 secrets" }).waitFor();
}

async function revokeOldest({ page }: PageBed): Promise<void> {
  await page.getByRole("button", { name: "Actions of hub" }).click();
  await page.getByRole("menuitem", { name: "Revoke the secret of" }).nth(1).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke the secret" }).click();
  await page.getByText("Secret revoked.").waitFor();
}

async function addGeneric({ weir, page, dialog }: PageBed): Promise<void> {
  await page.getByRole("button", { name: "Add a trigger" }).click();
  await dialog.getByLabel("Name").fill("generic");
  await dialog.getByLabel("Workflow").fill("echo");
  await dialog.getByLabel("Callers prove themselves with").selectOption("hmac-sha256");
  await dialog.getByLabel("Secret of the provider").fill("given by the provider");
  await dialog.getByLabel("Header of the signature").fill("X-Sign");
  await dialog.getByLabel("Text before the signature").fill("v1 ");
  await dialog.getByLabel("Encoding").selectOption("base64");
  assertEquals(await dialog.getByLabel("Tolerance").isVisible(), false);
  await dialog.getByLabel("Header of the signed time").fill("X-Time");
  await dialog.getByLabel("Tolerance").fill("60");
  await dialog.getByRole("button", { name: "Add" }).click();
  await page.locator("tbody tr", { hasText: "hmac-sha256" }).waitFor();
  const { items } = await weir.api("/triggers");
  assertEquals(items[0]?.["verify"], {
    scheme: "hmac-sha256",
    header: "x-sign",
    prefix: "v1 ",
    encoding: "base64",
    timestampHeader: "x-time",
    toleranceSeconds: 60,
  });
}

pageTest(
  "the fields of a trigger that describe its calls are set by its form, changed and removed",
  { view: "triggers" },
  async (bed) => {
    const { step, page, dialog } = bed;
    await step("a wrong kind of body is refused by name", async () => {
      await add(bed, {
        Name: "forms",
        Workflow: "echo",
        Accept: "form xml",
        "Status of accepted calls": "200",
        "Passed headers": "X-Topic",
      });
      await dialog.getByRole("button", { name: "Add" }).click();
      await dialog.getByText("expected json, form, text or array").waitFor();
    });
    await step("bodies, the status and headers are set", async () => {
      await dialog.getByLabel("Accept", { exact: true }).fill("form text");
      await dialog.getByRole("button", { name: "Add" }).click();
      await dialog.getByRole("button", { name: "I have saved it" }).click();
      await page.locator("tbody tr", { hasText: "forms" }).waitFor();
      const shown = await trigger(bed, "forms");
      assertEquals([shown?.["accept"], shown?.["answer"], shown?.["passHeaders"]], [
        ["form", "text"],
        200,
        ["X-Topic"],
      ]);
    });
    await step("and removed", async () => {
      await choose(page, "forms", "Edit");
      for (const label of ["Accept", "Status of accepted calls", "Passed headers"]) {
        await dialog.getByLabel(label, { exact: true }).fill("");
      }
      await dialog.getByRole("button", { name: "Save" }).click();
      await dialog.waitFor({ state: "detached" });
      const shown = await trigger(bed, "forms");
      assertEquals([shown?.["accept"], shown?.["answer"], shown?.["passHeaders"]], [
        undefined,
        undefined,
        undefined,
      ]);
    });
    await step("a signature is described", () => addCustom(bed));
    await step("topics of Amazon SNS take the place of a secret", () => addTopic(bed));
  },
);

async function trigger({ weir }: PageBed, name: string) {
  return (await weir.api("/triggers")).items.find((one) => one["name"] === name);
}

async function add(
  { page, dialog }: PageBed,
  fields: Readonly<Record<string, string>>,
  scheme?: string,
): Promise<void> {
  await page.getByRole("button", { name: "Add a trigger" }).click();
  if (scheme !== undefined) await dialog.getByLabel("Callers prove themselves with").selectOption(scheme);
  for (const [label, text] of Object.entries(fields)) {
    await dialog.getByLabel(label, { exact: true }).fill(text);
  }
}

async function addCustom(bed: PageBed): Promise<void> {
  const fields = {
    Name: "own",
    Workflow: "echo",
    "Secret of the provider": "given by the provider",
    "Signed text": "{time}.{body}",
    "Header of the signature": "X-Sign",
    "Text before the signature": "v1=",
    "Separator of several signatures": ",",
    "Text before the time in the list of signatures": "t=",
  };
  await add(bed, fields, "custom");
  await bed.dialog.getByRole("button", { name: "Add" }).click();
  await bed.page.locator("tbody tr", { hasText: "custom" }).waitFor();
  assertEquals((await trigger(bed, "own"))?.["verify"], {
    scheme: "custom",
    signed: "{time}.{body}",
    algorithm: "hmac-sha256",
    secretEncoding: "text",
    signature: { header: "x-sign", prefix: "v1=", encoding: "hex", list: "," },
    time: { prefix: "t=", unit: "seconds" },
    toleranceSeconds: 300,
  });
}

async function addTopic(bed: PageBed): Promise<void> {
  const topic = "arn:aws:sns:us-east-1:123456789012:orders";
  await add(bed, { Name: "topic", Workflow: "echo", Topics: topic }, "sns");
  assertEquals(await bed.dialog.getByLabel("Secret of the provider").isVisible(), false);
  await bed.dialog.getByRole("button", { name: "Add" }).click();
  await bed.page.locator("tbody tr", { hasText: "sns" }).waitFor();
  assertEquals((await trigger(bed, "topic"))?.["verify"], {
    scheme: "sns",
    topics: [topic],
    toleranceSeconds: 3_600,
  });
  await bed.page.getByRole("button", { name: "Actions of topic" }).click();
  await bed.page.getByRole("menuitem", { name: "Edit" }).waitFor();
  assertEquals(await bed.page.getByRole("menuitem", { name: "Rotate" }).count(), 0);
}
