import { assertEquals } from "@std/assert";
import { freePort } from "./free_port.ts";
import type { RestartLoad } from "./restart_load.ts";
import { ServeFixture } from "./serve_fixture.ts";
import { startWeir } from "./weir_process.ts";

/** Rules of the processes that take turns: limits that no test reaches. */
const RULES = {
  "shop.yaml": `domain: shop
descriptors:
- key: user
  rate_limit: { unit: day, requests_per_unit: 1000000000 }
- key: path
  rate_limit: { unit: day, requests_per_unit: 1000000000 }
`,
};

/** How each service runs: in this process, where its end is all but that of a process, or as a process. */
const STARTS = { here: ServeFixture.start, process: startWeir } as const;

type Service = Awaited<ReturnType<typeof STARTS[keyof typeof STARTS]>>;

/**
 * Weir at addresses that stay the same while its services take turns: each starts while the one before it
 * serves, which is asked to end when the new one is ready.
 */
export class RestartWeir implements AsyncDisposable {
  /** Where the metrics are fetched: `host:port`. */
  readonly pullAddress: string;
  readonly #start: () => Promise<Service>;
  #current: Service;

  /** Starts the first service, on TCP ports that all of them share. */
  static async start(
    env: Readonly<Record<string, string>>,
    where: keyof typeof STARTS = "here",
  ): Promise<RestartWeir> {
    const pullAddress = `127.0.0.1:${freePort()}`;
    const ports = {
      GRPC_PORT: String(freePort()),
      PORT: String(freePort()),
      DEBUG_PORT: String(freePort()),
      PULL_METRICS_ADDR: pullAddress,
    };
    const all = { DISABLE_STATS: "false", USE_STATSD: "false", USE_PULL_METRICS: "true", ...ports, ...env };
    const start = () => STARTS[where]({ rules: RULES, env: all });
    return new RestartWeir(await start(), start, pullAddress);
  }

  private constructor(first: Service, start: () => Promise<Service>, pullAddress: string) {
    this.#current = first;
    this.#start = start;
    this.pullAddress = pullAddress;
  }

  /** The service that serves. */
  get current(): Service {
    return this.#current;
  }

  /** Puts a new service into the place of the one that serves. */
  async restart(between: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    const old = this.#current;
    this.#current = await this.#start();
    try {
      await between();
      await this.#stop(old);
    } finally {
      await old[Symbol.asyncDispose]();
    }
  }

  /** Asks the service that serves to end, as the last one. */
  async [Symbol.asyncDispose](): Promise<void> {
    await using _last = this.#current;
    await this.#stop(this.#current);
  }

  async #stop(service: Service): Promise<void> {
    const code = await service.stop() ?? 0;
    if (code !== 0) throw new Error(`Cannot restart Weir: it ended with code ${code}`);
  }
}

/** Answers that are waited for while two services serve, and after the old one has ended. */
const ANSWERS = 150;

/** Restarts once while calls are made, and ends them; none may fail. */
export async function restartUnderLoad(weir: RestartWeir, load: RestartLoad): Promise<void> {
  {
    await using _ends = load;
    await load.answers(ANSWERS);
    await weir.restart(() => load.answers(ANSWERS));
    await load.answers(ANSWERS);
  }
  assertEquals(load.failures, [], String(load));
}
