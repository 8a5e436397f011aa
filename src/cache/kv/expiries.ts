/** Most keys that are remembered; beyond it the window nearest its end is forgotten. */
const MAX_KEYS = 200_000;
/** Most characters of them: clients choose the length of a key. */
const MAX_CHARACTERS = 256 * MAX_KEYS;
/** Sweeps until a late expiry is set again: a replica that took over may have the counter alone. */
const SWEEPS_TO_CONFIRM = 5;
const MAX_UNCONFIRMED = 10_000;
/** Most expiries that are kept while they cannot be sent. */
const MAX_OWED = 100_000;

/** The expiry of a counter that was sent without one, or whose expiry may be lost. */
export interface LateExpiry {
  readonly key: string;
  readonly expiresInSeconds: number;
  readonly windowEnd: number;
  /** It was set once already. */
  readonly isSecond?: true;
}

/** Keys, and how many characters they have together. */
interface KnownKeys {
  readonly keys: Set<string>;
  characters: number;
}

/** The keys whose expiry is set in the cache, by the end of their window. A forgotten one is set again. */
export class KvExpiries {
  readonly #byEnd = new Map<number, KnownKeys>();
  #size = 0;
  #characters = 0;
  #generation = {};

  /** Replaced when something is forgotten: replies to what was written before prove nothing any more. */
  get generation(): object {
    return this.#generation;
  }

  /** True if an expiry at least as late is set for this key. */
  covers(key: string, windowEnd: number): boolean {
    if (this.#byEnd.get(windowEnd)?.keys.has(key) === true) return true;
    for (const [end, { keys }] of this.#byEnd) {
      if (end > windowEnd && keys.has(key)) return true;
    }
    return false;
  }

  remember(key: string, windowEnd: number): void {
    let known = this.#byEnd.get(windowEnd);
    if (known === undefined) this.#byEnd.set(windowEnd, known = { keys: new Set(), characters: 0 });
    if (known.keys.has(key)) return;
    known.keys.add(key);
    this.#count(known, 1, key.length);
    const isFull = this.#size > MAX_KEYS || this.#characters > MAX_CHARACTERS;
    if (isFull) this.#drop(Math.min(...this.#byEnd.keys()));
  }

  /** The counter is new, or may be. */
  forget(key: string): void {
    this.#generation = {};
    for (const known of this.#byEnd.values()) {
      if (known.keys.delete(key)) this.#count(known, -1, -key.length);
    }
  }

  /** Forgets the keys of windows that are over. */
  sweep(nowSeconds: number): void {
    for (const end of [...this.#byEnd.keys()]) {
      if (end <= nowSeconds) this.#drop(end);
    }
  }

  /** Forgets everything: the cache may have lost it. */
  clear(): void {
    this.#generation = {};
    this.#byEnd.clear();
    this.#size = 0;
    this.#characters = 0;
  }

  #count(known: KnownKeys, keys: number, characters: number): void {
    known.characters += characters;
    this.#size += keys;
    this.#characters += characters;
  }

  #drop(end: number): void {
    const known = this.#byEnd.get(end);
    if (known === undefined) return;
    this.#byEnd.delete(end);
    this.#count(known, -known.keys.size, -known.characters);
  }
}

/** Expiries that are still to be sent: without them their keys would stay for good. */
export class KvLateExpiries {
  /** For the next batch, by key. */
  readonly #owed = new Map<string, LateExpiry>();
  /** For the next sweep: the same node may refuse them again immediately. */
  readonly #refused: LateExpiry[] = [];
  /** By the sweeps until they are set once more. */
  readonly #unconfirmed: LateExpiry[][] = Array.from({ length: SWEEPS_TO_CONFIRM }, () => []);

  /** True if the next batch has some to take. */
  get isOwed(): boolean {
    return this.#owed.size > 0;
  }

  /** Keeps expiries for the next batch. */
  owe(late: readonly LateExpiry[]): void {
    for (const expiry of late) {
      const known = this.#owed.get(expiry.key);
      if (known === undefined ? this.#owed.size >= MAX_OWED : known.windowEnd >= expiry.windowEnd) continue;
      this.#owed.set(expiry.key, expiry);
    }
  }

  /** Takes up to this many for a batch. */
  takeOwed(limit = Infinity): LateExpiry[] {
    const taken: LateExpiry[] = [];
    for (const [key, expiry] of this.#owed) {
      if (taken.length >= limit) break;
      this.#owed.delete(key);
      taken.push(expiry);
    }
    return taken;
  }

  refuse(late: readonly LateExpiry[]): void {
    this.#refused.push(...late);
  }

  /** Keeps expiries that are set, to set them once more. */
  confirm(late: readonly LateExpiry[]): void {
    const waiting = this.#unconfirmed.reduce((sum, { length }) => sum + length, 0);
    this.#unconfirmed.at(-1)?.push(...late.slice(0, MAX_UNCONFIRMED - waiting));
  }

  /** Takes the expiries to send after a sweep; without a connection, also the unsent ones. */
  sweep(isConnected: boolean): LateExpiry[] {
    this.#refused.push(...this.#unconfirmed.shift() ?? []);
    this.#unconfirmed.push([]);
    return isConnected ? this.#refused.splice(0) : this.#takeUnsent();
  }

  takeAll(): LateExpiry[] {
    return [...this.#takeUnsent(), ...this.#unconfirmed.splice(0).flat()];
  }

  #takeUnsent(): LateExpiry[] {
    return [...this.#refused.splice(0), ...this.takeOwed()];
  }
}
