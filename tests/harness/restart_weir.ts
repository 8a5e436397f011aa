import type { CallLog } from "./call_log.ts";
import { freePort } from "./free_port.ts";
import { startWeir, type WeirProcess } from "./weir_process.ts";

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

/**
 * Weir at addresses that stay the same while its processes take turns: each starts beside the one before
 * it, which is asked to end when the new one is ready.
 */
export class RestartWeir implements AsyncDisposable {
  /** Where the metrics are fetched: `host:port`. */
  readonly pullAddress: string;
  readonly #env: Readonly<Record<string, string>>;
  #current: WeirProcess;

  /** Starts the first process, on TCP ports that all of them share. */
  static async start(env: Readonly<Record<string, string>>): Promise<RestartWeir> {
    const ports = {
      GRPC_PORT: String(freePort()),
      PORT: String(freePort()),
      DEBUG_PORT: String(freePort()),
      PULL_METRICS_ADDR: `127.0.0.1:${freePort()}`,
    };
    const all = { DISABLE_STATS: "false", USE_STATSD: "false", USE_PULL_METRICS: "true", ...ports, ...env };
    return new RestartWeir(await startWeir({ rules: RULES, env: all }), all);
  }

  private constructor(first: WeirProcess, env: Readonly<Record<string, string>>) {
    this.#current = first;
    this.#env = env;
    this.pullAddress = env.PULL_METRICS_ADDR ?? "";
  }

  /** The process that serves. */
  get current(): WeirProcess {
    return this.#current;
  }

  /** Puts a new process into the place of the one that serves; answers the exit code of the old one. */
  async restart(between: () => Promise<void> = () => Promise.resolve()): Promise<number> {
    const old = this.#current;
    this.#current = await startWeir({ rules: RULES, env: this.#env });
    try {
      await between();
      return await old.stop();
    } finally {
      await old[Symbol.asyncDispose]();
    }
  }

  /** Kills the process that serves. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#current[Symbol.asyncDispose]();
  }
}

/** Answers that are waited for while two processes serve, and after the old one has ended. */
const ANSWERS = 300;

/** Restarts that many times while calls are made; answers the exit codes of those that were asked to end. */
export async function restartUnderLoad(weir: RestartWeir, log: CallLog, restarts = 3): Promise<number[]> {
  const codes: number[] = [];
  await log.answers(ANSWERS);
  for (let restart = 0; restart < restarts; restart++) {
    codes.push(await weir.restart(() => log.answers(ANSWERS)));
    await log.answers(ANSWERS);
  }
  return codes;
}
