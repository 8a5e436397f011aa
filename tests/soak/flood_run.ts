import { setTimeout as sleep } from "node:timers/promises";
import { FLOOD_KINDS, type FloodKind } from "../harness/h2_floods.ts";
import { seededRandom } from "../harness/seeded_random.ts";
import { bodyCheck } from "../harness/bench_answer.ts";
import { benchCalls } from "../harness/bench_rules.ts";
import { percentile } from "../harness/percentile.ts";
import { LoadConnection } from "../../src/load/load_connection.ts";
import type { CallRecord } from "../../src/load/load_record.ts";
import { RATE_LIMIT_PATH } from "../../src/load/rate_limit_message.ts";
import type { Flooded, FloodOrder } from "./flood_worker.ts";

/** Calls a second of the connection that must not notice the floods. */
const RATE = 500;
const TICK_MS = 4;
const IN_FLIGHT = 1_024;

/** What one flood did. */
export interface FloodFacts extends Flooded {
  readonly kinds: readonly FloodKind[];
  /** Of the calls on another connection meanwhile. */
  readonly p99Ms: number;
}

/** Floods one after the other, and how calls on another connection fare meanwhile. */
export class FloodRun {
  readonly #port: number;
  readonly #record = new TimesRecord();
  readonly #stop = new AbortController();
  readonly #calls: Promise<void>;
  /** Floods from a thread of its own, because calls are measured in this one. */
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
      ...{ path: RATE_LIMIT_PATH, inFlight: IN_FLIGHT, record: this.#record, deadline: deadline.signal },
      checkBody: bodyCheck({ code: "OK", descriptors: 1 }),
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
