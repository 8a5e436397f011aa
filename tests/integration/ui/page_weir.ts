import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { Locator, Page } from "playwright-core";
import { assertEquals } from "#assert";
import { freePort } from "../../harness/free_port.ts";
import { type OpenedPage, PageBrowser, stepsOf } from "../../harness/page_browser.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { needs } from "../../harness/tools.ts";
import { until } from "../../harness/until.ts";
import { WebhookReceiver } from "../../harness/webhook_receiver.ts";
import { ADMIN_TOKEN } from "../../harness/webhook_calls.ts";
import type { AnswerBody } from "../../harness/webhook_client.ts";
import { api, untilStoreIsOpen, WebhookFolder } from "../../harness/webhook_weir.ts";
import { runWorkersInThread } from "../../harness/workers_in_thread.ts";

runWorkersInThread();

export { ADMIN_TOKEN };

/** Text that would run if anything took it for markup. */
export const MARKUP =
  `<script>globalThis.wasRun = "script"</script><img src=x onerror="globalThis.wasRun = 'image'">`;

/** Options of a page weir. */
interface PageWeirOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Workflow files by name, which may call this receiver. */
  readonly workflows?: (receiver: string) => Readonly<Record<string, string>>;
}

/** Weir and its page, open in a browser. */
export interface PageBed {
  readonly weir: PageWeir;
  readonly receiver: WebhookReceiver;
  readonly browser: PageBrowser;
  readonly opened: OpenedPage;
  readonly page: Page;
  /** The dialog that is open. */
  readonly dialog: Locator;
  readonly step: ReturnType<typeof stepsOf>;
}

/** A test of the page, in which nothing may have gone wrong at the end. With `view` it begins there, with a token. */
export function pageTest(
  name: string,
  { view, ...options }: PageWeirOptions & { readonly view?: string },
  run: (bed: PageBed) => Promise<void>,
): void {
  Deno.test({
    ...needs(["chromium-headless-shell"], `page: ${name}`),
    async fn(t) {
      await using receiver = await WebhookReceiver.start();
      await using weir = await PageWeir.start(options, receiver.url);
      await using browser = await PageBrowser.launch();
      await using opened = await browser.open(view === undefined ? weir.url : `${weir.url}#${view}`);
      if (view !== undefined) await opened.giveToken("ADMIN_TOKEN", ADMIN_TOKEN);
      const { page } = opened;
      const dialog = page.getByRole("dialog");
      await run({ weir, receiver, browser, opened, page, dialog, step: stepsOf(t) });
      assertEquals(await opened.problems(), []);
    },
  });
}

/** Chooses an action from the menu of a record. */
export async function choose(page: Page, record: string, action: string): Promise<void> {
  await page.getByRole("button", { name: `Actions of ${record}` }).click();
  await page.getByRole("menuitem", { name: action }).first().click();
}

/** Opens a dialog by its button, fills its fields by their labels, and sends it. */
export async function submit(
  dialog: Locator,
  button: Locator,
  fields: Readonly<Record<string, string>>,
  send: string,
): Promise<void> {
  await button.click();
  await sendForm(dialog, fields, send);
}

/** Fills the fields of a dialog that is open, and sends it. */
export async function sendForm(
  dialog: Locator,
  fields: Readonly<Record<string, string>>,
  send: string,
): Promise<void> {
  for (const [label, text] of Object.entries(fields)) await dialog.getByLabel(label).fill(text);
  await dialog.getByRole("button", { name: send }).click();
}

const RULES = {
  "shop.yaml": `domain: shop
descriptors:
- key: account
  rate_limit: { unit: day, requests_per_unit: 5 }
- key: path
  value: /login
  rate_limit: { unit: hour, requests_per_unit: 100 }
- key: tenant
  shadow_mode: true
  rate_limit: { unit: second, requests_per_unit: 2 }
- key: health
  rate_limit: { unlimited: true }
- key: burst
  rate_limit: { unit: day, requests_per_unit: 10, algorithm: token_bucket, burst: 30 }
- key: flight
  rate_limit: { algorithm: concurrency, max_in_flight: 4, lease: 1h }
- key: "${MARKUP.replaceAll('"', '\\"')}"
  rate_limit: { unit: day, requests_per_unit: 7 }
`,
};

const WORKFLOWS = {
  "echo.yaml": 'workflow: echo\nsteps:\n  - name: result\n    set: { total: "{{ input.total }}" }\n',
};

/** Starts a service and waits until its webhook service has its store: the ports are open before. */
async function startOpened(env: Readonly<Record<string, string>>): Promise<ServeFixture> {
  const weir = await ServeFixture.start({ env, rules: RULES });
  try {
    await untilStoreIsOpen(weir.running.addresses.http);
    return weir;
  } catch (error) {
    await weir[Symbol.asyncDispose]();
    throw error;
  }
}

/** Weir with rules, a store and workflows, as the page is to show it; its page stays where it is. */
class PageWeir implements AsyncDisposable {
  readonly #folder: WebhookFolder;
  readonly #env: Readonly<Record<string, string>>;
  #weir: ServeFixture;

  private constructor(folder: WebhookFolder, env: Readonly<Record<string, string>>, weir: ServeFixture) {
    this.#folder = folder;
    this.#env = env;
    this.#weir = weir;
  }

  /** Starts it. */
  static async start({ env = {}, workflows }: PageWeirOptions, receiver: string): Promise<PageWeir> {
    const folder = await WebhookFolder.make({ ...WORKFLOWS, ...workflows?.(receiver) });
    try {
      // A service that is started again has the same.
      const DEBUG_PORT = `${freePort()}`;
      const settings = { ...folder.env, DEBUG_PORT, LOCAL_CACHE_SIZE_IN_BYTES: "1000000", ...env };
      return new PageWeir(folder, settings, await startOpened(settings));
    } catch (error) {
      await folder[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The service. */
  get weir(): ServeFixture {
    return this.#weir;
  }

  /** Starts another service in place of one that was stopped. */
  async startAgain(): Promise<void> {
    await this.#weir[Symbol.asyncDispose]();
    this.#weir = await startOpened(this.#env);
  }

  /** Calls a trigger; answers the id of the execution. */
  async trigger(name: string, key: string, body: string): Promise<string> {
    const answer = await api(this.#weir.running.addresses.http, `/workflows/triggers/${name}`, {
      token: key,
      body,
    });
    if (answer.status !== 202) throw new Error(`Cannot call trigger "${name}": ${answer.status}`);
    return answer.body.executionId;
  }

  /** The page. */
  get url(): string {
    return `http://${this.#weir.running.addresses.debug}/ui`;
  }

  /** Asks for decisions of one descriptor; answers how many were over the limit. */
  async decide(key: string, value: string, times = 1): Promise<number> {
    let over = 0;
    for (let n = 0; n < times; n++) {
      const response = await fetch(`http://${this.#weir.running.addresses.http}/json`, {
        method: "POST",
        body: JSON.stringify({ domain: "shop", descriptors: [{ entries: [{ key, value }] }] }),
      });
      if (response.status === 429) over++;
      await response.body?.cancel();
    }
    return over;
  }

  /** Writes a workflow file. */
  async write(name: string, text: string): Promise<void> {
    await Deno.writeTextFile(join(this.#folder.path, "workflows", name), text);
  }

  /** Fails this many deliveries for good, once each has failed an attempt: their schedule lasts for hours. */
  async failDeliveries(count: number): Promise<void> {
    await until("failed attempts", async () => {
      return (await this.api("/deliveries?state=retrying")).items.length === count;
    });
    const store = new DatabaseSync(this.#folder.store);
    try {
      store.exec("PRAGMA busy_timeout = 5000");
      store.exec(
        "UPDATE delivery SET state = 'failed', reason = 'exhausted', finished_at = created_at, due_at = NULL, " +
          "claim_id = NULL, lease_until = NULL WHERE state = 'retrying'",
      );
    } finally {
      store.close();
    }
  }

  /** A call of the administration. */
  async api(path: string, body?: unknown, method?: string): Promise<AnswerBody> {
    const call = { ...body === undefined ? {} : { body }, ...method === undefined ? {} : { method } };
    const answer = await api(this.#weir.running.addresses.http, path, call);
    if (answer.status >= 400) throw new Error(`Cannot call "${path}": ${answer.status}`);
    return answer.body;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#weir[Symbol.asyncDispose]();
    await this.#folder[Symbol.asyncDispose]();
  }
}
