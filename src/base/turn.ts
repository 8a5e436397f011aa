import { clearImmediate, setImmediate } from "node:timers";
import type { Clock } from "./clock.ts";

/** Calls `run` later, and returns a function that cancels it. */
export type Defer = (run: () => void) => () => void;

/** A platform timer takes at least this long; a turn of the event loop takes some microseconds. */
const SHORTEST_TIMER_MS = 2;

/** At the end of the current task: before anything else happens. */
function atTaskEnd(run: () => void): () => void {
  let isCancelled = false;
  queueMicrotask(() => {
    if (!isCancelled) run();
  });
  return () => isCancelled = true;
}

/** At the end of the turn of the event loop: after everything that has arrived by then, messages included. */
export function atTurnEnd(run: () => void): () => void {
  const immediate = setImmediate(run);
  return () => clearImmediate(immediate);
}

/** After a delay: at the end of the task for 0, and turn by turn where it is too short for a timer. */
export function afterDelay(delayMs: number, clock: Clock): Defer {
  if (delayMs <= 0) return atTaskEnd;
  if (delayMs >= SHORTEST_TIMER_MS) return (run) => clock.after(delayMs, run);
  return (run) => {
    const dueAt = clock.elapsed() + delayMs;
    const look = () => {
      if (clock.elapsed() >= dueAt) run();
      else cancel = atTurnEnd(look);
    };
    let cancel = atTurnEnd(look);
    return () => cancel();
  };
}

/** Work that runs once, later, however often it is requested until then. */
export class TurnTask {
  readonly #run: () => void;
  readonly #defer: Defer;
  #cancel: (() => void) | undefined;

  constructor(run: () => void, defer: Defer = atTaskEnd) {
    this.#run = run;
    this.#defer = defer;
  }

  request(): void {
    this.#cancel ??= this.#defer(() => {
      this.#cancel = undefined;
      this.#run();
    });
  }

  cancel(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}

/** Options of a batch. */
interface TurnBatchOptions {
  /** When the items of a batch are sent; at the end of the task when absent. */
  readonly defer?: Defer;
  /** Most items of a batch; the others are sent with the next one. */
  readonly maxItems?: number;
}

/** Gathers the items of a turn and sends them together: a message, a write or a commit costs more than its items. */
export class TurnBatch<T> {
  readonly #send: (items: readonly T[]) => void;
  readonly #maxItems: number;
  readonly #task: TurnTask;
  #items: T[] = [];

  constructor(send: (items: readonly T[]) => void, { defer, maxItems = Infinity }: TurnBatchOptions = {}) {
    this.#send = send;
    this.#maxItems = maxItems;
    this.#task = new TurnTask(() => this.flush(), defer);
  }

  /** The number of items that wait. */
  get size(): number {
    return this.#items.length;
  }

  add(item: T): void {
    this.#items.push(item);
    this.#task.request();
  }

  /** Sends one batch now. */
  flush(): void {
    const items = this.#items;
    if (items.length === 0) return;
    this.#items = items.splice(this.#maxItems);
    if (this.#items.length > 0) this.#task.request();
    else this.#task.cancel();
    this.#send(items);
  }

  /** Forgets the unsent items. */
  drop(): void {
    this.#items = [];
    this.#task.cancel();
  }
}

/** Values that the calls of one task share. */
export class TurnMemo<Key, Value> {
  readonly #values = new Map<Key, Value>();
  readonly #end = new TurnTask(() => this.#values.clear());

  /** The value of a key, created for the first call of the task. */
  get(key: Key, create: () => Value): Value {
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    const value = create();
    this.#values.set(key, value);
    this.#end.request();
    return value;
  }
}
