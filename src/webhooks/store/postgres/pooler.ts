import type { PostgresConnection } from "./connection.ts";
import { PostgresPool, type PostgresPoolOptions } from "./pool.ts";
import { StoreError } from "../store.ts";

/** How often the sessions are compared: other clients of the pooler change the order. */
const ROUNDS = 3;

/** For the check of what is between the store and its database. */
export interface PoolerCheckOptions {
  readonly pool: PostgresPool;
  readonly poolOptions: PostgresPoolOptions;
  /** The address without its password. */
  readonly shownAddress: string;
}

/**
 * Throws when a pooler moves a connection from one session to another between transactions. The settings and prepared
 * statements of the store belong to a session, so that would work alone and fail under load.
 */
export async function refuseTransactionPooler(
  { pool, poolOptions, shownAddress }: PoolerCheckOptions,
): Promise<void> {
  // A pooler announces a process of its own; without one there is nothing more to check.
  const isDirect = await pool.use(async (connection) => {
    return await connection.process() === connection.announcedProcess;
  });
  if (isDirect || !await movesSessions({ ...poolOptions, size: 2, onConnected: undefined })) return;
  throw new StoreError(
    "failed",
    `Cannot use the store "${shownAddress}": a pooler gives its transactions to different sessions; ` +
      "set the pooler to session mode, or connect without it",
  );
}

/** Looks for a connection whose session changes, or is also that of another connection. */
async function movesSessions(options: PostgresPoolOptions): Promise<boolean> {
  const pool = new PostgresPool({ ...options, waitMs: options.connectTimeoutMs });
  try {
    return await pool.use((one) =>
      pool.use(async (other) => {
        const processes = new Map<PostgresConnection, number>();
        // A pooler may pick the session that was used last, or the one that was not used for longest.
        for (const connection of Array.from({ length: ROUNDS }, () => [one, other]).flat()) {
          const known = processes.get(connection) ?? await connection.process();
          if (await connection.process() !== known) return true;
          processes.set(connection, known);
        }
        return processes.get(one) === processes.get(other);
      })
    );
  } catch (error) {
    // Where a second connection gets no session, the first one keeps its own.
    if (error instanceof StoreError && error.code === "busy") return false;
    throw error;
  } finally {
    await pool.close();
  }
}
