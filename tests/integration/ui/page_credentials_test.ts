import { assertEquals } from "#assert";
import { makeCertificates } from "../../harness/certificates.ts";
import { eventually } from "../../harness/until.ts";
import { choose, type PageBed, pageTest } from "./page_weir.ts";

const URL = "https://127.0.0.1:9/secured";

pageTest("the credentials of an endpoint are set, shown without secrets and removed", {
  view: "endpoints",
}, async (bed) => {
  const { weir, opened, step } = bed;
  const { id } = await weir.api("/endpoints", { url: URL });
  await opened.view("Triggers");
  await step("a user and a password", () => setBasic(bed, id));
  await step("another change leaves them as they are", () => changeAnother(bed, id));
  await step("client credentials, whose secret is required with every change", () => setOAuth(bed, id));
  await step("a client certificate", () => setCertificate(bed, id));
  await step("both are removed", () => removeBoth(bed, id));
});

/** Opens the dialog, changes values by their labels and saves. */
async function save(
  { opened, page, dialog }: PageBed,
  values: Readonly<Record<string, string>>,
  type?: string,
): Promise<void> {
  await opened.view("Endpoints");
  await choose(page, URL, "Edit");
  if (type !== undefined) await dialog.getByLabel("Authentication", { exact: true }).selectOption(type);
  for (const [label, value] of Object.entries(values)) {
    await dialog.getByLabel(label, { exact: true }).fill(value);
  }
  await dialog.getByRole("button", { name: "Save" }).click();
}

async function saved(bed: PageBed, ...given: [Readonly<Record<string, string>>, string?]): Promise<void> {
  await save(bed, ...given);
  await bed.dialog.waitFor({ state: "detached" });
}

async function setBasic(bed: PageBed, id: unknown): Promise<void> {
  const { weir, opened, page, dialog } = bed;
  await opened.view("Endpoints");
  await choose(page, URL, "Edit");
  assertEquals(await dialog.getByLabel("User", { exact: true }).isVisible(), false);
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await saved(bed, { User: "weir", Password: "a-secret-word" }, "basic");
  assertEquals((await weir.api(`/endpoints/${id}`))["authentication"], { type: "basic", user: "weir" });
  await opened.value(`location.hash = "endpoints/${id}"`);
  await opened.sees("user: weir");
  assertEquals((await page.content()).includes("a-secret-word"), false);
}

async function changeAnother(bed: PageBed, id: unknown): Promise<void> {
  await saved(bed, { Description: "another" });
  const { description, authentication } = await bed.weir.api(`/endpoints/${id}`);
  assertEquals([description, authentication], ["another", { type: "basic", user: "weir" }]);
}

async function setOAuth(bed: PageBed, id: unknown): Promise<void> {
  const { weir, dialog } = bed;
  const values = { "Token server": "https://127.0.0.1:9/token", "Client identifier": "weir" };
  await save(bed, values, "oauth2");
  await dialog.getByText(/clientSecret.*oauth2 requires it/).waitFor();
  await dialog.getByLabel("Client secret", { exact: true }).fill("of the client");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  assertEquals((await weir.api(`/endpoints/${id}`))["authentication"], {
    type: "oauth2",
    tokenUrl: "https://127.0.0.1:9/token",
    clientId: "weir",
    credentialsIn: "header",
  });
}

async function setCertificate(bed: PageBed, id: unknown): Promise<void> {
  await using certificates = await makeCertificates();
  const { client, otherClient, authority } = certificates;
  const read = (path: string) => Deno.readTextFile(path);
  const { weir, opened, page, dialog } = bed;
  const values = {
    "Client certificate": await read(client.certFile),
    "Authorities of the receiver": await read(authority.certFile),
  };
  await save(bed, { ...values, "Private key": await read(otherClient.keyFile) });
  await dialog.getByText(/not the key of the first certificate/).waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await saved(bed, { ...values, "Private key": await read(client.keyFile) });
  const { tls } = await weir.api(`/endpoints/${id}`);
  assertEquals((tls as Record<string, unknown>)["subject"], "CN=client");
  await opened.value(`location.hash = "endpoints/${id}"`);
  await opened.sees("CN=client");
  await opened.sees("expires");
  await opened.sees("CN=authority");
  assertEquals((await page.content()).includes("PRIVATE KEY"), false);
}

async function removeBoth(bed: PageBed, id: unknown): Promise<void> {
  const { weir, opened, page, dialog } = bed;
  await opened.view("Endpoints");
  await choose(page, URL, "Edit");
  await dialog.getByLabel("Remove the client certificate and the authorities").check();
  await dialog.getByLabel("Authentication", { exact: true }).selectOption("");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "detached" });
  await eventually([undefined, undefined], async () => {
    const { authentication, tls } = await weir.api(`/endpoints/${id}`);
    return [authentication, tls];
  });
}
