import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { sharedPlace } from "./shared_places.ts";

/** Options of a browser with the page. */
interface LookOptions {
  readonly width?: number;
  readonly height?: number;
  readonly scheme?: "dark" | "light";
}

/** Said by the browser about every answer that is a refusal; which of them are right is for the tests to know. */
const REFUSED = /^Failed to load resource: /;
/** Time that the page is waited for, whatever it is to do. */
const WAIT_MS = 120_000;
/** Timeout of a click on a button whose label may change. */
const CLICK_MS = 2_000;
const ARTIFACTS = new URL("../artifacts/ui/", import.meta.url).pathname;
/** Runs before anything of the page does. */
const WATCH = `
  globalThis.violations = [];
  addEventListener("securitypolicyviolation", (event) => {
    violations.push(event.violatedDirective + " " + event.blockedURI + " " + event.sample);
  });
`;

/** Makes steps of a test, each of which requires the previous one: the first that fails is the last. */
export function stepsOf(t: Deno.TestContext): (name: string, run: () => Promise<void>) => Promise<void> {
  return async (name, run) => {
    if (!await t.step(name, run)) throw new Error(`Cannot go on: "${name}" has failed`);
  };
}

/** Started for the run, or for the file of tests that imports this. */
const place = await sharedPlace("chromium");

/** A connection to a real Chromium without a window. */
export class PageBrowser implements AsyncDisposable {
  readonly #browser: Browser;

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  /** Connects to it. */
  static async launch(): Promise<PageBrowser> {
    const { endpoint = "", folder = "" } = place ?? {};
    // A folder of this connection would be removed at its end without being waited for.
    const options = { artifactsDir: join(folder, "artifacts"), timeout: WAIT_MS };
    return new PageBrowser(await chromium.connectOverCDP(endpoint, options));
  }

  /** Opens a page in its own profile. */
  async open(url: string, look: LookOptions = {}): Promise<OpenedPage> {
    const { width = 1280, height = 860, scheme = "dark" } = look;
    const context = await this.#browser.newContext({
      viewport: { width, height },
      colorScheme: scheme,
      permissions: ["clipboard-read", "clipboard-write"],
      reducedMotion: "reduce",
    });
    context.setDefaultTimeout(WAIT_MS);
    await context.addInitScript({ content: WATCH });
    const opened = new OpenedPage(await context.newPage(), new URL(url).origin);
    await opened.page.goto(url);
    return opened;
  }

  /** Closes the pages that were opened by this connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
  }
}

/** A page that is open, with what went wrong in it. */
export class OpenedPage implements AsyncDisposable {
  readonly page: Page;
  readonly #problems: string[] = [];

  constructor(page: Page, origin: string) {
    this.page = page;
    page.on("pageerror", (error) => this.#problems.push(`error: ${error.message}`));
    page.on("console", (message) => {
      const isProblem = message.type() === "error" || message.type() === "warning";
      if (isProblem && !REFUSED.test(message.text())) this.#problems.push(`console: ${message.text()}`);
    });
    page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(origin) && !url.startsWith("data:")) this.#problems.push(`request: ${url}`);
    });
    page.on("dialog", (dialog) => {
      this.#problems.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
  }

  /** Goes to a view by its link. */
  async view(title: string): Promise<void> {
    await this.page.getByRole("navigation").getByRole("link", { name: title, exact: true }).click();
    await this.page.getByRole("heading", { level: 1, name: title }).waitFor();
  }

  /** Types a token into the form that asks for it. */
  async giveToken(label: string, token: string): Promise<void> {
    await this.page.getByLabel(label, { exact: true }).fill(token);
    await this.page.getByRole("button", { name: "Use this token" }).click();
  }

  /** Waits until a text is seen in the main part of the page. */
  async sees(text: string | RegExp): Promise<void> {
    await this.page.getByRole("main").getByText(text).filter({ visible: true }).first().waitFor();
  }

  /** Waits until the live metrics are in this state. */
  async isLive(text: string | RegExp = "Live"): Promise<void> {
    await this.page.locator(".live .word").getByText(text).waitFor();
  }

  /** Has the live metrics connect immediately where they wait to, or were stopped by a click that came too late. */
  async connectNow(): Promise<void> {
    const go = this.page.locator(".live button").filter({ hasText: /^(?:Now|Start)$/ });
    // What the button does may change while it is being clicked.
    if (await go.isVisible()) await go.click({ timeout: CLICK_MS }).catch(() => {});
  }

  async value(expression: string): Promise<unknown> {
    return await this.page.evaluate(expression);
  }

  /** Everything that the page shows or keeps, as one text. */
  async traces(): Promise<string> {
    return String(
      await this.value(`(async () => JSON.stringify([
      document.documentElement.outerHTML,
      [...document.querySelectorAll("input, textarea")].map((one) => one.value),
      { ...localStorage },
      { ...sessionStorage },
      document.cookie,
      location.href,
      history.state,
      await indexedDB.databases(),
      "caches" in globalThis ? await caches.keys() : [],
    ]))()`),
    );
  }

  /** The problems so far: errors, violations of the policy, requests to elsewhere, markup that ran. */
  async problems(): Promise<readonly string[]> {
    const violations = await this.value("violations") as string[];
    const wasRun = await this.value("globalThis.wasRun ?? ''") as string;
    return [
      ...this.#problems,
      ...violations.map((text) => `violation: ${text}`),
      ...wasRun === "" ? [] : [`ran: ${wasRun}`],
    ];
  }

  /** Keeps what the page looks like. */
  async picture(name: string): Promise<void> {
    await this.page.screenshot({ path: `${ARTIFACTS}${name}.png`, fullPage: true });
  }

  /** Closes it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.page.context().close();
  }
}
