import type { DecidingWorkerHandle, FromDecidingWorker } from "../../src/serve/workers/message.ts";
import { decide, GrpcClient } from "./grpc_client.ts";
import type { FaultMessage } from "./killed_deciding_worker.ts";
import type { ServeFixture } from "./serve_fixture.ts";
import { until } from "./until.ts";

const CALLS = "ratelimit_server.ShouldRateLimit.total_requests";
const TLS_RELOADS = "ratelimit.process.grpc_tls_reloaded";
/** More connections than a fair kernel gives to one of a few listeners. */
const MAX_CLIENTS = 200;

/** A thread that decides, which a test watches and ends. */
class WatchedWorker {
  /** Decisions, by its last report. */
  calls = 0;
  /** Certificates that it has taken over, by its last report. */
  tlsReloads = 0;
  /** The number of its rules. */
  rules = 0;
  isListening = false;
  /** Hits that the main thread counted for it. */
  asked = 0;
  readonly handle: DecidingWorkerHandle;
  readonly #worker: Worker;
  #metrics: readonly { readonly fullName: string }[] = [];

  constructor() {
    this.#worker = new Worker(new URL("./killed_deciding_worker.ts", import.meta.url), { type: "module" });
    this.#worker.addEventListener("message", ({ data }) => this.#note(data));
    this.handle = this.#worker;
  }

  /** Tells it what no main thread does. */
  tell(message: FaultMessage): void {
    this.#worker.postMessage(message);
  }

  #note(message: FromDecidingWorker): void {
    if (message.type === "applied") this.rules = message.rules;
    if (message.type === "listening") this.isListening = true;
    if (message.type === "count") this.asked += message.request.keys.length;
    if (message.type !== "report") return;
    const { metrics, values } = message.report.stats;
    this.#metrics = metrics ?? this.#metrics;
    const value = (name: string) => values[this.#metrics.findIndex(({ fullName }) => fullName === name)] ?? 0;
    this.calls = value(CALLS);
    this.tlsReloads = value(TLS_RELOADS);
  }
}

/** The threads that decide in one service, in the order in which they were started. */
export class WatchedWorkers {
  readonly all: WatchedWorker[] = [];
  /** No further thread can be started. */
  isBlocked = false;

  /** Starts one. */
  readonly create = (): DecidingWorkerHandle => {
    if (this.isBlocked) throw new Error("the test blocks new workers");
    const worker = new WatchedWorker();
    this.all.push(worker);
    return worker.handle;
  };

  /** Opens clients until each of these threads has one; every client has made one call with this descriptor. */
  async clients(
    service: ServeFixture,
    workers: readonly WatchedWorker[],
    descriptor: string,
  ): Promise<Clients> {
    await until("all of them to listen", () => workers.every(({ isListening }) => isListening));
    const clients = new Clients();
    while (clients.all.length < MAX_CLIENTS) {
      const client = new GrpcClient(service.grpcAddress, { "grpc.use_local_subchannel_pool": 1 });
      clients.all.push(client);
      await decide(client, "shop", descriptor);
      // Asks every thread for a report.
      await service.stats();
      if (workers.every(({ calls }) => calls > 0)) return clients;
    }
    clients[Symbol.dispose]();
    throw new Error(`Cannot reach every worker by ${MAX_CLIENTS} connections`);
  }
}

/** Clients with one connection each. */
class Clients implements Disposable {
  readonly all: GrpcClient[] = [];

  /** Calls by the clients in turns, concurrently; answers their codes. */
  async codes(calls: number, descriptor: string): Promise<number[]> {
    const answers = await Promise.all(Array.from({ length: calls }, (_, call) => {
      const client = this.all[call % this.all.length];
      return client === undefined ? undefined : decide(client, "shop", descriptor);
    }));
    return answers.map((answer) => answer !== undefined && "overallCode" in answer ? answer.overallCode : 0);
  }

  [Symbol.dispose](): void {
    for (const client of this.all) client[Symbol.dispose]();
  }
}
