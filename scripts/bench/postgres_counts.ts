import { DatabaseSync } from "node:sqlite";
import pg from "pg";

/** A store, and a connection to it besides that of the service. */
export interface BenchStore {
  readonly name: string;
  /** The settings that name it. */
  readonly settings: Readonly<Record<string, string>>;
  /** The number that a statement answers. */
  count(sql: string): Promise<number>;
}

const WAIT_MS = 60_000;
const LOOK_MS = 50;

const SUCCEEDED = "SELECT count(*) AS number FROM execution WHERE status = 'succeeded'";
const EXECUTIONS = "SELECT count(*) AS number FROM execution";
const KEYS = "SELECT count(*) AS number FROM idempotency";
const ACKNOWLEDGED = "SELECT count(*) AS number FROM delivery WHERE state = 'acknowledged'";
const DELIVERIES = "SELECT count(*) AS number FROM delivery";
const ATTEMPTS = "SELECT count(*) AS number FROM attempt WHERE result = 'acknowledged'";

/** The store in a database file. */
export function fileStore(path: string): BenchStore {
  return {
    name: "SQLite",
    settings: { WEBHOOK_STORE: path },
    count(sql) {
      const database = new DatabaseSync(path, { readOnly: true });
      try {
        return Promise.resolve(Number(database.prepare(sql).get()?.["number"]));
      } finally {
        database.close();
      }
    },
  };
}

/** The store in a database of PostgreSQL. */
export function postgresStore(url: string, settings: Readonly<Record<string, string>>): BenchStore {
  return {
    name: "PostgreSQL",
    settings: { WEBHOOK_STORE: url, ...settings },
    async count(sql) {
      const client = new pg.Client({ connectionString: url });
      try {
        await client.connect();
        return Number((await client.query(sql)).rows[0].number);
      } finally {
        await client.end();
      }
    },
  };
}

/** Waits until so many executions are over; throws unless each was started and ended once. */
export async function executionsDone(
  store: BenchStore,
  expected: number,
  signal: AbortSignal,
): Promise<void> {
  await reached(store, SUCCEEDED, expected, signal);
  await exact(store, { "executions": EXECUTIONS, "keys": KEYS }, expected);
}

/** Waits until so many deliveries are written down as acknowledged; throws unless each was attempted once. */
export async function deliveriesDone(
  store: BenchStore,
  expected: number,
  signal: AbortSignal,
): Promise<void> {
  await reached(store, ACKNOWLEDGED, expected, signal);
  await exact(store, { "deliveries": DELIVERIES, "attempts": ATTEMPTS }, expected);
}

async function reached(store: BenchStore, sql: string, expected: number, signal: AbortSignal): Promise<void> {
  const begin = performance.now();
  for (;;) {
    signal.throwIfAborted();
    const count = await store.count(sql);
    if (count >= expected) return;
    if (performance.now() - begin > WAIT_MS) {
      throw new Error(`Cannot trust bench of ${store.name}: "${sql}" says ${count}, not ${expected}`);
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

async function exact(
  store: BenchStore,
  statements: Readonly<Record<string, string>>,
  expected: number,
): Promise<void> {
  for (const [what, sql] of Object.entries(statements)) {
    const count = await store.count(sql);
    if (count === expected) continue;
    throw new Error(`Cannot trust bench of ${store.name}: ${count} ${what} in the store, not ${expected}`);
  }
}
