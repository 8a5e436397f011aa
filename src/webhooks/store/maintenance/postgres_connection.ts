import { systemClock } from "../../../base/clock.ts";
import { parsePostgresAddress, redactedAddress } from "../../../base/postgres_address.ts";
import { PostgresConnection } from "../postgres/connection.ts";
import { NO_ANSWER, textOf, type Work } from "../work.ts";

// One statement reads a whole table here.
const TIMEOUTS = { connectTimeoutMs: 10_000, statementTimeoutMs: 3_600_000, lockTimeoutMs: 10_000 };

/** Opens a connection to a PostgreSQL store, on the first of its hosts that accepts. */
export async function openPostgres(text: string) {
  const address = parsePostgresAddress(text);
  const connection = await connected(address);
  return {
    shown: redactedAddress(address),
    async perform<T>(work: Work<T>): Promise<T> {
      let step = work.next();
      while (step.done !== true) {
        const { parameters, returns } = step.value;
        const sql = textOf(step.value, "postgres");
        step = work.next(sql === "" ? NO_ANSWER : await connection.query(sql, parameters, returns));
      }
      return step.value;
    },
    close: () => connection.close(),
  };
}

async function connected(address: ReturnType<typeof parsePostgresAddress>): Promise<PostgresConnection> {
  let reason: unknown;
  for (const host of address.fields.hosts) {
    try {
      return await PostgresConnection.open(address, host, { clock: systemClock, ...TIMEOUTS });
    } catch (error) {
      reason = error;
    }
  }
  throw reason;
}
