import { setImmediate } from "node:timers";
import type { Clock } from "../../../base/clock.ts";
import { type SqliteConnection, storeError } from "./connection.ts";
import { StoreError } from "../store.ts";
import type { Work } from "../work.ts";

/** What the commits have cost since the store was opened. */
export interface CommitFigures {
  readonly commits: number;
  /** How many operations they held. */
  readonly operations: number;
  /** How long they took together, the work of their operations included. */
  readonly elapsedMs: number;
}

/** For how commits are gathered. */
export interface GroupCommitOptions {
  readonly clock: Clock;
  /** How many operations may wait. */
  readonly maxWaiting: number;
  /** Told of each commit. */
  readonly onCommit?: ((elapsedMs: number, operations: number) => void) | undefined;
}

/** Says to whoever asked for an operation what became of it. */
type Settle = () => void;

interface Operation {
  readonly work: () => Work<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

// Beyond this the first answers would wait too long for the last operation.
const MAX_IN_ONE = 1_000;

/** Writes: what is asked for in one turn of the event loop is one transaction, and one wait for the disk. */
export class GroupCommit {
  readonly #connection: SqliteConnection;
  readonly #options: GroupCommitOptions;
  #waiting: Operation[] = [];
  #asked = false;
  #closed = false;
  #figures: CommitFigures = { commits: 0, operations: 0, elapsedMs: 0 };

  constructor(connection: SqliteConnection, options: GroupCommitOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  /** What the commits have cost so far. */
  get figures(): CommitFigures {
    return this.#figures;
  }

  /** How many operations wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /**
   * Carries out an operation in the next transaction; what it answers is durable. One that throws changes nothing. The
   * work is begun anew where another operation of the same transaction throws.
   */
  write<T>(work: () => Work<T>): Promise<T> {
    if (this.#closed) {
      return Promise.reject(
        new StoreError("closed", `Cannot use the store "${this.#connection.path}": it is closed`),
      );
    }
    if (this.#waiting.length >= this.#options.maxWaiting) {
      return Promise.reject(
        new StoreError("busy", `Cannot use the store: ${this.#waiting.length} operations wait for it`),
      );
    }
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ work, resolve: (value) => resolve(value as T), reject });
      this.#ask();
    });
  }

  /** Commits what waits and takes nothing more. */
  close(): void {
    this.#closed = true;
    while (this.#waiting.length > 0) this.#commit();
  }

  #ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    // After what has arrived by then, messages included, not in the middle of it.
    setImmediate(() => {
      this.#asked = false;
      if (this.#waiting.length > 0) this.#commit();
      if (this.#waiting.length > 0) this.#ask();
    });
  }

  #commit(): void {
    const operations = this.#waiting.splice(0, MAX_IN_ONE);
    const since = this.#options.clock.elapsed();
    let settlers: readonly Settle[];
    try {
      settlers = this.#carriedOut(operations);
    } catch (error) {
      const failure = storeError("Cannot use the store", error);
      for (const operation of operations) operation.reject(failure);
      return;
    }
    this.#count(this.#options.clock.elapsed() - since, operations.length);
    for (const settle of settlers) settle();
  }

  /** Carries out operations straight; if one throws, the others again without it. */
  #carriedOut(operations: readonly Operation[]): readonly Settle[] {
    const connection = this.#connection;
    let failed: { readonly operation: Operation; readonly error: unknown } | undefined;
    try {
      return connection.transaction(() =>
        operations.map((operation) => {
          try {
            const value = connection.perform(operation.work());
            return () => operation.resolve(value);
          } catch (error) {
            // SQLite may have ended the whole transaction, as when the disk is full: then nobody's work is done.
            if (connection.inTransaction) failed = { operation, error };
            throw error;
          }
        })
      );
    } catch (error) {
      if (failed === undefined) throw error;
    }
    const { operation, error } = failed;
    const others = operations.filter((other) => other !== operation);
    return [() => operation.reject(error), ...this.#carriedOutApart(others)];
  }

  /** Many may throw, as when the disk is full; to begin anew after each would take ever longer. */
  #carriedOutApart(operations: readonly Operation[]): readonly Settle[] {
    if (operations.length === 0) return [];
    return this.#connection.transaction(() => operations.map((operation) => this.#apart(operation)));
  }

  /** Carries out one operation so that it alone can be undone. */
  #apart({ work, resolve, reject }: Operation): Settle {
    const connection = this.#connection;
    connection.run("SAVEPOINT operation");
    try {
      const value = connection.perform(work());
      connection.run("RELEASE operation");
      return () => resolve(value);
    } catch (error) {
      if (!connection.inTransaction) throw error;
      connection.run("ROLLBACK TO operation");
      connection.run("RELEASE operation");
      return () => reject(error);
    }
  }

  #count(elapsedMs: number, operations: number): void {
    const { figures } = this;
    this.#figures = {
      commits: figures.commits + 1,
      operations: figures.operations + operations,
      elapsedMs: figures.elapsedMs + elapsedMs,
    };
    this.#options.onCommit?.(elapsedMs, operations);
  }
}
