import type {
  DecidingWorkerHandle,
  FromDecidingWorker,
  ToDecidingWorker,
} from "../../src/serve/workers/message.ts";
import { decide, GrpcClient } from "./grpc_client.ts";
import type { FaultMessage } from "./killed_deciding_worker.ts";
import type { ServeFixture } from "./serve_fixture.ts";
import { until } from "./until.ts";

const CALLS = "ratelimit_server.ShouldRateLimit.total_requests";
/** More connections than a fair kernel gives to one of a few listeners. */
const MAX_CLIENTS = 200;

/** A thread that decides, which a test watches and ends. */
class WatchedWorker {
  /** Decisions, by its last report. */
  calls = 0;
  /** The number of times that it has applied rules. */
  rules = 0;
  isListening = false;
  readonly handle: DecidingWorkerHandle;
  readonly #worker: Worker;
  /** Commands without an answer. */
  readonly #asked = new Map<number, ToDecidingWorker["type"]>();

  constructor() {
    this.#worker = new Worker(new URL("./killed_deciding_worker.ts", import.meta.url), { type: "module" });
    this.#worker.addEventListener("message", ({ data }) => this.#note(data));
    const worker: DecidingWorkerHandle = this.#worker;
    this.handle = worker;
    const post = worker.postMessage.bind(worker);
    worker.postMessage = (message: ToDecidingWorker) => {
      if (message.type !== "stop" && message.type !== "exported") this.#asked.set(message.id, message.type);
      post(message);
    };
  }

  /** Tells it what no main thread does. */
  tell(message: FaultMessage): void {
    this.#worker.postMessage(message);
  }

  #note(message: FromDecidingWorker): void {
    if (message.type === "done") {
      const done = this.#asked.get(message.id);
      if (done === "apply") this.rules++;
      if (done === "listen") this.isListening = true;
    }
    if (message.type !== "report") return;
    this.calls += message.report.stats.counters.get(CALLS) ?? 0;
  }
}

/** The threads that decide in one service in addition to its main one, in the order in which they were started. */
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

  /** Opens clients until each thread has one; every client has made one call with this descriptor. */
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
      const { [CALLS]: decided = 0 } = await service.stats();
      const byOthers = this.all.reduce((sum, { calls }) => sum + calls, 0);
      if (decided > byOthers && workers.every(({ calls }) => calls > 0)) return clients;
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
