import type { Clock } from "../base/clock.ts";
import { atTurnEnd, TurnTask } from "../base/turn.ts";
import type { Taken } from "../ratelimit/algorithms/taken.ts";
import type { Caller, ConditionalHit, CounterCache, CountReceiver, Hit } from "../ratelimit/counter_cache.ts";
import { CacheError } from "../ratelimit/errors.ts";
import { InFlight, type InFlightRequest } from "./in_flight.ts";

/** Hits for the thread that counts. */
export interface CountRequest {
  readonly id: number;
  readonly keys: readonly string[];
  /** For each key its addend, which is NaN to read it and -Infinity to remove it, and the end of its window. */
  readonly numbers: Float64Array;
  readonly conditional: readonly ConditionalHit[];
}

/** The counts after the hits of a request. */
export interface CountReply {
  readonly id: number;
  readonly counts: Float64Array;
  /** What became of the conditional hits. */
  readonly taken: readonly Taken[];
}

/** In place of an addend: the counter is removed. */
const REMOVED = -Infinity;

/** How a thread asks the one that counts. */
export interface CountingClientOptions {
  readonly post: (request: CountRequest) => void;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Counters in the memory of a thread. */
export interface LocalCounters {
  add(hits: readonly Hit[]): number[];
  read(hits: readonly Hit[]): number[];
  take(hits: readonly ConditionalHit[]): Taken[];
  /** Removes the keys before it returns. */
  remove(keys: readonly string[]): Promise<void>;
}

/** Hits of one call. */
class HitGroup<Answer = number> {
  readonly size: number;
  readonly counted: (answers: Answer[]) => void;
  readonly failed: (error: unknown) => void;

  constructor(size: number, counted: (answers: Answer[]) => void, failed: (error: unknown) => void) {
    this.size = size;
    this.counted = counted;
    this.failed = failed;
  }
}

/** By key; undefined for further keys of a group. */
type Receivers = readonly (CountReceiver | HitGroup | undefined)[];

interface Gathered {
  readonly startedAt: number;
  readonly keys: string[];
  readonly numbers: number[];
  readonly receivers: (CountReceiver | HitGroup | undefined)[];
  readonly conditional: ConditionalHit[];
  readonly takers: HitGroup<Taken>[];
}

type Waiting = Pick<SentRequest, "receivers" | "takers">;

interface SentRequest extends InFlightRequest {
  readonly id: number;
  readonly receivers: Receivers;
  readonly takers: readonly HitGroup<Taken>[];
}

/**
 * The counters of another thread of this process. The hits of one turn of the event loop are one message, because a
 * message costs more than a hit.
 */
export class CountingClient implements CounterCache {
  readonly #options: CountingClientOptions;
  readonly #inFlight: InFlight<SentRequest>;
  readonly #sent = new Map<number, SentRequest>();
  readonly #turn = new TurnTask(() => this.#send(), atTurnEnd);
  #gathered: Gathered | undefined;
  #lastId = 0;

  constructor(options: CountingClientOptions) {
    const { timeoutMs, clock } = options;
    this.#options = options;
    this.#inFlight = new InFlight({ timeoutMs, clock, onTimeout: (requests) => this.#timeOut(requests) });
  }

  add(hits: readonly Hit[], _caller?: Caller): Promise<number[]> {
    return this.#ask(hits, ({ addend }) => addend);
  }

  read(hits: readonly Hit[], _caller?: Caller): Promise<number[]> {
    return this.#ask(hits, () => NaN);
  }

  take(hits: readonly ConditionalHit[], _caller?: Caller): Promise<Taken[]> {
    if (hits.length === 0) return Promise.resolve([]);
    const { conditional, takers } = this.#gathered ?? this.#gather();
    const { promise, resolve, reject } = Promise.withResolvers<Taken[]>();
    conditional.push(...hits);
    takers.push(new HitGroup(hits.length, resolve, reject));
    return promise;
  }

  async remove(keys: readonly string[]): Promise<void> {
    await this.#ask(keys.map((key) => ({ key, windowEnd: 0 })), () => REMOVED);
  }

  addOne({ key, addend, windowEnd }: Hit, _caller: Caller | undefined, receiver: CountReceiver): void {
    const { keys, numbers, receivers } = this.#gathered ?? this.#gather();
    keys.push(key);
    numbers.push(addend, windowEnd);
    receivers.push(receiver);
  }

  /** Handles the reply to a request; one that comes too late is ignored. */
  settle({ id, counts, taken }: CountReply): void {
    const request = this.#sent.get(id);
    if (request === undefined) return;
    this.#sent.delete(id);
    this.#inFlight.delete(request);
    for (const [index, receiver] of request.receivers.entries()) {
      if (receiver instanceof HitGroup) receiver.counted([...counts.subarray(index, index + receiver.size)]);
      else receiver?.counted(counts[index] ?? 0);
    }
    let start = 0;
    for (const { size, counted } of request.takers) counted(taken.slice(start, start += size));
  }

  close(): Promise<void> {
    const unsent = this.#gathered === undefined ? [] : [this.#gathered];
    this.#gathered = undefined;
    this.#fail([...this.#inFlight.takeAll(), ...unsent], "the cache is closed");
    this.#sent.clear();
    return Promise.resolve();
  }

  #ask<H extends Pick<Hit, "key" | "windowEnd">>(
    hits: readonly H[],
    addendOf: (hit: H) => number,
  ): Promise<number[]> {
    if (hits.length === 0) return Promise.resolve([]);
    const { keys, numbers, receivers } = this.#gathered ?? this.#gather();
    const { promise, resolve, reject } = Promise.withResolvers<number[]>();
    for (const [position, hit] of hits.entries()) {
      keys.push(hit.key);
      numbers.push(addendOf(hit), hit.windowEnd);
      receivers.push(position === 0 ? new HitGroup(hits.length, resolve, reject) : undefined);
    }
    return promise;
  }

  #gather(): Gathered {
    this.#turn.request();
    return this.#gathered = {
      startedAt: this.#options.clock.elapsed(),
      ...{ keys: [], numbers: [], receivers: [], conditional: [], takers: [] },
    };
  }

  #send(): void {
    if (this.#gathered === undefined) return;
    const { keys, numbers, receivers, conditional, takers, startedAt } = this.#gathered;
    this.#gathered = undefined;
    const id = ++this.#lastId;
    const request = { id, receivers, takers, startedAt, connection: undefined };
    this.#sent.set(id, request);
    this.#inFlight.add(request);
    this.#options.post({ id, keys, numbers: Float64Array.from(numbers), conditional });
  }

  #timeOut(requests: readonly SentRequest[]): void {
    for (const { id } of requests) this.#sent.delete(id);
    this.#fail(requests, `no answer within ${this.#options.timeoutMs} ms`);
  }

  #fail(requests: readonly Waiting[], reason: string): void {
    const error = new CacheError("memory", `Cannot count in the main thread: ${reason}`);
    for (const { receivers, takers } of requests) {
      for (const receiver of [...receivers, ...takers]) receiver?.failed(error);
    }
  }
}

/** Answers a request by the counters of this thread. */
export function countHits(
  { id, keys, numbers, conditional }: CountRequest,
  counters: LocalCounters,
): CountReply {
  const counts = new Float64Array(keys.length);
  for (const [index, key] of keys.entries()) {
    const addend = numbers[2 * index] ?? 0;
    if (addend === REMOVED) {
      void counters.remove([key]);
      continue;
    }
    const windowEnd = numbers[2 * index + 1] ?? 0;
    const hits = [{ key, addend, windowEnd, expiresInSeconds: 0, perSecond: false }];
    const [count] = Number.isNaN(addend) ? counters.read(hits) : counters.add(hits);
    counts[index] = count ?? 0;
  }
  return { id, counts, taken: counters.take(conditional) };
}
