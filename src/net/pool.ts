import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";

/** A connection that a pool holds. It notifies the pool once when it can no longer be used. */
export interface PooledConnection {
  close(reason: string): void;
}

/** Rules by which a pool opens and lends connections. */
interface PoolPolicy {
  /** Opened without being asked for: the first one immediately, the others once it is open. */
  readonly minSize: number;
  readonly maxSize: number;
  /** A connection has several users at a time, and the one with the fewest is taken; otherwise it has one. */
  readonly isShared: boolean;
  /** A connection that was lost sooner, and was not used, is a failure: a server may close an idle one. */
  readonly settledMs: number;
  /** The wait after so many failures in a row, the last one for this reason; `null` ends the attempts. */
  readonly retryDelayMs: (failures: number, reason: string) => number | null;
  /** Called with a function that ends a wait before a retry, until the signal is aborted: connecting may succeed by now. */
  readonly retryOn?: ((retry: () => void, signal: AbortSignal) => void) | undefined;
}

/** Notifications of the owner of a pool. */
interface PoolEvents<C> {
  opened?(connection: C): void;
  /** A connection is free. */
  free(): void;
  /** A connection is gone, or an attempt to open one failed. Another attempt follows. */
  lost(reason: string, connection: C | undefined): void;
  /** The first connection is open, or none is and an attempt to open one failed; called once for each change. */
  connected?(isConnected: boolean, reason: string): void;
}

/** Options of a pool. */
export interface PoolOptions<C> extends PoolPolicy {
  readonly clock: Clock;
  /** Opens a connection; the signal aborts when the pool is closed. `lost` is called once when it is gone. */
  readonly open: (lost: (reason: string) => void, signal: AbortSignal) => Promise<C>;
  readonly events: PoolEvents<C>;
  /** The number of users that wait for a connection; 0 when absent. */
  readonly waiting?: () => number;
}

/** In place of a retry that never comes. */
const NEVER = () => {};

/** An open connection. */
interface Member {
  users: number;
  /** By `clock.elapsed()`; `-Infinity` once it was used. */
  openedAt: number;
}

/**
 * Connections to one place. After a failure one attempt follows after the other, with growing waits, until a connection
 * is open.
 */
export class Pool<C extends PooledConnection> {
  /** Resolved at the first connection. */
  readonly ready = Promise.withResolvers<void>();
  /** The number of connections that were opened, and of those that this side closed. */
  readonly tally = { opened: 0, closed: 0 };
  readonly #options: PoolOptions<C>;
  readonly #members = new Map<C, Member>();
  /** Those that are closed as soon as they have no user. */
  readonly #retired = new Map<C, Member>();
  /** Those that were retired: their failures prove nothing about newer ones. */
  readonly #replaced = new WeakSet<C>();
  /** Those without a user, unless they are shared. */
  #free: C[] = [];
  readonly #closing = new AbortController();
  #opening = 0;
  #failures = 0;
  #reason = "";
  #isReported: boolean | undefined;
  #cancelRetry: (() => void) | undefined;

  constructor(options: PoolOptions<C>) {
    this.#options = options;
    options.retryOn?.(() => this.#retryNow(), this.#closing.signal);
    this.grow(0);
  }

  get connected(): boolean {
    return this.#members.size > 0;
  }

  /** There is a connection, or the first attempt to open one. */
  get isHopeful(): boolean {
    return this.connected || this.#failures === 0 && this.#opening > 0;
  }

  /** The number of open connections. */
  get size(): number {
    return this.#members.size + this.#retired.size;
  }

  /** The same with those that are being opened. */
  get fullSize(): number {
    return this.size + this.#opening;
  }

  /** The number of connections without a user, unless they are shared. */
  get free(): number {
    return this.#free.length;
  }

  get reason(): string {
    return this.#reason === "" ? "no connection" : `no connection: ${this.#reason}`;
  }

  /** A connection for one more user, who gives it back; absent when none is free. */
  take(): C | undefined {
    const connection = this.#options.isShared ? this.any() : this.#free.pop();
    const member = connection === undefined ? undefined : this.#members.get(connection);
    if (member === undefined) return undefined;
    if (member.users++ > 0) this.grow(this.#users() - this.#members.size);
    return connection;
  }

  #users(): number {
    let users = 0;
    for (const member of this.#members.values()) users += member.users;
    return users;
  }

  /** The connection with the fewest users, for something that can wait behind others. */
  any(): C | undefined {
    let best: C | undefined;
    let fewest = Infinity;
    for (const [connection, { users }] of this.#members) {
      if (users >= fewest) continue;
      best = connection;
      fewest = users;
    }
    return best;
  }

  /** Ends the use of a connection. One beyond the size of the pool is closed when it is free. */
  give(connection: C): void {
    const retired = this.#retired.get(connection);
    if (retired !== undefined && --retired.users === 0) return this.#close(connection, this.#reason);
    const member = this.#members.get(connection);
    if (member === undefined) return;
    member.users--;
    member.openedAt = -Infinity;
    this.#failures = 0;
    this.#freed(connection);
    if (this.#members.size > this.#options.maxSize && member.users === 0) {
      this.#forget(connection);
      this.#close(connection, "it is not needed");
    }
  }

  /** Takes a connection out of use; it is closed when its users have ended. */
  retire(connection: C, reason: string): void {
    const member = this.#members.get(connection);
    if (member === undefined) return;
    this.#forget(connection);
    this.#replaced.add(connection);
    if (member.users > 0) this.#retired.set(connection, member);
    else this.#close(connection, reason);
    this.#replace(member, reason);
  }

  /** Replaces every connection because of one of them: the name may resolve to another server by now. */
  retireAll(cause: C, reason: string): void {
    if (this.#replaced.has(cause)) return;
    for (const connection of [...this.#members.keys()]) this.retire(connection, reason);
  }

  /** Opens the connections that are missing, for this many more users. */
  grow(more = this.#options.waiting?.() ?? 0): void {
    if (this.#cancelRetry !== undefined) return;
    const { minSize, maxSize } = this.#options;
    const open = this.#members.size;
    const wanted = Math.min(maxSize, Math.max(minSize, open + more));
    const size = open === 0 ? Math.min(1, wanted) : wanted;
    while (open + this.#opening < size) this.open();
  }

  /** Opens a connection, also beyond the size of the pool. */
  open(): void {
    const { open, clock } = this.#options;
    const { signal } = this.#closing;
    if (signal.aborted) return;
    this.#opening++;
    let connection: C | undefined;
    let end: string | undefined;
    const lost = (reason: string) => {
      end ??= reason;
      if (connection !== undefined) this.#lost(connection, reason);
    };
    open(lost, signal).then((opened) => {
      this.#opening--;
      if (signal.aborted) return opened.close("it is closed");
      if (end !== undefined) return this.#failed(end);
      connection = opened;
      this.#members.set(opened, { users: 0, openedAt: clock.elapsed() });
      this.#added(opened);
    }, (error) => {
      this.#opening--;
      if (!signal.aborted) this.#failed(errorText(error));
    });
  }

  /** Ends attempts and closes the connections; with `keepUsed`, those with users when they are given back. */
  close({ keepUsed = false } = {}): void {
    this.#closing.abort(new Error("it is closed"));
    this.#cancelRetry?.();
    for (const [connection, member] of this.#members) this.#retired.set(connection, member);
    this.#members.clear();
    this.#free = [];
    for (const [connection, { users }] of [...this.#retired]) {
      if (users === 0 || !keepUsed) this.#close(connection, "it is closed");
    }
  }

  #added(connection: C): void {
    const { events } = this.#options;
    this.tally.opened++;
    this.#reason = "";
    this.ready.resolve();
    events.opened?.(connection);
    this.#report(true, "");
    // Who is served by this one needs no other.
    this.#freed(connection);
    this.grow();
  }

  #freed(connection: C): void {
    const { isShared, events } = this.#options;
    if (!isShared) this.#free.push(connection);
    events.free();
  }

  #lost(connection: C, reason: string): void {
    const member = this.#members.get(connection);
    this.#forget(connection);
    this.#retired.delete(connection);
    if (this.#closing.signal.aborted) return;
    this.#options.events.lost(reason, connection);
    if (member !== undefined) this.#replace(member, reason);
  }

  /** Opens another connection, immediately unless this one was lost soon after it was opened. */
  #replace({ openedAt }: Member, reason: string): void {
    this.#reason = reason;
    const { clock, settledMs } = this.#options;
    if (clock.elapsed() - openedAt < settledMs) return this.#retryLater(reason);
    this.#failures = 0;
    this.grow();
  }

  #failed(reason: string): void {
    this.#reason = reason;
    this.#options.events.lost(reason, undefined);
    this.#retryLater(reason);
  }

  #retryLater(reason: string): void {
    const { clock, retryDelayMs } = this.#options;
    if (!this.connected) this.#report(false, reason);
    if (this.#cancelRetry !== undefined || this.#closing.signal.aborted) return;
    this.#failures++;
    const delayMs = retryDelayMs(this.#failures, reason);
    this.#cancelRetry = delayMs === null ? NEVER : clock.after(delayMs, () => this.#retry());
  }

  #retry(): void {
    this.#cancelRetry = undefined;
    if (this.connected) this.grow();
    else if (this.#opening === 0) this.open();
  }

  /** An attempt under way may fail for the previous reason, so that the waits begin anew too. */
  #retryNow(): void {
    this.#failures = 0;
    if (this.#cancelRetry === undefined || this.#cancelRetry === NEVER) return;
    this.#cancelRetry();
    this.#retry();
  }

  #forget(connection: C): void {
    this.#members.delete(connection);
    this.#free = this.#free.filter((free) => free !== connection);
  }

  #close(connection: C, reason: string): void {
    this.#retired.delete(connection);
    this.tally.closed++;
    connection.close(reason);
  }

  #report(isConnected: boolean, reason: string): void {
    if (this.#isReported === isConnected) return;
    this.#isReported = isConnected;
    this.#options.events.connected?.(isConnected, reason);
  }
}
