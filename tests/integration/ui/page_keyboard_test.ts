import { assertEquals } from "#assert";
import { eventually, until } from "../../harness/until.ts";
import type { OpenedPage } from "../../harness/page_browser.ts";
import { ADMIN_TOKEN, type PageBed, pageTest } from "./page_weir.ts";

const MOST_TABS = 60;
const MENU = "Actions of http://127.0.0.1:9/hook";
const FOCUSED = `(() => {
  const node = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(node);
  const label = node.labels?.[0]?.textContent ?? node.getAttribute("aria-label") ?? node.textContent;
  return { tag: node.tagName, words: label.trim(), isSeen: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 };
})()`;

interface Focused {
  readonly tag: string;
  readonly words: string;
  readonly isSeen: boolean;
}

pageTest("all of it can be done by keyboard, and the focus is always seen", {}, async (bed) => {
  const { opened, step } = bed;
  await opened.isLive();
  await step("the first key leads past the views", async () => {
    await press(opened, "Tab");
    await hasFocus(opened, "To the contents");
    await entersView(opened);
    assertEquals(await focused(opened), { tag: "H1", words: "Overview", isSeen: false });
  });
  await step("a view is chosen, and the focus is on its heading", async () => {
    await opened.page.reload();
    await opened.isLive();
    await tabTo(opened, "Endpoints");
    await entersView(opened);
    assertEquals(await opened.value("document.title"), "Endpoints · Weir");
  });
  await step("the token is typed in", async () => {
    await tabTo(opened, "ADMIN_TOKEN");
    await opened.page.keyboard.type(ADMIN_TOKEN);
    await press(opened, "Enter");
    await opened.sees("No endpoints yet.");
    await hasFocus(opened, "Endpoints");
  });
  await step("an endpoint is added", () => addEndpoint(bed));
  await step("Escape takes a question back", async () => {
    await openMenu(opened);
    await press(opened, "Escape");
    await hasFocus(opened, MENU);
    await chooseDelete(opened);
    await press(opened, "Escape");
    await opened.page.getByRole("dialog").waitFor({ state: "detached" });
    await hasFocus(opened, MENU);
  });
  await step("the focus comes back to what is made anew in the meantime", () => rotate(bed));
  await step("a result that is closed leaves the focus in the view", () => testIt(opened));
  await step("what is deleted leaves the focus in the view", async () => {
    await chooseDelete(opened);
    await tabTo(opened, "Delete the endpoint", "Shift+Tab");
    await press(opened, "Enter");
    await opened.sees("No endpoints yet.");
    await hasFocus(opened, "Endpoints");
  });
  await step("a form that is sent keeps the focus", () => explain(opened));
  await step("who forgets the token is in the view", async () => {
    await tabTo(opened, "Forget the token", "Shift+Tab");
    await press(opened, "Enter");
    await opened.page.getByText("Token forgotten.").waitFor();
    await until("the view", async () => (await focused(opened)).tag === "H1");
  });
});

async function addEndpoint({ opened, page, dialog }: PageBed): Promise<void> {
  await tabTo(opened, "Add an endpoint");
  await press(opened, "Enter");
  await dialog.waitFor();
  await hasFocus(opened, "URL");
  await page.keyboard.type("nowhere");
  await press(opened, "Enter");
  await dialog.getByText(/Cannot use "url"/).waitFor();
  await eventually({ tag: "INPUT", words: "URL", isSeen: true }, () => focused(opened));
  await press(opened, "Control+A");
  await page.keyboard.type("http://127.0.0.1:9/hook");
  await press(opened, "Enter");
  await dialog.getByText("Shown only once").waitFor();
  await hasFocus(opened, "Copy");
  await tabTo(opened, "I have saved it");
  await press(opened, "Enter");
  await dialog.waitFor({ state: "detached" });
  await hasFocus(opened, "Add an endpoint");
  await opened.sees("http://127.0.0.1:9/hook");
}

/** Goes on by the key until what has these words has the focus, which must be seen all the way. */
async function tabTo(opened: OpenedPage, words: string, key = "Tab"): Promise<void> {
  for (let n = 0; n < MOST_TABS; n++) {
    await press(opened, key);
    const now = await focused(opened);
    if (now.tag !== "BODY" && !now.isSeen) throw new Error(`Cannot see the focus: it is on "${now.words}"`);
    if (now.words === words) return;
  }
  throw new Error(`Cannot reach "${words}": ${MOST_TABS} keys were not enough`);
}

async function press(opened: OpenedPage, key: string): Promise<void> {
  await opened.page.keyboard.press(key);
}

async function focused(opened: OpenedPage): Promise<Focused> {
  return await opened.value(FOCUSED) as Focused;
}

/** Waits until what has these words has the focus. */
async function hasFocus(opened: OpenedPage, words: string): Promise<void> {
  await until(`the focus on "${words}"`, async () => (await focused(opened)).words === words);
}

/** Follows the link that has the focus, which goes to the heading of the view some time later. */
async function entersView(opened: OpenedPage): Promise<void> {
  await press(opened, "Enter");
  await until("the view", async () => (await focused(opened)).tag === "H1");
}

/** Opens the menu of the endpoint, whose first item has the focus then. */
async function openMenu(opened: OpenedPage): Promise<void> {
  await tabTo(opened, MENU);
  await press(opened, "Enter");
  await hasFocus(opened, "Test");
}

async function chooseDelete(opened: OpenedPage): Promise<void> {
  await openMenu(opened);
  await press(opened, "ArrowUp");
  await hasFocus(opened, "Delete");
  await press(opened, "Enter");
  await hasFocus(opened, "Cancel");
}

async function rotate({ opened, dialog }: PageBed): Promise<void> {
  await opened.value(`globalThis.kept = document.querySelector("tbody [data-action=menu]")`);
  await openMenu(opened);
  for (let n = 0; n < 3; n++) await press(opened, "ArrowDown");
  await hasFocus(opened, "Rotate the secret");
  await press(opened, "Enter");
  await tabTo(opened, "Create a new secret");
  await press(opened, "Enter");
  await dialog.getByText("Shown only once").waitFor();
  // The list was asked for again behind the dialog.
  await until("another row", () => opened.value("!kept.isConnected"));
  await tabTo(opened, "I have saved it");
  await press(opened, "Enter");
  await dialog.waitFor({ state: "detached" });
  await hasFocus(opened, MENU);
}

async function testIt(opened: OpenedPage): Promise<void> {
  await openMenu(opened);
  await press(opened, "Enter");
  await opened.sees("The endpoint did not accept a test event");
  await tabTo(opened, "Close", "Shift+Tab");
  await press(opened, "Enter");
  await hasFocus(opened, "Endpoints");
}

async function explain(opened: OpenedPage): Promise<void> {
  await tabTo(opened, "Explain", "Shift+Tab");
  await entersView(opened);
  await tabTo(opened, "Domain");
  await opened.page.keyboard.type("shop");
  await press(opened, "Tab");
  await opened.page.keyboard.type("account=ann");
  await tabTo(opened, "Explain");
  await press(opened, "Enter");
  await opened.sees("limited");
  await hasFocus(opened, "Explain");
}
