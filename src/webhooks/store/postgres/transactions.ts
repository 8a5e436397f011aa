import { backoffMs, type BackoffTimes } from "../../../base/backoff.ts";
import type { Clock } from "../../../base/clock.ts";
import { errorText } from "../../../base/error_text.ts";
import type { PostgresConnection, TransactionKind } from "./connection.ts";
import { isConflict, PostgresError, sqlStateOf } from "./error.ts";
import type { PostgresPool } from "./pool.ts";
import { type Answer, NO_ANSWER, type Statement, textOf, type Work } from "../work.ts";

/** What the transactions have cost since the store was opened. */
export interface TransactionFigures {
  readonly commits: number;
  /** How many operations they held: each is a transaction of its own. */
  readonly operations: number;
  /** How long they took together, without what was undone. */
  readonly elapsedMs: number;
  /** How often a transaction was retried after a conflict. */
  readonly retries: number;
}

/** For how transactions are carried out. */
export interface PostgresTransactionsOptions {
  readonly clock: Clock;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** Told of each commit. */
  readonly onCommit?: ((elapsedMs: number, operations: number) => void) | undefined;
}

type LendOptions = Parameters<PostgresPool["use"]>[1];

const MAX_TRIES = 10;
const BETWEEN: BackoffTimes = { firstMs: 4, longestMs: 250 };

/** Carries out operations of the store, each as a transaction that is begun anew when another was in its way. */
export class PostgresTransactions {
  readonly #pool: PostgresPool;
  readonly #options: PostgresTransactionsOptions;
  #figures: TransactionFigures = { commits: 0, operations: 0, elapsedMs: 0, retries: 0 };

  constructor(pool: PostgresPool, options: PostgresTransactionsOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  /** What the transactions have cost so far. */
  get figures(): TransactionFigures {
    return this.#figures;
  }

  /**
   * Carries out an operation that writes; what it answers is durable. When it throws "busy" its outcome may be unknown:
   * the connection may break in the moment of the commit.
   */
  async perform<T>(work: () => Work<T>, options: LendOptions = {}): Promise<T> {
    return await this.#repeat("write", work, options);
  }

  /** Carries out an operation that only reads, all of it in the same state of the database. */
  async read<T>(work: () => Work<T>): Promise<T> {
    return await this.#repeat("read", work, {});
  }

  async #repeat<T>(kind: TransactionKind, work: () => Work<T>, options: LendOptions): Promise<T> {
    for (let tries = 1;; tries++) {
      try {
        return await this.#pool.use((connection) => this.#carryOut(connection, kind, work), options);
      } catch (error) {
        if (!isConflict(error)) throw error;
        if (tries === MAX_TRIES) throw givenUp(error);
      }
      this.#figures = { ...this.#figures, retries: this.#figures.retries + 1 };
      // Not on the connection, which others can use meanwhile.
      await this.#rest(tries);
    }
  }

  async #carryOut<T>(connection: PostgresConnection, kind: TransactionKind, work: () => Work<T>): Promise<T> {
    const since = this.#options.clock.elapsed();
    const begun = work();
    const first = nextStatement(begun, begun.next());
    if (first.done === true) return first.value;
    const value = first.value.isAlone === true
      ? last(begun, await answer(connection, first.value))
      : await between(connection, kind, begun, first.value);
    if (kind === "write") this.#count(this.#options.clock.elapsed() - since);
    return value;
  }

  #count(elapsedMs: number): void {
    const { commits, operations, retries } = this.#figures;
    const sum = this.#figures.elapsedMs + elapsedMs;
    this.#figures = { commits: commits + 1, operations: operations + 1, elapsedMs: sum, retries };
    this.#options.onCommit?.(elapsedMs, 1);
  }

  #rest(tries: number): Promise<void> {
    const { clock, random } = this.#options;
    return new Promise((resolve) => void clock.after(backoffMs(tries, random(), BETWEEN), resolve));
  }
}

/** Carries out the statements of an operation, from the first on, between the begin and the end of a transaction. */
async function between<T>(
  connection: PostgresConnection,
  kind: TransactionKind,
  work: Work<T>,
  first: Statement,
): Promise<T> {
  let value: T;
  try {
    await connection.begin(kind);
    let step = nextStatement(work, work.next(await answer(connection, first)));
    while (step.done !== true) {
      step = nextStatement(work, work.next(await answer(connection, step.value)));
    }
    value = step.value;
  } catch (error) {
    await connection.rollBack();
    throw error;
  }
  try {
    await connection.commit();
  } catch (error) {
    // Whatever it was, the connection may still be in the middle of it.
    if (!isConflict(error)) connection.destroy();
    throw error;
  }
  return value;
}

/** What an operation answers that has got the answer to its only statement, which the server has made durable. */
function last<T>(work: Work<T>, answer: Answer): T {
  const step = nextStatement(work, work.next(answer));
  if (step.done === true) return step.value;
  throw new Error("Cannot carry out an operation: a statement that is alone is followed by another");
}

/** The operation as far as it goes without the server: what only other databases need is passed over. */
function nextStatement<T>(work: Work<T>, step: IteratorResult<Statement, T>): IteratorResult<Statement, T> {
  let next = step;
  while (next.done !== true && textOf(next.value, "postgres") === "") next = work.next(NO_ANSWER);
  return next;
}

async function answer(connection: PostgresConnection, statement: Statement): Promise<Answer> {
  return await connection.query(textOf(statement, "postgres"), statement.parameters, statement.returns);
}

function givenUp(error: unknown): PostgresError {
  const state = `others were in the way ${MAX_TRIES} times: ${errorText(error)}`;
  return new PostgresError("busy", `Cannot use the store: ${state}`, sqlStateOf(error));
}
