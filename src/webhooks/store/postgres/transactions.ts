import { backoffMs, type BackoffTimes } from "../../../base/backoff.ts";
import type { Clock } from "../../../base/clock.ts";
import { errorText } from "../../../base/error_text.ts";
import { type Answer, NO_ANSWER, type Statement, textOf, type Work } from "../work.ts";
import type { PostgresConnection, TransactionKind } from "./connection.ts";
import { isConflict, PostgresError, sqlStateOf } from "./error.ts";
import type { PostgresPool } from "./pool.ts";

/** For transactions. */
interface PostgresTransactionsOptions {
  readonly clock: Clock;
  /** From 0 to below 1. */
  readonly random: () => number;
  readonly onCommit?: ((elapsedMs: number, operations: number) => void) | undefined;
}

interface PerformOptions extends NonNullable<Parameters<PostgresPool["use"]>[1]> {
  /** The number of callers' operations in the work; 1 when absent. */
  readonly operations?: (() => number) | undefined;
}

const MAX_TRIES = 10;
const BACKOFF: BackoffTimes = { firstMs: 4, longestMs: 250 };

/** Runs operations of the store, each as a transaction that is retried after a conflict. */
export class PostgresTransactions {
  readonly #pool: PostgresPool;
  readonly #options: PostgresTransactionsOptions;
  #retries = 0;

  constructor(pool: PostgresPool, options: PostgresTransactionsOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  /** The number of transactions that were retried after a conflict. */
  get retries(): number {
    return this.#retries;
  }

  /** Runs an operation that writes, durably. After "busy" its outcome may be unknown: the commit may have been lost. */
  async write<T>(work: () => Work<T>, options: PerformOptions = {}): Promise<T> {
    return await this.#retry("write", work, options);
  }

  /** Runs an operation that only reads, in one state of the database. */
  async read<T>(work: () => Work<T>, options: PerformOptions = {}): Promise<T> {
    return await this.#retry("read", work, options);
  }

  async #retry<T>(kind: TransactionKind, work: () => Work<T>, options: PerformOptions): Promise<T> {
    const { clock, random } = this.#options;
    for (let tries = 1;; tries++) {
      try {
        return await this.#pool.use((connection) => this.#run(connection, kind, work, options), options);
      } catch (error) {
        if (!isConflict(error)) throw error;
        if (tries === MAX_TRIES) {
          const state = `${MAX_TRIES} conflicts with others: ${errorText(error)}`;
          throw new PostgresError("busy", `Cannot use the store: ${state}`, sqlStateOf(error));
        }
      }
      this.#retries++;
      // Without the connection, which others can use meanwhile.
      await new Promise<void>((resolve) => clock.after(backoffMs(tries, random(), BACKOFF), resolve));
    }
  }

  async #run<T>(
    connection: PostgresConnection,
    kind: TransactionKind,
    work: () => Work<T>,
    { operations = () => 1 }: PerformOptions,
  ): Promise<T> {
    const since = this.#options.clock.elapsed();
    const begun = work();
    const first = nextStatement(begun, begun.next());
    if (first.done === true) return first.value;
    const value = first.value.isAlone === true
      ? last(begun, await answer(connection, first.value))
      : await transaction(connection, kind, begun, first.value);
    if (kind === "write") this.#options.onCommit?.(this.#options.clock.elapsed() - since, operations());
    return value;
  }
}

/** Runs the statements of an operation, from the first on, in a transaction. */
async function transaction<T>(
  connection: PostgresConnection,
  kind: TransactionKind,
  work: Work<T>,
  first: Statement,
): Promise<T> {
  let step: IteratorResult<Statement, T> = { value: first, done: false };
  try {
    await connection.begin(kind);
    while (step.done !== true) step = nextStatement(work, work.next(await answer(connection, step.value)));
  } catch (error) {
    await connection.rollBack();
    throw error;
  }
  try {
    await connection.commit();
  } catch (error) {
    // The connection may still be in the middle of the transaction.
    if (!isConflict(error)) connection.destroy();
    throw error;
  }
  return step.value;
}

/** The result of an operation after its only statement, which the server has committed. */
function last<T>(work: Work<T>, answer: Answer): T {
  const step = nextStatement(work, work.next(answer));
  if (step.done === true) return step.value;
  throw new Error("Cannot run an operation: a statement that is alone is followed by another");
}

/** The next statement that is not empty in PostgreSQL. */
function nextStatement<T>(work: Work<T>, step: IteratorResult<Statement, T>): IteratorResult<Statement, T> {
  let next = step;
  while (next.done !== true && textOf(next.value, "postgres") === "") next = work.next(NO_ANSWER);
  return next;
}

async function answer(connection: PostgresConnection, statement: Statement): Promise<Answer> {
  return await connection.query(textOf(statement, "postgres"), statement.parameters, statement.returns);
}
