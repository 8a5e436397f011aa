import { setImmediate } from "node:timers";
import type { Clock } from "../../../base/clock.ts";
import { type SqliteConnection, storeError } from "./connection.ts";
import { StoreError } from "../store.ts";
import type { Work } from "../work.ts";

/** For group commits. */
export interface GroupCommitOptions {
  readonly clock: Clock;
  /** Most operations that wait. */
  readonly maxWaiting: number;
  readonly onCommit?: ((elapsedMs: number, operations: number) => void) | undefined;
}

/** Settles the promise of an operation. */
type Settle = () => void;

interface Operation {
  readonly work: () => Work<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Most operations of a commit, so that the first results do not wait too long for the last operation. */
const MAX_OPERATIONS = 1_000;

/** Writes the operations of one turn of the event loop in one transaction, with one sync of the disk. */
export class GroupCommit {
  readonly #connection: SqliteConnection;
  readonly #options: GroupCommitOptions;
  #waiting: Operation[] = [];
  #isScheduled = false;
  #isClosed = false;

  constructor(connection: SqliteConnection, options: GroupCommitOptions) {
    this.#connection = connection;
    this.#options = options;
  }

  /** How many operations wait. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Runs an operation in the next transaction, durably; again when another one of the transaction throws. */
  write<T>(work: () => Work<T>): Promise<T> {
    const { length } = this.#waiting;
    return new Promise<T>((resolve, reject) => {
      if (this.#isClosed) {
        throw new StoreError("closed", `Cannot use the store "${this.#connection.path}": it is closed`);
      }
      if (length >= this.#options.maxWaiting) {
        throw new StoreError("busy", `Cannot use the store: ${length} operations wait for it`);
      }
      this.#waiting.push({ work, resolve: (value) => resolve(value as T), reject });
      this.#schedule();
    });
  }

  /** Commits what waits and accepts nothing more. */
  close(): void {
    this.#isClosed = true;
    while (this.#waiting.length > 0) this.#commit();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    // After everything that has arrived by then, messages included.
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.#waiting.length > 0) this.#commit();
      if (this.#waiting.length > 0) this.#schedule();
    });
  }

  #commit(): void {
    const operations = this.#waiting.splice(0, MAX_OPERATIONS);
    const since = this.#options.clock.elapsed();
    let settlers: readonly Settle[];
    try {
      settlers = this.#run(operations);
    } catch (error) {
      const failure = storeError("Cannot use the store", error);
      for (const operation of operations) operation.reject(failure);
      return;
    }
    this.#options.onCommit?.(this.#options.clock.elapsed() - since, operations.length);
    for (const settle of settlers) settle();
  }

  /** Runs operations; if one throws, the others again without it. */
  #run(operations: readonly Operation[]): readonly Settle[] {
    const connection = this.#connection;
    let failed: { readonly operation: Operation; readonly error: unknown } | undefined;
    try {
      const values = connection.performAll(operations.map(({ work }) => work), (index, error) => {
        const operation = operations[index];
        // SQLite may have ended the whole transaction, such as when the disk is full.
        if (connection.inTransaction && operation !== undefined) failed = { operation, error };
      });
      return operations.map(({ resolve }, index) => () => resolve(values[index]));
    } catch (error) {
      if (failed === undefined) throw error;
    }
    const { operation, error } = failed;
    const others = operations.filter((other) => other !== operation);
    return [() => operation.reject(error), ...this.#runSeparately(others)];
  }

  /** Many may throw; to repeat the others after each would take quadratic time. */
  #runSeparately(operations: readonly Operation[]): readonly Settle[] {
    if (operations.length === 0) return [];
    return this.#connection.transaction(() =>
      operations.map((operation) => this.#runWithSavepoint(operation))
    );
  }

  #runWithSavepoint({ work, resolve, reject }: Operation): Settle {
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
}
