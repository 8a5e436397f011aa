import { type Running, serve } from "../../main.ts";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { readSettings } from "../../src/settings/read_settings.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import type { DecidingWorkerHandle } from "../../src/serve/workers/message.ts";
import type { WebhookWorkerHandle } from "../../src/webhooks/service/supervisor.ts";
import { FakeClock } from "./fake_clock.ts";
import { makeWeirFolder, type WeirFolder } from "./weir_folder.ts";

/** How a service in this process is started. */
export interface ServeFixtureOptions {
  /** Settings beside those that keep it on free loopback ports, in memory, with the rules below. */
  readonly env?: Readonly<Record<string, string>>;
  /** Rule files by name, written into a folder of this service alone. */
  readonly rules?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** Starts the worker of the webhook service; the service's own when absent. */
  readonly createWebhookWorker?: () => WebhookWorkerHandle;
  /** Starts a worker that decides; the service's own when absent. */
  readonly createDecidingWorker?: () => DecidingWorkerHandle;
}

/** The whole service in this process, on free ports, for tests that need no process of its own. */
export class ServeFixture implements AsyncDisposable {
  /** Folder of the rule files. */
  readonly rulesFolder: string;
  /** Lines of the log so far. */
  readonly log: readonly string[];
  /** Settles when every port is open; a service without rules waits for them. */
  readonly opened: Promise<void>;
  readonly #folder: WeirFolder;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  #reload = () => {};
  #running: Running | undefined;

  private constructor(folder: WeirFolder, log: string[], options: ServeFixtureOptions) {
    this.rulesFolder = folder.rulesFolder;
    this.log = log;
    this.#folder = folder;
    this.#clock = options.clock ?? systemClock;
    this.opened = this.#open(log, options);
  }

  /** Starts it and waits until every port is open. */
  static async start(options: ServeFixtureOptions = {}): Promise<ServeFixture> {
    const fixture = await ServeFixture.begin(options);
    try {
      await fixture.opened;
      return fixture;
    } catch (error) {
      await fixture[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Starts it. */
  static async begin(options: ServeFixtureOptions = {}): Promise<ServeFixture> {
    return new ServeFixture(await makeWeirFolder(options.rules), [], options);
  }

  /** The service, whose ports are open. */
  get running(): Running {
    if (this.#running === undefined) throw new Error("Cannot call the service: its ports are not open yet");
    return this.#running;
  }

  /** Where it takes gRPC calls: `host:port`, or `unix:path`. */
  get grpcAddress(): string {
    return this.running.addresses.grpc;
  }

  /** Where it takes HTTP requests: `host:port`. */
  get httpAddress(): string {
    return this.running.addresses.http;
  }

  /** Where its debug pages are: `host:port`; open before the other ports are. */
  get debugAddress(): string {
    const [, address] = /Listening for debug on '([^']+)'/.exec(this.log.join("\n")) ?? [];
    if (address === undefined) throw new Error("Cannot ask the debug port: it is not open yet");
    return address;
  }

  /** Reads the configuration again, as SIGHUP does. */
  reload(): void {
    this.#reload();
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
    return await (await fetch(`http://${this.debugAddress}${path}`)).text();
  }

  /** Every statistic by name. */
  async stats(): Promise<Record<string, number>> {
    const lines = (await this.page("/stats")).trim().split("\n");
    return Object.fromEntries(lines.map((line) => {
      const colon = line.lastIndexOf(": ");
      return [line.slice(0, colon), Number(line.slice(colon + 2))];
    }));
  }

  /** Tells it to stop, as SIGTERM does. */
  beginStop(): void {
    this.#stop.abort();
  }

  /** Stops it and waits until it has; a clock that stands still is moved on until then. */
  async stop(): Promise<void> {
    this.beginStop();
    await this.opened.catch(() => {});
    const clock = this.#clock;
    const isStill = clock instanceof FakeClock && !clock.isOfMachine;
    const ticking = setInterval(() => isStill && clock.advance(1_000), 1);
    try {
      await this.#running?.stopped;
    } finally {
      clearInterval(ticking);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await Deno.remove(this.#folder.path, { recursive: true });
  }

  async #open(
    log: string[],
    { env, createWebhookWorker, createDecidingWorker }: ServeFixtureOptions,
  ): Promise<void> {
    const clock = this.#clock;
    const { settings, effective } = readSettings({
      ...this.#folder.env,
      ...env,
    });
    const write = (line: string) => void log.push(line);
    const logger = createLogger({ level: settings.LOG_LEVEL, format: settings.LOG_FORMAT, clock, write });
    const onReload = (reload: () => void) => void (this.#reload = reload);
    this.#running = await serve(settings, this.#stop.signal, {
      ...{ effective, logger, clock, onReload },
      ...(createWebhookWorker === undefined ? {} : { createWebhookWorker }),
      ...(createDecidingWorker === undefined ? {} : { createDecidingWorker }),
    });
  }
}
