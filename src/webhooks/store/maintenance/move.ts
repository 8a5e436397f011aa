import type { Clock } from "../../../base/clock.ts";
import { isPostgresAddress } from "../../../base/postgres_address.ts";
import { fileAt, withStoreToRead } from "./open_connection.ts";
import { READING, type StoreConnection, transaction, WRITING } from "./connection.ts";
import { type MoveTarget, withMoveTarget } from "./move_target.ts";
import { countOf, type StoreTable, storeTables, TableReader } from "./tables.ts";
import { lockedStore, refuseClaims, refuseSessions } from "./users.ts";
import { knownVersion } from "./schema_version.ts";
import { SCHEMA_VERSION } from "../schema.ts";
import { moveNumbers, TableWriter } from "./writer.ts";
import { TableDigest } from "./table_digest.ts";
import { StoreError } from "../store.ts";

/** What is moved, and where to. */
export interface StoreMove {
  /** A database file, or the address of a PostgreSQL. */
  readonly from: string;
  /** The other of the two. */
  readonly to: string;
  readonly clock: Clock;
  /** Told what has been done, a line at a time. */
  readonly tell: (line: string) => void;
}

/** What was moved. */
export interface MovedStore {
  /** The target, without a password. */
  readonly shown: string;
  readonly rows: number;
  readonly tables: number;
  /** Whether it was there already, by a move that was broken off when all was done. */
  readonly wasThere: boolean;
  /** In how many texts U+0000 has become U+FFFD, as PostgreSQL does not take it. */
  readonly replaced: number;
  /** A file with the key under which secrets are sealed, which is not moved. */
  readonly keyFile: string | undefined;
}

/**
 * Moves all rows of a store that no service uses into an empty one of the other database, where it stays as it is, and
 * compares both at the end. One that was broken off begins anew.
 *
 * Claims are moved as they are: the next start with a file takes all of them back, and in PostgreSQL each ends with its
 * lease, as those of any instance do that has died.
 */
export async function moveStore(move: StoreMove): Promise<MovedStore> {
  const { from, to, clock } = move;
  if (isPostgresAddress(from) === isPostgresAddress(to)) {
    throw new StoreError(
      "failed",
      "Cannot move a store into another of the same kind: a file and the address of a PostgreSQL would be right",
    );
  }
  return await withStoreToRead(from, async (source) => {
    using _lock = source.kind === "sqlite" ? lockedStore(source.shown) : undefined;
    await refuseUsers(source, clock);
    if (await source.perform(knownVersion(source)) < SCHEMA_VERSION) throw tooOld(source);
    return await withMoveTarget(to, clock, (target) => moved(source, target, move));
  });
}

async function moved(
  source: StoreConnection,
  target: MoveTarget,
  { clock, tell }: StoreMove,
): Promise<MovedStore> {
  const tables = await commonTables(source, target.connection);
  const keyFile = source.kind === "sqlite" ? `${source.shown}.key` : undefined;
  const replaced = target.isFilled ? 0 : await transaction(source, READING, () => {
    return copied(source, target.connection, { tables, tell });
  });
  const rows = await compared(source, target, { tables, tell });
  await refuseUsers(source, clock);
  await target.finish();
  return {
    shown: target.connection.shown,
    rows,
    tables: tables.length,
    wasThere: target.isFilled,
    replaced,
    keyFile: keyFile !== undefined && fileAt(keyFile) !== undefined ? keyFile : undefined,
  };
}

/** Somebody who uses the source would go on writing to it, or have work in hand of which it knows nothing. */
async function refuseUsers(source: StoreConnection, clock: Clock): Promise<void> {
  if (source.kind === "sqlite") return;
  await refuseSessions(source, clock);
  await refuseClaims(source);
}

function tooOld({ shown }: StoreConnection): StoreError {
  return new StoreError(
    "failed",
    `Cannot move the store "${shown}": an older release made it; a service of this release, started and stopped ` +
      "again, brings it up to date",
  );
}

/** The tables of both, which have to be the same. */
async function commonTables(
  source: StoreConnection,
  target: StoreConnection,
): Promise<readonly StoreTable[]> {
  const tables = await source.perform(storeTables());
  const other = await target.perform(storeTables());
  for (const [index, { name, columns }] of tables.entries()) {
    if (JSON.stringify(columns) === JSON.stringify(other[index]?.columns)) continue;
    throw new StoreError("failed", `Cannot move the table "${name}": it has other columns in the target`);
  }
  return tables;
}

interface Moving {
  readonly tables: readonly StoreTable[];
  readonly tell: (line: string) => void;
}

/** Copies all tables, each portion in a transaction of its own; answers how many texts had to be changed. */
async function copied(
  source: StoreConnection,
  target: StoreConnection,
  { tables, tell }: Moving,
): Promise<number> {
  let replaced = 0;
  for (const table of tables) {
    const reader = new TableReader(table);
    const writer = new TableWriter(table, target.kind);
    let count = 0;
    for (;;) {
      const rows = await source.perform(reader.next());
      if (rows.length === 0) break;
      await transaction(target, WRITING, () => target.perform(writer.write(rows)));
      count += rows.length;
    }
    await moveNumbers(table, source, target);
    replaced += reader.replaced;
    tell(`${table.name}: ${count} rows copied`);
  }
  return replaced;
}

/** Reads both stores anew and compares them; answers how many rows they have. */
async function compared(
  source: StoreConnection,
  { connection, isFilled }: MoveTarget,
  moving: Moving,
): Promise<number> {
  const state = isFilled
    ? `it holds other rows; an empty database, or a file that is not there, would be right`
    : "it has other rows than the source; stop whoever writes to either, and call this again";
  const differs = new StoreError("failed", `Cannot move into the store "${connection.shown}": ${state}`);
  return await transaction(source, READING, () =>
    transaction(connection, READING, async () => {
      for (const table of moving.tables) {
        if (await source.perform(countOf(table)) !== await connection.perform(countOf(table))) throw differs;
      }
      let rows = 0;
      for (const table of moving.tables) {
        const { count, digest } = await digestOf(source, table);
        const other = await digestOf(connection, table);
        if (other.count !== count || other.digest !== digest) throw differs;
        moving.tell(`${table.name}: ${count} rows are the same, their SHA-256 add up to ${digest}`);
        rows += count;
      }
      return rows;
    }));
}

async function digestOf(connection: StoreConnection, table: StoreTable): Promise<TableDigest> {
  const digest = new TableDigest(table.columns);
  const reader = new TableReader(table);
  for (;;) {
    const rows = await connection.perform(reader.next());
    if (rows.length === 0) return digest;
    for (const row of rows) digest.add(row);
  }
}
