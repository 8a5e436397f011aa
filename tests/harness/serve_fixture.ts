import { type Running, serve } from "../../main.ts";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { readSettings } from "../../src/settings/read_settings.ts";
import { createLogger } from "../../src/telemetry/logger.ts";
import type { DecidingWorkerHandle } from "../../src/serve/workers/message.ts";
import type { WebhookWorkerHandle } from "../../src/webhooks/service/supervisor.ts";
import { ChildProcess } from "./child_process.ts";
import { FakeClock } from "./fake_clock.ts";
import { runtimeEnvironment, weirCommand, weirExecutable, workingFolder } from "./weir_command.ts";
import { makeWeirFolder, type WeirFolder } from "./weir_folder.ts";

/** Options of a serve fixture. */
export interface ServeFixtureOptions {
  /** Settings next to those that keep it on free loopback ports, in memory, with the rules below. */
  readonly env?: Readonly<Record<string, string>>;
  /** Rule files by name, written into a folder of this service alone. */
  readonly rules?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** Starts the worker of the webhook service; the service's own when absent. */
  readonly createWebhookWorker?: () => WebhookWorkerHandle;
  /** Starts a worker that decides; the service's own when absent. */
  readonly createDecidingWorker?: () => DecidingWorkerHandle;
}

interface Host {
  /** Lines of the log so far. */
  readonly log: readonly string[];
  /** Settles when every port is open. */
  readonly opened: Promise<Running>;
  readonly reload: () => void;
  readonly beginStop: () => void;
}

/**
 * The whole service in this process, on free ports, for tests that need no separate process. Where `WEIR_BIN` names an
 * executable, that is started, unless a clock or a worker is to be replaced.
 */
export class ServeFixture implements AsyncDisposable {
  /** Folder of the rule files. */
  readonly rulesFolder: string;
  /** Lines of the log so far. */
  readonly log: readonly string[];
  /** Settles when every port is open; a service without rules waits for them. */
  readonly opened: Promise<void>;
  readonly #folder: WeirFolder;
  readonly #clock: Clock;
  readonly #host: Host;
  #running: Running | undefined;

  private constructor(folder: WeirFolder, host: Host, clock: Clock) {
    this.rulesFolder = folder.rulesFolder;
    this.log = host.log;
    this.#folder = folder;
    this.#clock = clock;
    this.#host = host;
    this.opened = host.opened.then((running) => void (this.#running = running));
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
    const { clock = systemClock, env, rules, ...workers } = options;
    const folder = await makeWeirFolder(rules);
    const settings = { ...folder.env, ...env };
    const isReplaced = options.clock !== undefined || Object.keys(workers).length > 0;
    const host = weirExecutable() === undefined || isReplaced
      ? servedHere(settings, { clock, ...workers })
      : servedByProcess(settings);
    return new ServeFixture(folder, host, clock);
  }

  /** The service, whose ports are open. */
  get running(): Running {
    if (this.#running === undefined) throw new Error("Cannot call the service: its ports are not open yet");
    return this.#running;
  }

  /** Address for gRPC calls: `host:port`, or `unix:path`. */
  get grpcAddress(): string {
    return this.running.addresses.grpc;
  }

  /** Address for HTTP requests: `host:port`. */
  get httpAddress(): string {
    return this.running.addresses.http;
  }

  /** Address of the debug pages: `host:port`; open before the other ports are. */
  get debugAddress(): string {
    const [, address] = /Listening for debug on '([^']+)'/.exec(this.log.join("\n")) ?? [];
    if (address === undefined) throw new Error("Cannot ask the debug port: it is not open yet");
    return address;
  }

  /** Reads the configuration again, as SIGHUP does. */
  reload(): void {
    this.#host.reload();
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
    this.#host.beginStop();
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
}

function servedHere(
  env: Readonly<Record<string, string>>,
  { clock, ...workers }: Omit<ServeFixtureOptions, "env" | "rules" | "clock"> & { readonly clock: Clock },
): Host {
  const log: string[] = [];
  const stop = new AbortController();
  let reload = () => {};
  const open = async () => {
    const { settings, secretFiles, effective } = readSettings(env);
    const write = (line: string) => void log.push(line);
    const logger = createLogger({ level: settings.LOG_LEVEL, format: settings.LOG_FORMAT, clock, write });
    const onReload = (given: () => void) => void (reload = given);
    const options = { effective, secretFiles, logger, clock, onReload, ...workers };
    return await serve(settings, stop.signal, options);
  };
  return { log, opened: open(), reload: () => reload(), beginStop: () => stop.abort() };
}

function servedByProcess(env: Readonly<Record<string, string>>): Host {
  const line = weirCommand(["serve"]);
  const settings = { ...runtimeEnvironment(line), ...env };
  const child = new ChildProcess(line.command, { args: line.args, cwd: workingFolder(line), env: settings });
  const log = child.stderrLines;
  const listening = { grpc: /Listening for gRPC on '([^']+)'/, http: /Listening for HTTP on '([^']+)'/ };
  const open = async () => {
    const ports = { ...listening, debug: /Listening for debug on '([^']+)'/ };
    const addresses = await child.find(ports).catch((error) => {
      throw startError(log) ?? error;
    });
    const rules = () => {
      throw new Error("Cannot look at the rules: another process has them");
    };
    return { addresses, rules, stopped: child.exited.then(() => {}) };
  };
  const signal = (name: Deno.Signal) => () => child.signal(name);
  return { log, opened: open(), reload: signal("SIGHUP"), beginStop: signal("SIGTERM") };
}

/** The error that a program logged before it ended. */
function startError(log: readonly string[]): Error | undefined {
  const found = log.map((line) => / msg="Cannot start the service" error=("(?:[^"\\]|\\.)*")/.exec(line)?.[1])
    .find((text) => text !== undefined);
  return found === undefined ? undefined : new Error(JSON.parse(found));
}
