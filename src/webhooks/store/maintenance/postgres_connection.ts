import { systemClock } from "../../../base/clock.ts";
import { parsePostgresAddress, shownPostgresAddress } from "../../../base/postgres_address.ts";
import { PostgresConnection } from "../postgres/connection.ts";
import type { StoreConnection } from "./connection.ts";
import type { Answer, Statement, Work } from "../work.ts";

// One statement looks through a whole table here.
const TIMES = { connectTimeoutMs: 10_000, statementTimeoutMs: 3_600_000, lockTimeoutMs: 10_000 };

const NOTHING: Answer = { rows: [], changes: 0 };

/** Opens a PostgreSQL store for as long as `run` takes, on the first of its hosts that will do. */
export async function withPostgresStore<T>(
  text: string,
  run: (connection: StoreConnection) => Promise<T>,
): Promise<T> {
  const address = parsePostgresAddress(text);
  const connection = await connected(address);
  const answer = ({ sql, parameters, wants }: Statement): Promise<Answer> => {
    const statement = typeof sql === "string" ? sql : sql.postgres;
    return statement === "" ? Promise.resolve(NOTHING) : connection.query(statement, parameters, wants);
  };
  try {
    return await run({
      kind: "postgres",
      shown: shownPostgresAddress(address),
      perform: (work) => performedLater(work, answer),
    });
  } finally {
    await connection.close();
  }
}

async function connected(address: ReturnType<typeof parsePostgresAddress>): Promise<PostgresConnection> {
  let reason: unknown;
  for (const host of address.fields.hosts) {
    try {
      return await PostgresConnection.open(address, host, { clock: systemClock, ...TIMES });
    } catch (error) {
      reason = error;
    }
  }
  throw reason;
}

/** Carries out work with somebody who answers later. */
async function performedLater<T>(
  work: Work<T>,
  answer: (statement: Statement) => Promise<Answer>,
): Promise<T> {
  let step = work.next();
  while (step.done !== true) step = work.next(await answer(step.value));
  return step.value;
}
