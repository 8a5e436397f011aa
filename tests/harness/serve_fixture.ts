import { join } from "node:path";
import { type Running, serve } from "../../main.ts";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { readSettings } from "../../src/settings/read_settings.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import type { WebhookLine } from "../../src/webhooks/webhook_thread.ts";

/** How a service in this process is started. */
export interface ServeFixtureOptions {
  /** Settings beside those that keep it on free loopback ports, in memory, with the rules below. */
  readonly env?: Readonly<Record<string, string>>;
  /** Rule files by name, written into a folder of this service alone. */
  readonly rules?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** Starts the worker of the webhook service; the service's own when absent. */
  readonly startWebhookWorker?: () => WebhookLine;
}

/** The whole service in this process, on free ports, for tests that need no process of its own. */
export class ServeFixture implements AsyncDisposable {
  readonly running: Running;
  /** Folder of the rule files. */
  readonly rulesFolder: string;
  /** Lines of the log so far. */
  readonly log: readonly string[];
  /** Reads the configuration again, as SIGHUP does. */
  readonly reload: () => void;
  readonly #root: string;
  readonly #stop: AbortController;

  private constructor(parts: {
    running: Running;
    root: string;
    log: readonly string[];
    reload: () => void;
    stop: AbortController;
  }) {
    this.running = parts.running;
    this.rulesFolder = join(parts.root, "config");
    this.log = parts.log;
    this.reload = parts.reload;
    this.#root = parts.root;
    this.#stop = parts.stop;
  }

  /** Starts it and waits until every port is open. */
  static async start(options: ServeFixtureOptions = {}): Promise<ServeFixture> {
    const root = await Deno.makeTempDir({ prefix: "weir_" });
    await writeRules(join(root, "config"), options.rules ?? {});
    const { settings } = readSettings({
      BACKEND_TYPE: "memory",
      DISABLE_STATS: "true",
      HOST: "127.0.0.1",
      PORT: "0",
      GRPC_HOST: "127.0.0.1",
      GRPC_PORT: "0",
      DEBUG_HOST: "127.0.0.1",
      DEBUG_PORT: "0",
      RUNTIME_ROOT: root,
      RUNTIME_WATCH_ROOT: "false",
      ...options.env,
    });
    const log: string[] = [];
    const clock = options.clock ?? systemClock;
    const write = (line: string) => void log.push(line);
    const logger = createLogger({ level: settings.LOG_LEVEL, format: settings.LOG_FORMAT, clock, write });
    const stop = new AbortController();
    let reload = () => {};
    const running = await serve(settings, stop.signal, {
      logger,
      clock,
      ...(options.startWebhookWorker === undefined ? {} : { startWebhookWorker: options.startWebhookWorker }),
      onReload: (given) => void (reload = given),
    });
    return new ServeFixture({ running, root, log, reload: () => reload(), stop });
  }

  /** Posts a body to `/json`; answers the status and the body. */
  async ask(body: unknown): Promise<{ status: number; body: unknown }> {
    const response = await fetch(`http://${this.running.addresses.http}/json`, {
      method: "POST",
      body: typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  }

  /** A page of the debug port. */
  async page(path: string): Promise<string> {
    return await (await fetch(`http://${this.running.addresses.debug}${path}`)).text();
  }

  /** Every statistic by name. */
  async stats(): Promise<Record<string, number>> {
    const lines = (await this.page("/stats")).trim().split("\n");
    return Object.fromEntries(lines.map((line) => {
      const colon = line.lastIndexOf(": ");
      return [line.slice(0, colon), Number(line.slice(colon + 2))];
    }));
  }

  /** Stops it and waits until it has. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.running.stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await Deno.remove(this.#root, { recursive: true });
  }
}

async function writeRules(folder: string, rules: Readonly<Record<string, string>>): Promise<void> {
  await Deno.mkdir(folder);
  for (const [name, text] of Object.entries(rules)) await Deno.writeTextFile(join(folder, name), text);
}
