import { join } from "node:path";
import { ServeFixture } from "./serve_fixture.ts";
import { until } from "./until.ts";
import { ADMIN_TOKEN } from "./webhook_calls.ts";
import { takenCall, type WebhookAnswered, webhookCall } from "./webhook_client.ts";
import { startWeir, type WeirProcess } from "./weir_process.ts";

/** A workflow of one step that every such process has. */
export const ECHO_WORKFLOW =
  'workflow: echo\nsteps:\n  - name: result\n    set: { total: "{{ input.total }}" }\n';

/** A folder for a store and workflows, which several processes may share; removed at the end of its block. */
export class WebhookFolder implements AsyncDisposable {
  readonly path: string;
  /** The database file. */
  readonly store: string;
  readonly workflows: string;

  constructor(path: string) {
    this.path = path;
    this.store = join(path, "weir.db");
    this.workflows = join(path, "workflows");
  }

  /** Makes one with the workflow `echo`, or with these files. */
  static async make(
    files: Readonly<Record<string, string>> = { "echo.yaml": ECHO_WORKFLOW },
  ): Promise<WebhookFolder> {
    const folder = new WebhookFolder(await Deno.makeTempDir({ prefix: "weir_webhooks_" }));
    await Deno.mkdir(folder.workflows);
    for (const [name, text] of Object.entries(files)) {
      await Deno.writeTextFile(join(folder.workflows, name), text);
    }
    return folder;
  }

  /** The settings of a process that works here, loopback allowed. */
  get env(): Record<string, string> {
    return {
      WEBHOOK_STORE: this.store,
      WORKFLOW_DIRECTORY: this.workflows,
      WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8,::1/128",
      WORKFLOW_ALLOW_CIDRS: "127.0.0.0/8,::1/128",
      ADMIN_TOKEN,
    };
  }

  /** Starts a process here, and waits until its webhook service has its store, unless it may never have it. */
  async start(env: Readonly<Record<string, string>> = {}, awaited: Awaited = {}): Promise<WeirProcess> {
    return await ready(await startWeir({ env: { ...this.env, ...env } }), awaited);
  }

  /** Serves here in this process, and waits as `start` does. */
  async serve(env: Readonly<Record<string, string>> = {}, awaited: Awaited = {}): Promise<ServeFixture> {
    return await ready(await ServeFixture.start({ env: { ...this.env, ...env } }), awaited);
  }

  /** Everything in the files of the store, as bytes; the log first, which a checkpoint moves into the other. */
  async storeText(): Promise<string> {
    const text = new TextDecoder("latin1");
    const log = await Deno.readFile(join(this.path, "weir.db-wal")).catch(missing);
    return text.decode(log) + text.decode(await Deno.readFile(join(this.path, "weir.db")));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.path, { recursive: true });
  }
}

/** False: it is not waited until the webhook service has its store. */
interface Awaited {
  readonly isAwaited?: boolean;
}

async function ready<Weir extends AsyncDisposable & { readonly httpAddress: string }>(
  weir: Weir,
  { isAwaited = true }: Awaited,
): Promise<Weir> {
  try {
    if (isAwaited) await untilStoreIsOpen(weir.httpAddress);
    return weir;
  } catch (error) {
    await weir[Symbol.asyncDispose]();
    throw error;
  }
}

/** Waits until the webhook service of a Weir has its store. */
export async function untilStoreIsOpen(address: string): Promise<void> {
  const url = `http://${address}/api/v1/triggers?limit=1`;
  await until("the webhook service", async () => {
    return (await webhookCall(url, { method: "GET", token: ADMIN_TOKEN })).status !== 503;
  });
}

interface ApiCall {
  readonly method?: string;
  readonly token?: string;
  readonly idempotencyKey?: string;
  readonly body?: unknown;
}

/** Calls `/api/v1<path>` at an address until it is taken, as the administration unless another token is given. */
export async function api(address: string, path: string, call: ApiCall = {}): Promise<WebhookAnswered> {
  const { token = ADMIN_TOKEN, idempotencyKey: key, body } = call;
  const method = call.method ?? (body === undefined ? "GET" : "POST");
  return await takenCall(`http://${address}/api/v1${path}`, { method, token, key, body });
}

function missing(error: unknown): Uint8Array<ArrayBuffer> {
  if (error instanceof Deno.errors.NotFound) return new Uint8Array();
  throw error;
}
