import { join } from "node:path";
import { freePort } from "./free_port.ts";
import { until } from "./until.ts";
import { post, type WebhookAnswered, webhookCall } from "./webhook_client.ts";
import type { WebhookFaults } from "./webhook_faults.ts";
import type { WebhookReceiver } from "./webhook_receiver.ts";
import { startKilledWeir, UNEXPECTED_CODE } from "./start_killed_weir.ts";
import type { WeirProcess } from "./weir_process.ts";

/** How a Weir with webhooks is to run. */
export interface WebhookProcessOptions {
  /** Where the store and the workflows are; a folder of its own when absent. */
  readonly folder?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Workflow files by name. */
  readonly workflows?: Readonly<Record<string, string>> | undefined;
}

/** How one of its processes is to run. */
export interface WebhookStart {
  readonly faults?: WebhookFaults | undefined;
  /** Rule files by name. */
  readonly rules?: Readonly<Record<string, string>> | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** False: it is not waited until the webhook service has its store, which it may never have. */
  readonly isAwaited?: boolean | undefined;
}

/** The token of the administration. */
export const ADMIN_TOKEN = "token-of-the-administration-in-tests-0123456789";

/**
 * Weir with a store of webhooks, at one address and on one folder while its processes come and go. The loopback is open
 * for deliveries and for workflows.
 */
export class WebhookProcess implements AsyncDisposable {
  readonly folder: string;
  readonly storePath: string;
  readonly workflowFolder: string;
  /** `http://127.0.0.1:port`. */
  readonly base: string;
  /** What all processes wrote to their logs, but for the one that runs. */
  readonly oldLines: string[] = [];
  /** How many processes were started; workflows read it as `env.GENERATION`. */
  generation = 0;
  readonly #env: Readonly<Record<string, string>>;
  readonly #ownsFolder: boolean;
  #weir: WeirProcess | undefined;

  private constructor(folder: string, ownsFolder: boolean, env: Readonly<Record<string, string>>) {
    this.folder = folder;
    this.#ownsFolder = ownsFolder;
    this.storePath = join(folder, "data", "weir.db");
    this.workflowFolder = join(folder, "workflows");
    const port = freePort();
    this.base = `http://127.0.0.1:${port}`;
    this.#env = {
      ...{ PORT: String(port), WEBHOOK_STORE: this.storePath, WORKFLOW_DIRECTORY: this.workflowFolder },
      ...{ WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8", WORKFLOW_ALLOW_CIDRS: "127.0.0.0/8" },
      ...{ WORKFLOW_ENV: "GENERATION", ADMIN_TOKEN, LOG_LEVEL: "info", ...env },
    };
  }

  /** Makes the folder; no process runs yet. */
  static async open(options: WebhookProcessOptions = {}): Promise<WebhookProcess> {
    const folder = options.folder ?? await Deno.makeTempDir({ prefix: "weir_webhooks_" });
    const process = new WebhookProcess(folder, options.folder === undefined, options.env ?? {});
    await Deno.mkdir(process.workflowFolder, { recursive: true });
    for (const [name, text] of Object.entries(options.workflows ?? {})) {
      await Deno.writeTextFile(join(process.workflowFolder, name), text);
    }
    return process;
  }

  /**
   * Starts a process and waits until its ports are open and its webhook service answers, which one that is to die may
   * never come to.
   */
  async start({ faults, rules = {}, env = {}, isAwaited = true }: WebhookStart = {}): Promise<void> {
    this.generation++;
    const settings = { ...this.#env, GENERATION: String(this.generation), ...env };
    this.#weir = await startKilledWeir({ faults, rules, settings });
    if (!isAwaited || faults?.kill !== undefined) return;
    await until(
      "the webhook service",
      async () => (await this.api("GET", "/triggers?limit=1")).status !== 503,
    );
  }

  /** Itself, as the only one of those that share its store. */
  get members(): readonly WebhookProcess[] {
    return [this];
  }

  /** Starts itself. */
  async startMember(_: number, start?: WebhookStart): Promise<void> {
    await this.start(start);
  }

  /** The process that runs. */
  get weir(): WeirProcess {
    if (this.#weir === undefined) throw new Error("Cannot use Weir: no process runs");
    return this.#weir;
  }

  /** What was written to the logs. */
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

  /** A call of the administration. */
  async api(method: string, path: string, body?: unknown): Promise<WebhookAnswered> {
    return await webhookCall(`${this.base}/api/v1${path}`, { method, token: ADMIN_TOKEN, body });
  }

  /** Everything of a list. */
  async all(path: string): Promise<readonly WebhookAnswered["body"][]> {
    const items: WebhookAnswered["body"][] = [];
    let cursor: string | undefined;
    do {
      const joint = path.includes("?") ? "&" : "?";
      const more = cursor === undefined ? "" : `&cursor=${encodeURIComponent(cursor)}`;
      const { status, body } = await this.api("GET", `${path}${joint}limit=200${more}`);
      if (status !== 200) throw new Error(`Cannot list "${path}": ${status} ${JSON.stringify(body)}`);
      items.push(...body.items);
      cursor = body.nextCursor;
    } while (cursor !== undefined);
    return items;
  }

  /** Makes an endpoint at a path of the receiver, which learns its secret; answers its record. */
  async endpoint(
    receiver: WebhookReceiver,
    path: string,
    fields: Readonly<Record<string, unknown>> = {},
  ): Promise<WebhookAnswered["body"]> {
    const made = await this.made("/endpoints", { url: `${receiver.url}${path}`, ...fields });
    receiver.secrets.set(path, made.secret);
    return made;
  }

  /** Makes a record; answers it. */
  async made(path: string, fields: Readonly<Record<string, unknown>>): Promise<WebhookAnswered["body"]> {
    const { status, body } = await this.api("POST", path, fields);
    if (status !== 201) throw new Error(`Cannot make one of "${path}": ${status} ${JSON.stringify(body)}`);
    return body;
  }

  /** Posts an event until it is taken. */
  async event(data: unknown, key: string, kind = "agent.reply.completed"): Promise<WebhookAnswered> {
    return await post(`${this.base}/api/v1/events`, { event: kind, data }, { token: ADMIN_TOKEN, key });
  }

  /** Calls a trigger until it is taken. */
  async trigger(name: string, token: string, body: unknown, key?: string): Promise<WebhookAnswered> {
    return await post(`${this.base}/api/v1/workflows/triggers/${name}`, body, { token, key });
  }

  /** A figure of the webhook service, as its debug page shows it, such as `lost_claims`. */
  async figure(name: string): Promise<number> {
    const text = await (await fetch(`http://${this.weir.debugAddress}/stats`)).text();
    const start = `ratelimit.webhooks.${name}: `;
    const line = text.split("\n").find((one) => one.startsWith(start));
    if (line === undefined) throw new Error(`Cannot find the figure "${name}": the page does not show it`);
    return Number(line.slice(start.length));
  }

  /** Health as it is shown. */
  async health(): Promise<{ readonly status: number; readonly text: string }> {
    const response = await fetch(`${this.base}/healthcheck`);
    return { status: response.status, text: await response.text() };
  }

  /** Whether the process is stopped, as by SIGSTOP. */
  isStopped(): boolean {
    const stat = Deno.readTextFileSync(`/proc/${this.weir.pid}/stat`);
    // Behind the name of the program, which may hold anything.
    return stat.slice(stat.lastIndexOf(")") + 2).startsWith("T");
  }

  /** Resident memory of the process in megabytes. */
  residentMb(): number {
    const pages = Deno.readTextFileSync(`/proc/${this.weir.pid}/statm`).split(" ")[1];
    return Number(pages) * 4_096 / 2 ** 20;
  }

  /** Whether nothing is left to be delivered. */
  async isDelivered(): Promise<boolean> {
    for (const state of ["attempting", "retrying"]) {
      const { body } = await this.api("GET", `/deliveries?state=${state}&limit=1`);
      if (body.items.length > 0) return false;
    }
    return true;
  }

  /** Whether no execution is left to be carried out. */
  async isCarriedOut(): Promise<boolean> {
    for (const state of ["queued", "running"]) {
      const { body } = await this.api("GET", `/executions?state=${state}&limit=1`);
      if (body.items.length > 0) return false;
    }
    return true;
  }

  /** Kills the process and removes the folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    const weir = this.#weir;
    await weir?.[Symbol.asyncDispose]();
    // An error that reached its process level ended it: that is a defect, whatever the test looks at.
    const end = await weir?.exited;
    if (end?.code === UNEXPECTED_CODE) console.error(weir?.stderrLines.slice(-20).join("\n"));
    if (this.#ownsFolder) await Deno.remove(this.folder, { recursive: true });
  }

  async #letGo(): Promise<void> {
    const weir = this.weir;
    this.oldLines.push(...weir.stderrLines, ...weir.stdoutLines);
    this.#weir = undefined;
    await weir[Symbol.asyncDispose]();
  }
}
