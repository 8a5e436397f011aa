import { ChildProcess } from "../../tests/harness/child_process.ts";
import { until } from "../../tests/harness/until.ts";
import type { WeirProcess } from "../../tests/harness/weir_process.ts";
import { portOf, startBenchWeir } from "./target.ts";
import type { Received } from "./webhook_receiver.ts";

const TOKEN = "the-token-of-the-administration-of-the-bench";
const WORKFLOW = `workflow: bench\nsteps:\n  - name: result\n    set: { id: "{{ input.id }}" }\n`;
/** Time that a step of the bench may take. */
const WAIT_MS = 60_000;
const LOOK_MS = 20;

/** Options of a webhook bench. */
interface WebhookBenchOptions {
  /** For files; it exists. */
  readonly folder: string;
  readonly engine: string;
  /** Settings that name its store; a file in the folder when absent. */
  readonly store?: Readonly<Record<string, string>> | undefined;
  /** Number of processes that share the store; one when absent. */
  readonly instances?: number | undefined;
}

/** Processes that serve webhooks and decisions, and a receiver in another one. */
export class WebhookBench implements AsyncDisposable {
  /** Of the first process. */
  readonly grpcPort: number;
  readonly #urls: readonly string[];
  readonly #receiverUrl: string;
  readonly #owned: AsyncDisposableStack;
  #turn = 0;

  private constructor(
    owned: AsyncDisposableStack,
    places: { readonly http: readonly string[]; readonly grpc: string; readonly receiver: string },
  ) {
    this.#owned = owned;
    this.grpcPort = portOf(places.grpc);
    this.#urls = places.http;
    this.#receiverUrl = `http://127.0.0.1:${places.receiver}`;
  }

  /** Starts them all. */
  static async start(options: WebhookBenchOptions): Promise<WebhookBench> {
    const { folder, instances = 1 } = options;
    const owned = new AsyncDisposableStack();
    try {
      const script = new URL("webhook_receiver.ts", import.meta.url).pathname;
      const receiver = owned.use(new ChildProcess(Deno.execPath(), { args: ["run", "-A", script] }));
      const { port } = await receiver.find({ port: /^port (\d+)$/ });
      await Deno.mkdir(`${folder}/workflows`, { recursive: true });
      await Deno.writeTextFile(`${folder}/workflows/bench.yaml`, WORKFLOW);
      const started: WeirProcess[] = [];
      for (let number = 1; number <= instances; number++) started.push(owned.use(await startOne(options)));
      await Promise.all(started.map((weir) => weir.listening(["HTTP", "gRPC"])));
      const http = started.map(({ httpAddress }) => `http://${httpAddress}`);
      // The ports are open before the store is.
      for (const url of http) await until("the webhook service", () => isOpen(url));
      return new WebhookBench(owned, { http, grpc: started[0]?.grpcAddress ?? "", receiver: port });
    } catch (error) {
      await owned.disposeAsync();
      throw error;
    }
  }

  /** URLs of the receiver. */
  receiverUrls(count: number): string[] {
    return Array.from({ length: count }, (_, index) => `${this.#receiverUrl}/endpoint-${index}`);
  }

  /** An endpoint for each URL, for all kinds of events. */
  async addEndpoints(urls: readonly string[]): Promise<void> {
    for (const url of urls) await this.#call("POST", "/endpoints", { url, events: ["bench.happened"] });
  }

  /** A trigger; answers its key. */
  async addTrigger(name: string): Promise<string> {
    return String((await this.#call("POST", "/triggers", { name, workflow: "bench" })).key);
  }

  /** Starts an execution; throws unless it was accepted. */
  async trigger(name: string, key: string, idempotencyKey: string): Promise<void> {
    const response = await fetch(`${this.#nextUrl()}/api/v1/workflows/triggers/${name}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${key}`,
        "content-type": "application/json",
        "idempotency-key": idempotencyKey,
      },
      body: `{"id":"${idempotencyKey}","customer":"c-1"}`,
    });
    const { executionId } = await response.json();
    if (response.status === 202 && typeof executionId === "string") return;
    throw new Error(`Cannot trust bench of triggers: HTTP ${response.status}`);
  }

  /** Posts an event; answers how many deliveries it makes. */
  async event(): Promise<number> {
    const body = { event: "bench.happened", data: { id: crypto.randomUUID(), text: "x".repeat(100) } };
    return Number((await this.#call("POST", "/events", body)).deliveries);
  }

  /** The counts of the receiver once it has received so many; throws after a timeout. */
  async received(count: number, signal: AbortSignal): Promise<Received> {
    const begin = performance.now();
    for (;;) {
      signal.throwIfAborted();
      const received: Received = await (await fetch(this.#receiverUrl)).json();
      if (received.count >= count) return received;
      if (performance.now() - begin > WAIT_MS) {
        throw new Error(`Cannot trust bench of deliveries: ${received.count} of ${count} arrived`);
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }

  /** Lets the receiver count from 0. */
  async forget(): Promise<void> {
    await fetch(this.#receiverUrl, { method: "DELETE" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }

  /** The processes are asked in turn. */
  #nextUrl(): string {
    return this.#urls[this.#turn++ % this.#urls.length] ?? "";
  }

  async #call(method: string, path: string, body: unknown): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.#nextUrl()}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) {
      throw new Error(`Cannot bench webhooks: ${method} ${path}: HTTP ${response.status} ${text}`);
    }
    return JSON.parse(text);
  }
}

/**
 * The file of a store in a folder, apart from the rules: a watcher of these opens and closes files next to them,
 * and with that a process loses its locks on a database there.
 */
export function storeFile(folder: string): string {
  return `${folder}/data/weir.db`;
}

async function isOpen(url: string): Promise<boolean> {
  const headers = { authorization: `Bearer ${TOKEN}` };
  const response = await fetch(`${url}/api/v1/triggers?limit=1`, { headers });
  await response.body?.cancel();
  return response.ok;
}

function startOne({ folder, engine, store }: WebhookBenchOptions): Promise<WeirProcess> {
  return startBenchWeir({
    BACKEND_TYPE: "memory",
    GRPC_ENGINE: engine,
    ADMIN_TOKEN: TOKEN,
    ...(store ?? { WEBHOOK_STORE: storeFile(folder) }),
    WORKFLOW_DIRECTORY: `${folder}/workflows`,
    WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
  });
}
