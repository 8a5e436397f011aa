import type { Clock } from "../../base/clock.ts";
import type { Ask } from "../hit_batch.ts";
import { KvBatch, type LateExpiry } from "./batch.ts";
import type { KvConnection } from "./connection.ts";
import { startSoon } from "../start_soon.ts";

/**
 * With so many batches under way a further one is held back, because few large ones cost the server and
 * this process less than many small ones (measured: a third more calls), unless it moves so many keys,
 * or for so long.
 */
const EAGER_BATCHES = 3;
const LARGE_BATCH_KEYS = 64;
const LONGEST_HOLD_MS = 5;
/** Most expiries that are kept while they cannot be sent, and most that go with one batch. */
const MAX_OWED = 100_000;
const OWED_PER_BATCH = 1_000;
/** Hits with ASKING are apart. */
const SLOTS = ["plain", "asking"] as const;
const SLOTS_REVERSED = ["asking", "plain"] as const;
type Slot = typeof SLOTS[number];

/** Hits that have gathered. */
export interface Gathered {
  readonly batch: KvBatch;
  /** When its first hit was asked for, in milliseconds. */
  readonly startedAt: number;
}

/** What hits gather for. */
export interface KvGatheringOptions {
  /** For how long hits gather before they are written, in milliseconds. */
  readonly windowMs: number;
  readonly clock: Clock;
  /** How many batches are under way. */
  readonly inFlight: () => number;
  /** Asked before the hits of callers begin to gather; answers why they may not. */
  readonly refusal: () => string | undefined;
  /** A connection to write on what began then; where none is free, `writeDue` is called when one is. */
  readonly take: (startedAt: number) => KvConnection | undefined;
  readonly write: (gathered: Gathered, connection: KvConnection) => void;
  /** There is nothing to write any more on a connection that was taken: nobody waits for it. */
  readonly unneeded: (connection: KvConnection) => void;
}

/** Hits that gather for the next write, or wait for a connection to be written on. */
interface Gathering extends Gathered {
  /** It has gathered for long enough. */
  due: boolean;
  /** It is not to be held back any longer. */
  urgent: boolean;
  /** Ends the timers that make it due, and urgent. */
  cancel: () => void;
  cancelHold: (() => void) | undefined;
}

/** What gathers for one node until it is written: what is asked for in one turn goes out in one batch. */
export class KvGathering {
  readonly #options: KvGatheringOptions;
  readonly #slots: Record<Slot, Gathering | undefined> = { plain: undefined, asking: undefined };
  /** Expiries that could not be sent yet, by their keys. */
  readonly #owed = new Map<string, LateExpiry>();

  constructor(options: KvGatheringOptions) {
    this.#options = options;
  }

  /** Takes the hits of a caller, or answers why they cannot be asked for. */
  add(ask: Ask, asking: boolean): string | undefined {
    const slot = asking ? "asking" : "plain";
    let gathering = this.#slots[slot];
    if (gathering === undefined) {
      const refusal = this.#options.refusal();
      if (refusal !== undefined) return refusal;
      gathering = this.#begin(slot);
    }
    gathering.batch.add(ask);
    if (gathering.due && gathering.batch.size >= LARGE_BATCH_KEYS) this.writeDue();
    return undefined;
  }

  /** Sends expiries that nobody waits for with the next batch. */
  addExpiries(expiries: readonly LateExpiry[]): void {
    if (expiries.length === 0) return;
    const { batch } = this.#slots.plain ?? this.#begin("plain");
    for (const expiry of expiries) batch.addExpiry(expiry);
  }

  /** Keeps expiries that could not be sent for the next batch: their keys would stay for good. */
  owe(late: readonly LateExpiry[]): void {
    for (const expiry of late) {
      const known = this.#owed.get(expiry.key);
      if (known === undefined ? this.#owed.size >= MAX_OWED : known.windowEnd >= expiry.windowEnd) continue;
      this.#owed.set(expiry.key, expiry);
    }
  }

  /** Sends what is owed although no caller asks for anything; the next batch takes it along anyway. */
  sendOwed(): void {
    if (this.#owed.size > 0 && this.#slots.plain === undefined) this.#begin("plain");
  }

  /** Takes what is owed, and no more than so many. */
  takeOwed(limit = Infinity): LateExpiry[] {
    const taken: LateExpiry[] = [];
    for (const [key, expiry] of this.#owed) {
      if (taken.length >= limit) break;
      this.#owed.delete(key);
      taken.push(expiry);
    }
    return taken;
  }

  /** Writes what has gathered for long enough, as far as connections are free. */
  writeDue(): void {
    const { plain, asking } = this.#slots;
    const isAskingFirst = asking !== undefined && plain !== undefined && asking.startedAt < plain.startedAt;
    for (const slot of isAskingFirst ? SLOTS_REVERSED : SLOTS) this.#writeFrom(slot);
  }

  /** Fails what gathers, or only what waits for a connection by now. */
  fail(reason: string, which: "all" | "due"): void {
    for (const slot of SLOTS) {
      const gathering = this.#slots[slot];
      if (gathering === undefined || (which === "due" && !gathering.due)) continue;
      this.#slots[slot] = undefined;
      gathering.cancel();
      gathering.cancelHold?.();
      this.owe(gathering.batch.late);
      gathering.batch.fail(reason);
    }
  }

  #begin(slot: Slot): Gathering {
    const { clock, windowMs } = this.#options;
    const batch = new KvBatch({ asking: slot === "asking" });
    const gathering: Gathering = {
      batch,
      startedAt: clock.now(),
      due: false,
      urgent: false,
      cancel: () => {},
      cancelHold: undefined,
    };
    gathering.cancel = startSoon(windowMs, clock, () => {
      gathering.due = true;
      this.#writeFrom(slot);
    });
    if (slot === "plain") {
      for (const expiry of this.takeOwed(OWED_PER_BATCH)) batch.addExpiry(expiry);
    }
    return this.#slots[slot] = gathering;
  }

  #writeFrom(slot: Slot): void {
    const gathering = this.#slots[slot];
    if (gathering?.due !== true || this.#isHeldBack(gathering, slot)) return;
    const { take, write, unneeded } = this.#options;
    const connection = take(gathering.startedAt);
    if (connection === undefined) return;
    gathering.batch.dropGone();
    this.#slots[slot] = undefined;
    gathering.cancelHold?.();
    if (gathering.batch.empty) unneeded(connection);
    else write(gathering, connection);
  }

  #isHeldBack(gathering: Gathering, slot: Slot): boolean {
    const { clock, inFlight } = this.#options;
    if (gathering.urgent || inFlight() < EAGER_BATCHES) return false;
    if (gathering.batch.size >= LARGE_BATCH_KEYS) return false;
    gathering.cancelHold ??= clock.after(LONGEST_HOLD_MS, () => {
      gathering.urgent = true;
      this.#writeFrom(slot);
    });
    return true;
  }
}
