import { run as changes, type Sql, type Work } from "../work.ts";

/** A store on one connection, for what is done with it beside the service. */
export interface StoreConnection {
  readonly kind: "sqlite" | "postgres";
  /** Where it is, without a password. */
  readonly shown: string;
  /** Carries out work, in the transaction that was begun; where none was each statement is one. */
  perform<T>(work: Work<T>): Promise<T>;
}

/** Begins reads that all see the same state. */
export const READING: Sql = {
  sqlite: "BEGIN",
  postgres: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
};

/** Begins what is written whole or not at all. */
export const WRITING: Sql = { sqlite: "BEGIN IMMEDIATE", postgres: "BEGIN" };

/** Does all that `run` does in one transaction. */
export async function transaction<T>(
  connection: StoreConnection,
  begin: Sql,
  run: () => Promise<T>,
): Promise<T> {
  await connection.perform(changes(begin));
  try {
    const answer = await run();
    await connection.perform(changes("COMMIT"));
    return answer;
  } catch (error) {
    // What went wrong may have ended the transaction, or the connection.
    await connection.perform(changes("ROLLBACK")).catch(() => {});
    throw error;
  }
}

/** Carries out each work in a transaction of its own. */
export function transactionsOn(connection: StoreConnection) {
  const perform = <T>(work: () => Work<T>): Promise<T> =>
    transaction(connection, WRITING, () => connection.perform(work()));
  return { perform, read: perform };
}
