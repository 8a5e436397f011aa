import { LoadConnection } from "../../src/load/load_connection.ts";
import type { CallRecord } from "../../src/load/load_record.ts";
import { RATE_LIMIT_PATH } from "../../src/wire/rls.ts";
import { messageCheck } from "../harness/bench_answer.ts";
import { benchCalls } from "../harness/bench_rules.ts";
import { RULES } from "../harness/bench_rules.ts";
import { FLOOD_KINDS, type FloodKind } from "../harness/h2_floods.ts";
import { percentile } from "../harness/percentile.ts";
import { seededRandom } from "../harness/seeded_random.ts";
import { startWeir } from "../harness/weir_process.ts";
import type { Flooded, FloodOrder } from "./flood_worker.ts";
import { bySize, SOAK_SEED } from "./soak_options.ts";
import { assertEquals } from "#assert";
import { setTimeout as sleep } from "node:timers/promises";

/** Calls a second of the connection that must not notice the floods. */
const RATE = 500;
const TICK_MS = 4;
const IN_FLIGHT = 1_024;
const FLOODS = bySize({ short: 4, full: 100 });
/** The longest time of a flood, and the time that calls are measured without one. */
const SECONDS = bySize({ short: 1, full: 3 });
const WARM_UP_SECONDS = bySize({ short: 1, full: 3 });
/** The p99 of calls during a flood may be this many times that without, plus what a busy machine may add. */
const MAX_RATIO = 3;
const SLACK_MS = 50;
/** A flood counts as noticed when it is noticed each time: other programs take the processor away too. */
const ATTEMPTS = 3;

Deno.test("floods: a connection that floods is closed, or calls on another connection stay fast", async () => {
  await using weir = await startWeir({
    rules: { "bench.yaml": RULES },
    env: { BACKEND_TYPE: "memory", LOG_LEVEL: "warning", DISABLE_STATS: "true" },
  });
  const run = new FloodRun(Number(weir.grpcAddress.split(":").at(-1)));
  const noticed: string[] = [];
  await run.quiet(WARM_UP_SECONDS);
  for (let count = 0; count < FLOODS; count++) {
    const text = await noticedFlood(run, SOAK_SEED + count);
    if (text !== undefined) noticed.push(text);
  }
  assertEquals({ lost: await run.end(), noticed }, { lost: [], noticed: [] });
  assertEquals(await weir.stop(), 0);
});

/** Says how calls on another connection suffered from a flood; undefined when they did not, or it was closed. */
async function noticedFlood(run: FloodRun, seed: number): Promise<string | undefined> {
  let text = "";
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const { kinds, wasClosed, frames, p99Ms } = await run.flood(seed, SECONDS);
    if (wasClosed) return undefined;
    const quietMs = await run.quiet(SECONDS);
    if (p99Ms <= MAX_RATIO * quietMs + SLACK_MS) return undefined;
    text = `${kinds.join(", ")}: not closed after ${frames} frames, ` +
      `p99 ${p99Ms.toFixed(1)} ms, ${quietMs.toFixed(1)} ms after it`;
  }
  return text;
}

/** The facts of one flood. */
interface FloodFacts extends Flooded {
  readonly kinds: readonly FloodKind[];
  /** Of the calls on another connection meanwhile. */
  readonly p99Ms: number;
}

/** Floods one after the other, and how calls on another connection fare meanwhile. */
class FloodRun {
  readonly #port: number;
  readonly #record = new TimesRecord();
  readonly #stop = new AbortController();
  readonly #calls: Promise<void>;
  /** Floods from its own thread, because calls are measured in this one. */
  readonly #worker = new Worker(new URL("./flood_worker.ts", import.meta.url), { type: "module" });

  /** Begins to make calls on the gRPC listener of a Weir that has the rules of the bench. */
  constructor(port: number) {
    this.#port = port;
    this.#calls = this.#makeCalls();
  }

  /** The p99 of calls over the next seconds, without a flood. */
  async quiet(seconds: number): Promise<number> {
    this.#record.take();
    await sleep(seconds * 1_000);
    return this.#record.take();
  }

  /** Floods a new connection until the server closes it or the time is up. */
  async flood(seed: number, seconds: number): Promise<FloodFacts> {
    const kinds = pickKinds(seededRandom(seed));
    this.#record.take();
    const flood = await new Promise<Flooded>((resolve, reject) => {
      this.#worker.onmessage = ({ data }: MessageEvent<Flooded>) => resolve(data);
      this.#worker.onerror = (event) => reject(new Error(`Cannot flood: ${event.message}`));
      const order: FloodOrder = { port: this.#port, kinds, seed, seconds };
      this.#worker.postMessage(order);
    });
    return { kinds, ...flood, p99Ms: this.#record.take() };
  }

  /** Ends the calls; answers what went wrong with them. */
  async end(): Promise<readonly string[]> {
    this.#stop.abort();
    this.#worker.terminate();
    await this.#calls;
    return this.#record.problems;
  }

  async #makeCalls(): Promise<void> {
    const begin = performance.now();
    const source = benchCalls({ load: "keys", keys: 1_000, batch: 1, stride: 1 });
    const deadline = new AbortController();
    const connection = new LoadConnection({
      peer: { address: { host: "127.0.0.1", port: this.#port } },
      path: RATE_LIMIT_PATH,
      inFlight: IN_FLIGHT,
      record: this.#record,
      deadline: deadline.signal,
      checkMessage: messageCheck({ code: "OK", descriptors: 1 }),
    });
    await connection.ready;
    for (; !this.#stop.signal.aborted; await sleep(TICK_MS)) {
      const now = performance.now();
      const due = Math.floor((now - begin) * RATE / 1_000);
      while (source.taken < due) connection.offer(source.next(), now);
    }
    connection.finish();
    const timer = setTimeout(() => deadline.abort(), 10_000);
    await connection.closed;
    clearTimeout(timer);
  }
}

/** One kind half of the time, otherwise a mix. */
function pickKinds(random: () => number): FloodKind[] {
  const one = FLOOD_KINDS[Math.floor(random() * FLOOD_KINDS.length)];
  const mix = FLOOD_KINDS.filter(() => random() < 0.4);
  return one === undefined || (random() < 0.5 && mix.length > 0) ? mix : [one];
}

/** Keeps the times of calls, and what went wrong. */
class TimesRecord implements CallRecord {
  readonly problems: string[] = [];
  #times: number[] = [];

  begin(): void {
    // A call is counted when it is answered.
  }

  goodAnswer(start: number, end: number): void {
    this.#times.push(end - start);
  }

  badAnswer(statuses: string): void {
    this.error(statuses);
  }

  lost(text: string, calls: number): void {
    if (calls > 0) this.error(`${calls} calls lost: ${text}`);
  }

  error(text: string): void {
    if (this.problems.length < 20) this.problems.push(text);
  }

  /** The p99 since the last time. */
  take(): number {
    const times = this.#times.sort((a, b) => a - b);
    this.#times = [];
    return percentile(times, 99);
  }
}
