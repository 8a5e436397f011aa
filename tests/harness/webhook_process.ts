import { freePort } from "./free_port.ts";
import { WebhookCalls } from "./webhook_calls.ts";
import { STOPPING, type WebhookFaults } from "./webhook_faults.ts";
import { untilStoreIsOpen, WebhookFolder } from "./webhook_weir.ts";
import { startWeir, type WeirProcess } from "./weir_process.ts";

/** The exit code of a process that an unexpected error ended. */
const UNEXPECTED_CODE = 3;

/** Options of a webhook process. */
export interface WebhookProcessOptions {
  /** Folder of the store and the workflows; a new one when absent. */
  readonly folder?: WebhookFolder | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Workflow files by name, in a new folder. */
  readonly workflows?: Readonly<Record<string, string>> | undefined;
}

/** Options of one of its processes. */
export interface WebhookStart {
  readonly faults?: WebhookFaults | undefined;
  /** Rule files by name. */
  readonly rules?: Readonly<Record<string, string>> | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** False: it is not waited until the webhook service has its store, which it may never have. */
  readonly isAwaited?: boolean | undefined;
}

/**
 * Weir with a store of webhooks, at one address and on one folder while its processes come and go. The loopback is open
 * for deliveries and for workflows.
 */
export class WebhookProcess extends WebhookCalls implements AsyncDisposable {
  readonly base: string;
  readonly folder: WebhookFolder;
  readonly oldLines: string[] = [];
  /** Number of processes that were started; workflows read it as `env.GENERATION`. */
  generation = 0;
  readonly #env: Readonly<Record<string, string>>;
  readonly #ownsFolder: boolean;
  #weir: WeirProcess | undefined;

  private constructor(folder: WebhookFolder, ownsFolder: boolean, env: Readonly<Record<string, string>>) {
    super();
    this.folder = folder;
    this.#ownsFolder = ownsFolder;
    const port = freePort();
    this.base = `http://127.0.0.1:${port}`;
    this.#env = {
      ...folder.env,
      PORT: String(port),
      WORKFLOW_ENV: "GENERATION",
      LOG_LEVEL: "info",
      ...env,
    };
  }

  /** No process runs yet. */
  static async open(
    { folder, env = {}, workflows = {} }: WebhookProcessOptions = {},
  ): Promise<WebhookProcess> {
    const own = folder ?? await WebhookFolder.make(workflows);
    return new WebhookProcess(own, folder === undefined, env);
  }

  /**
   * Starts a process and waits until its ports are open and its webhook service answers, which one that is to die may
   * never come to.
   */
  async start({ faults, rules = {}, env = {}, isAwaited = true }: WebhookStart = {}): Promise<void> {
    this.generation++;
    const settings = { ...this.#env, GENERATION: String(this.generation), ...env };
    this.#weir = await startWeir({ faults, rules, env: settings });
    if (!isAwaited || faults?.kill !== undefined) return;
    await untilStoreIsOpen(new URL(this.base).host);
  }

  /** Itself, as the only one of those that share its store. */
  get members(): readonly WebhookProcess[] {
    return [this];
  }

  /** Starts itself. */
  async startMember(_: number, start?: WebhookStart): Promise<void> {
    await this.start(start);
  }

  get debugAddress(): string {
    return this.weir.debugAddress;
  }

  /** The process that runs. */
  get weir(): WeirProcess {
    if (this.#weir === undefined) throw new Error("Cannot use Weir: no process runs");
    return this.#weir;
  }

  get lines(): readonly string[] {
    return [...this.oldLines, ...this.#weir?.stderrLines ?? [], ...this.#weir?.stdoutLines ?? []];
  }

  /** Waits until the process has ended by itself, and lets go of it; answers the signal that ended it. */
  async ended(): Promise<Deno.Signal | null> {
    const { signal } = await this.weir.exited;
    await this.#letGo();
    return signal;
  }

  /** Ends the process by SIGKILL. */
  async kill(): Promise<void> {
    await this.weir.kill();
    await this.#letGo();
  }

  /** Asks it to end; answers its exit code. */
  async stop(): Promise<number> {
    const code = await this.weir.stop();
    await this.#letGo();
    return code;
  }

  /**
   * Returns whether the process is stopped at the place that its faults name, and not by another who pauses
   * processes.
   */
  isStopped(): boolean {
    if (!this.weir.stderrLines.includes(STOPPING)) return false;
    const stat = Deno.readTextFileSync(`/proc/${this.weir.pid}/stat`);
    // Behind the name of the program, which may hold anything.
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
  }

  /** Resident memory of the process in megabytes. */
  residentMb(): number {
    const pages = Deno.readTextFileSync(`/proc/${this.weir.pid}/statm`).split(" ")[1];
    return Number(pages) * 4_096 / 2 ** 20;
  }

  /** Kills the process and removes the folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    const weir = this.#weir;
    await weir?.[Symbol.asyncDispose]();
    // An error that reached its process level ended it: that is a defect, whatever the test looks at.
    const end = await weir?.exited;
    if (end?.code === UNEXPECTED_CODE) console.error(weir?.stderrLines.slice(-20).join("\n"));
    if (this.#ownsFolder) await this.folder[Symbol.asyncDispose]();
  }

  async #letGo(): Promise<void> {
    const weir = this.weir;
    this.oldLines.push(...weir.stderrLines, ...weir.stdoutLines);
    this.#weir = undefined;
    await weir[Symbol.asyncDispose]();
  }
}
