import { join } from "node:path";
import { ServeFixture } from "./serve_fixture.ts";
import { until } from "./until.ts";
import { startWeir, type WeirProcess } from "./weir_process.ts";

/** The token of the administration of every such process. */
export const ADMIN_TOKEN = "the-administration-token-of-the-tests";

/** A workflow of one step that every such process has. */
export const ECHO_WORKFLOW =
  'workflow: echo\nsteps:\n  - name: result\n    set: { total: "{{ input.total }}" }\n';

/** A folder for a store and workflows, which several processes may share; removed at the end of its block. */
export class WebhookFolder implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Makes one with the workflow `echo`, or with these files. */
  static async make(
    files: Readonly<Record<string, string>> = { "echo.yaml": ECHO_WORKFLOW },
  ): Promise<WebhookFolder> {
    const path = await Deno.makeTempDir({ prefix: "weir_webhooks_" });
    await Deno.mkdir(join(path, "workflows"));
    for (const [name, text] of Object.entries(files)) {
      await Deno.writeTextFile(join(path, "workflows", name), text);
    }
    return new WebhookFolder(path);
  }

  /** The database file. */
  get store(): string {
    return join(this.path, "weir.db");
  }

  /** The settings of a process that works here, loopback allowed. */
  get env(): Record<string, string> {
    return {
      WEBHOOK_STORE: this.store,
      WORKFLOW_DIRECTORY: join(this.path, "workflows"),
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

  /** Everything in the files of the store, byte for byte as text. */
  async storeText(): Promise<string> {
    let text = "";
    for await (const { name } of Deno.readDir(this.path)) {
      if (!/^weir\.db(?:-wal)?$/.test(name)) continue;
      text += new TextDecoder("latin1").decode(await Deno.readFile(join(this.path, name)));
    }
    return text;
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
    await until(
      "the webhook service",
      async () => !isAwaited || (await api(weir.httpAddress, "/triggers?limit=1")).status !== 503,
    );
    return weir;
  } catch (error) {
    await weir[Symbol.asyncDispose]();
    throw error;
  }
}

/** What the API answered; which fields its body has is for the test to know. */
export interface ApiAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: ApiBody;
}

/** A body of the API. */
export interface ApiBody {
  readonly [name: string]: unknown;
  readonly id: string;
  readonly key: string;
  readonly secret: string;
  readonly code: string;
  readonly state: string;
  readonly status: string;
  readonly executionId: string;
  readonly items: readonly ApiBody[];
}

/** What a call of the API brings beside its path. */
export interface ApiCall {
  readonly method?: string;
  readonly token?: string;
  readonly idempotencyKey?: string;
  readonly body?: unknown;
}

/** Calls `/api/v1<path>` at an address, as the administration unless another token is given. */
export async function api(address: string, path: string, call: ApiCall = {}): Promise<ApiAnswer> {
  const { token = ADMIN_TOKEN, idempotencyKey, body } = call;
  const headers: Record<string, string> = { authorization: `Bearer ${token}` };
  if (body !== undefined) headers["content-type"] = "application/json";
  if (idempotencyKey !== undefined) headers["idempotency-key"] = idempotencyKey;
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(`http://${address}/api/v1${path}`, {
    method: call.method ?? (body === undefined ? "GET" : "POST"),
    headers,
    ...(body === undefined ? {} : { body: text }),
  });
  const answer = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: answer === "" ? undefined : JSON.parse(answer),
  };
}

/** A delivery that a receiver got. */
export interface Received {
  readonly delivery: string;
  readonly headers: Headers;
  readonly body: string;
}

/** A receiver of deliveries on this machine. */
export class WebhookReceiver implements AsyncDisposable {
  /** What came, in its order. */
  readonly received: Received[] = [];
  /** Status of each answer from now on. */
  status = 200;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor() {
    const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    this.#server = Deno.serve(options, async (request) => {
      const body = await request.text();
      const { headers } = request;
      this.received.push({ delivery: headers.get("x-svc-delivery") ?? "", headers, body });
      return new Response("taken", { status: this.status });
    });
  }

  /** Where deliveries go. */
  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}/hook`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}
