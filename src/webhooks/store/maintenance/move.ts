import type { Clock } from "../../../base/clock.ts";
import { isPostgresAddress } from "../../../base/postgres_address.ts";
import { SCHEMA_VERSION } from "../schema.ts";
import { fileAt } from "../sqlite/connection.ts";
import { StoreError } from "../store.ts";
import {
  knownVersion,
  READING,
  type StoreConnection,
  transaction,
  withStoreToRead,
  WRITING,
} from "./connection.ts";
import { lockedStore, type MoveTarget, refuseClaims, refuseSessions, withMoveTarget } from "./move_target.ts";
import {
  countOf,
  digestOf,
  insertRows,
  moveSequence,
  type StoreTable,
  storeTables,
  TableReader,
} from "./tables.ts";

/** A move between a database file and a PostgreSQL database. */
interface StoreMove {
  readonly from: string;
  readonly to: string;
  readonly clock: Clock;
  /** Receives progress, one line at a time. */
  readonly tell: (line: string) => void;
  /** Receives what the move does, several times a second. */
  readonly onStep?: ((text: string) => void) | undefined;
}

/** A completed move. */
export interface MovedStore {
  /** The target, without a password. */
  readonly shown: string;
  readonly rows: number;
  readonly tables: number;
  /** True if an earlier move, interrupted at its end, had filled the target. */
  readonly wasThere: boolean;
  /** In how many texts U+0000, which PostgreSQL refuses, became U+FFFD. */
  readonly replaced: number;
  /** The file of the encryption key, which is not moved. */
  readonly keyFile: string | undefined;
}

/**
 * Moves all rows of a store that no service uses into an empty one of the other database and compares both at the end.
 * The source stays as it is; an interrupted move starts over.
 *
 * Claims are moved too: the next start with a file releases all of them, and in PostgreSQL each ends with its lease.
 */
export async function moveStore(move: StoreMove): Promise<MovedStore> {
  const { from, to, clock } = move;
  if (isPostgresAddress(from) === isPostgresAddress(to)) {
    throw new RangeError(
      "Cannot move a store into another of the same kind: expected a file and a PostgreSQL address",
    );
  }
  return await withStoreToRead(from, async (source) => {
    using _lock = source.kind === "sqlite" ? lockedStore(source.shown) : undefined;
    await refuseUsers(source, clock);
    if (await source.perform(knownVersion(source)) < SCHEMA_VERSION) {
      throw new StoreError(
        "failed",
        `Cannot move the store "${source.shown}": an older release created it; start and stop a service of this ` +
          "release to migrate it",
      );
    }
    return await withMoveTarget(to, clock, (target) => moved(source, target, move));
  });
}

async function moved(
  source: StoreConnection,
  target: MoveTarget,
  { clock, tell, onStep = () => {} }: StoreMove,
): Promise<MovedStore> {
  const { connection, isFilled } = target;
  const moving = { tables: await source.perform(storeTables()), tell, onStep };
  await connection.perform(storeTables());
  const replaced = isFilled
    ? 0
    : await transaction(source, READING, () => copied(source, connection, moving));
  const rows = await compared(source, target, moving);
  await refuseUsers(source, clock);
  await target.finish();
  const keyFile = source.kind === "sqlite" ? `${source.shown}.key` : undefined;
  return {
    shown: connection.shown,
    rows,
    tables: moving.tables.length,
    wasThere: isFilled,
    replaced,
    keyFile: keyFile !== undefined && fileAt(keyFile) !== undefined ? keyFile : undefined,
  };
}

/** A user of the source would continue to write to it, or hold claims. */
async function refuseUsers(source: StoreConnection, clock: Clock): Promise<void> {
  if (source.kind === "sqlite") return;
  await refuseSessions(source, clock);
  await refuseClaims(source);
}

interface Moving {
  readonly tell: StoreMove["tell"];
  readonly tables: readonly StoreTable[];
  readonly onStep: (text: string) => void;
}

/** Copies all tables, each portion in its own transaction; returns how many texts were changed. */
async function copied(
  source: StoreConnection,
  target: StoreConnection,
  { tables, tell, onStep }: Moving,
): Promise<number> {
  let replaced = 0;
  for (const table of tables) {
    const reader = new TableReader(table);
    let count = 0;
    for (;;) {
      const rows = await source.perform(reader.next());
      if (rows.length === 0) break;
      await transaction(target, WRITING, () => target.perform(insertRows(table, rows, target.kind)));
      count += rows.length;
      onStep(`copying ${table.name}: ${count} rows`);
    }
    await moveSequence(table, source, target);
    replaced += reader.replaced;
    tell(`${table.name}: ${count} rows copied`);
  }
  return replaced;
}

/** Reads both stores and compares them; returns how many rows they have. */
async function compared(
  source: StoreConnection,
  { connection, isFilled }: MoveTarget,
  { tables, tell, onStep }: Moving,
): Promise<number> {
  const state = isFilled
    ? "it holds other rows; expected an empty database, or a file that does not exist"
    : "its rows differ from the source; stop all writers and run the move again";
  const differs = new StoreError("failed", `Cannot move into the store "${connection.shown}": ${state}`);
  return await transaction(source, READING, () =>
    transaction(connection, READING, async () => {
      for (const table of tables) {
        if (await source.perform(countOf(table)) !== await connection.perform(countOf(table))) throw differs;
      }
      let rows = 0;
      for (const table of tables) {
        const onCount = (rows: number) => onStep(`comparing ${table.name}: ${rows} rows`);
        const { count, digest } = await digestOf(source, table, onCount);
        const other = await digestOf(connection, table, onCount);
        if (other.count !== count || other.digest !== digest) throw differs;
        tell(`${table.name}: ${count} equal rows, sum of SHA-256 ${digest}`);
        rows += count;
      }
      return rows;
    }));
}
