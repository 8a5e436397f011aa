import { FakeClock } from "./fake_clock.ts";
import type { FaultMessage } from "./killed_webhook_worker.ts";
import { ServeFixture } from "./serve_fixture.ts";
import { until } from "./until.ts";
import { WebhookCalls } from "./webhook_calls.ts";
import type { WebhookFaults } from "./webhook_faults.ts";
import type { WebhookProcessOptions, WebhookStart } from "./webhook_process.ts";
import { untilStoreIsOpen, WebhookFolder } from "./webhook_weir.ts";

/**
 * Weir with a store of webhooks in this process, at one folder while its services come and go. Of the time that its work
 * goes by some can be skipped, and its worker be ended. The loopback is open for deliveries and for workflows.
 */
export class WebhookServed extends WebhookCalls implements AsyncDisposable {
  readonly folder: WebhookFolder;
  readonly oldLines: string[] = [];
  readonly #env: Readonly<Record<string, string>>;
  readonly #clock = FakeClock.ofMachine();
  #fixture: ServeFixture | undefined;
  #worker: Worker | undefined;

  private constructor(folder: WebhookFolder, env: Readonly<Record<string, string>>) {
    super();
    this.folder = folder;
    this.#env = { ...folder.env, LOG_LEVEL: "info", ...env };
  }

  /** Nothing is served yet. */
  static async open(
    { env = {}, workflows = {} }: Omit<WebhookProcessOptions, "folder"> = {},
  ): Promise<WebhookServed> {
    return new WebhookServed(await WebhookFolder.make(workflows), env);
  }

  /** Starts a service and waits until it has its store. */
  async start({ faults, rules = {}, env = {}, isAwaited = true }: WebhookStart = {}): Promise<void> {
    this.#fixture = await ServeFixture.start({
      env: { ...this.#env, ...env },
      rules,
      clock: this.#clock,
      ...(faults === undefined ? {} : { createWebhookWorker: () => this.#startWorker(faults) }),
    });
    if (isAwaited) await untilStoreIsOpen(this.fixture.httpAddress);
  }

  /** The service that runs. */
  get fixture(): ServeFixture {
    if (this.#fixture === undefined) throw new Error("Cannot use Weir: nothing is served");
    return this.#fixture;
  }

  get base(): string {
    return `http://${this.fixture.running.addresses.http}`;
  }

  get debugAddress(): string {
    return this.fixture.running.addresses.debug;
  }

  get lines(): readonly string[] {
    return [...this.oldLines, ...this.#fixture?.log ?? []];
  }

  /** Skips some time of the work on the store, where the faults say that it may be skipped. */
  hurryWork(ms: number): void {
    this.#tell({ type: "hurry", ms });
  }

  /** Skips some time of everything but that work. */
  hurry(ms: number): void {
    this.#clock.advance(ms);
  }

  /** Ends a worker with faults by an uncaught error. */
  breakWorker(): void {
    this.#tell({ type: "throw" });
  }

  /** Ends a worker with faults, which says nothing any more. */
  silenceWorker(): void {
    this.#worker?.terminate();
  }

  /** Ends the service. */
  async stop(): Promise<void> {
    const { fixture } = this;
    this.oldLines.push(...fixture.log);
    this.#fixture = undefined;
    this.#worker = undefined;
    await fixture[Symbol.asyncDispose]();
  }

  /** Ends a service with faults, with nothing brought to its end. */
  async kill(): Promise<void> {
    this.silenceWorker();
    const stopped = this.stop();
    let isOver = false;
    stopped.finally(() => isOver = true).catch(() => {});
    await until("the end", () => {
      if (!isOver) this.hurry(1_000);
      return isOver;
    }, { intervalMs: 5 });
    await stopped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#fixture !== undefined) await (this.#worker === undefined ? this.stop() : this.kill());
    await this.folder[Symbol.asyncDispose]();
  }

  #startWorker(faults: WebhookFaults): Worker {
    const url = new URL("./killed_webhook_worker.ts", import.meta.url);
    this.#worker = new Worker(url, { type: "module", name: "webhooks" });
    this.#tell({ type: "faults", faults });
    return this.#worker;
  }

  #tell(message: FaultMessage): void {
    this.#worker?.postMessage(message);
  }
}
