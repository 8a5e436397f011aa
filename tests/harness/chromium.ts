import { existsSync } from "node:fs";
import { join } from "node:path";
import { ChildProcess } from "./child_process.ts";
import { requireTool } from "./tools.ts";
import { until } from "./until.ts";

/** Where a Chromium takes the commands of its developer tools. */
export interface ChromiumPlace {
  readonly endpoint: string;
  /** Of its profile, which goes with it. */
  readonly folder: string;
}

/** Debian's command is a script that starts this program as its child, which would outlive a killed script. */
const DEBIAN_PROGRAM = "/usr/lib/chromium/chromium-headless-shell";
/** What makes pages behave the same whether somebody looks at them or not, and keeps it from asking elsewhere. */
const ARGS = [
  // As root, and in containers, it cannot make the sandbox that it would put its own parts in.
  ...["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0"],
  ...["--no-first-run", "--no-default-browser-check", "--no-service-autorun", "--enable-automation"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-default-apps"],
  ...["--disable-extensions", "--disable-sync", "--disable-breakpad", "--metrics-recording-only"],
  ...["--disable-field-trial-config", "--disable-client-side-phishing-detection", "--password-store=basic"],
  ...[
    "--disable-features=Translate,HttpsUpgrades,MediaRouter,OptimizationHints,PaintHolding,SpareRendererForSitePerProcess",
  ],
  ...["--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows"],
  ...["--disable-renderer-backgrounding", "--disable-ipc-flooding-protection", "--disable-hang-monitor"],
  ...["--disable-back-forward-cache", "--disable-popup-blocking", "--force-color-profile=srgb"],
  ...["--hide-scrollbars", "--mute-audio", "about:blank"],
  "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
];

/** Starts a Chromium without a window, in a profile of its own. */
export async function startChromium(): Promise<Chromium> {
  const folder = await Deno.makeTempDir({ prefix: "weir_chromium_" });
  const command = requireTool("chromium-headless-shell");
  const child = new ChildProcess(existsSync(DEBIAN_PROGRAM) ? DEBIAN_PROGRAM : command, {
    args: [`--user-data-dir=${folder}`, ...ARGS],
    isSilent: true,
  });
  try {
    const endpoint = await until("Chromium", async () => {
      if (!child.running) return "ended";
      // It writes the file when it listens: its port, and the path of the browser.
      const [port, path] = (await Deno.readTextFile(join(folder, "DevToolsActivePort"))).split("\n");
      return path && `ws://127.0.0.1:${port}${path}`;
    });
    if (endpoint === "ended") throw new Error('Cannot start "chromium": it ended');
    return new Chromium(endpoint, folder, child);
  } catch (error) {
    await child.kill();
    throw error;
  }
}

/** A running Chromium; killed at the end of an `await using`. */
export class Chromium implements AsyncDisposable, ChromiumPlace {
  readonly endpoint: string;
  readonly folder: string;
  readonly #child: ChildProcess;

  constructor(endpoint: string, folder: string, child: ChildProcess) {
    this.endpoint = endpoint;
    this.folder = folder;
    this.#child = child;
  }

  /** Kills it and removes its folder, into which its parts still write for a moment. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.kill();
    await until(
      "the end of Chromium's parts",
      () => Deno.remove(this.folder, { recursive: true }).then(() => true),
    );
  }
}
