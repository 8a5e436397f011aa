import { DatabaseSync } from "node:sqlite";
import { FakeClock } from "./fake_clock.ts";
import { type MovedStore, moveStore } from "../../src/webhooks/store/maintenance/move.ts";
import { migrate } from "../../src/webhooks/store/sqlite/migration.ts";
import { SqliteConnection } from "../../src/webhooks/store/sqlite/connection.ts";
import { type StoreTable, storeTables, TABLE_NAMES } from "../../src/webhooks/store/maintenance/tables.ts";
import {
  addEndpoint,
  addEvent,
  audit,
  claimOne,
  eventKey,
  execution,
  newId,
  NOW,
  saveVersion,
  signedTrigger,
  trigger,
} from "../contract/webhook_store_bed.ts";
import { acceptEvent, acceptExecution } from "../../src/webhooks/store/operations/accept.ts";
import { createEventKey } from "../../src/webhooks/store/operations/events.ts";
import type { WebhookStore } from "../../src/webhooks/store/store.ts";
import { TABLES } from "../../src/webhooks/store/tables.ts";
import { createTrigger } from "../../src/webhooks/store/operations/triggers.ts";

type Value = string | number | Uint8Array | null;

/** Texts that a database may not keep as they are. */
const TEXTS = [
  "",
  "a",
  "'\"\\ ?1 $1",
  "\u{1F600}\u00e9\uFFFD",
  "\n\t\x01\x7f",
  "%_",
  "{}",
  "x".repeat(5_000),
];
/** Numbers at the ends of what is stored. */
const NUMBERS = [0, 1, -1, 1_700_000_000_000, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER];
/** The columns of flags; both databases keep them as small integers. */
const FLAGS = Object.values(TABLES).flatMap(({ columns }) =>
  Object.entries(columns).flatMap(([name, column]) => {
    const type = typeof column === "string" ? column : column.type;
    return type.startsWith("flag") ? [name] : [];
  })
);

/** Options of a fill. */
interface FillOptions {
  readonly rows: number;
  /** From 0 to below 1. */
  readonly random: () => number;
  /** Time that byte strings are at most; 300 when absent. */
  readonly bytes?: number;
  /** Further texts. */
  readonly texts?: readonly string[];
}

/** Makes a database file whose tables hold random rows of every kind that they can, the claims all long over. */
export function fillRandomly(path: string, options: FillOptions): void {
  const connection = new SqliteConnection(path);
  // Past the door of the store, which lets no U+0000 in; older releases did.
  const database = new DatabaseSync(path);
  try {
    migrate(connection);
    database.exec("PRAGMA synchronous = OFF; BEGIN");
    for (const table of connection.perform(storeTables())) {
      const mayLack = nullable(connection, table.name);
      const names = table.columns.map(({ name }) => `"${name}"`);
      const values = names.map(() => "?").join();
      const insert = database.prepare(`INSERT INTO ${table.name} (${names.join()}) VALUES (${values})`);
      for (let index = 0; index < options.rows; index++) {
        insert.run(...randomRow(table, { index, mayLack, ...options }));
      }
    }
    // Those that came last are gone again, and their numbers are not to come back.
    for (const name of ["audit", "removal"]) database.exec(`DELETE FROM ${name} WHERE seq > 5`);
    database.exec("COMMIT");
  } finally {
    database.close();
    connection.close();
  }
}

interface RowOptions extends FillOptions {
  readonly index: number;
  readonly mayLack: ReadonlySet<string>;
}

function nullable(connection: SqliteConnection, table: string): RowOptions["mayLack"] {
  const rows = connection.all(`SELECT name FROM pragma_table_xinfo(?) WHERE "notnull" = 0`, table);
  return new Set(rows.map((row) => String(row["name"])));
}

function randomRow(table: StoreTable, options: RowOptions): readonly Value[] {
  return table.columns.map(({ name, kind }) => {
    const fixed = fixedValue(table.name, name, options.index);
    if (fixed !== undefined) return fixed;
    return options.mayLack.has(name) && options.random() < 0.3 ? null : randomValue(kind, options);
  });
}

/**
 * The name of a row, and of the row of another table that it refers to. Numbers leave gaps, as those of removed
 * rows do.
 */
function fixedValue(table: string, column: string, index: number): Value | undefined {
  const ofAnother = { endpoint_id: "endpoint", event_id: "event", version_id: "workflow_version" }[column] ??
    (column === "trigger_id" ? "workflow_trigger" : undefined);
  if (ofAnother !== undefined) return `${ofAnother}-id-${index} \u00e9`;
  if (["id", "key", "name", "hash", "claim_id"].includes(column)) return `${table}-${column}-${index} \u00e9`;
  if (["seq", "delivery_seq", "execution_seq", "replay_seq"].includes(column)) return index * 3 + 2;
  if (["number", "position"].includes(column)) return index;
  if (column === "lease_until") return 1_700_000_000_000 - index;
  return FLAGS.includes(column) ? index % 2 : undefined;
}

function randomValue(
  kind: StoreTable["columns"][number]["kind"],
  { random, bytes = 300, texts = [] }: FillOptions,
): Value {
  if (kind === "number") return oneOf(NUMBERS, random);
  if (kind === "text") return oneOf([...TEXTS, ...texts], random);
  return Uint8Array.from({ length: Math.floor(random() * bytes) }, () => Math.floor(random() * 256));
}

function oneOf(values: readonly [Value, ...Value[]] | readonly Value[], random: () => number): Value {
  return values[Math.floor(random() * values.length)] ?? "";
}

/** Has a store do what a service has it do. */
export async function fillLikeService(store: WebhookStore): Promise<void> {
  const to = await addEndpoint(store);
  await store.write(createTrigger, trigger(), audit());
  await store.write(createTrigger, signedTrigger(), audit());
  await store.write(createEventKey, eventKey(), audit());
  const idempotency = { scope: "s", key: "k", bodyHash: "h" };
  const body = new Uint8Array([0, 255, 0]);
  await store.write(acceptEvent, { id: newId(), kind: "a.b", body }, { now: NOW, idempotency });
  await claimOne(store, to);
  await addEvent(store);
  await saveVersion(store);
  await store.write(acceptExecution, execution(), { now: NOW });
}

/** Everything that a database file holds, with the numbers that its tables have given; what is not read is no row. */
export function allRows(path: string): Readonly<Record<string, readonly string[]>> {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const names = [...TABLE_NAMES, "sqlite_sequence"];
    return Object.fromEntries(names.map((name) => [name, rowTexts(database, name)]));
  } finally {
    database.close();
  }
}

/** Texts are read as bytes, since the client reads them to their first U+0000 only. */
function rowTexts(database: DatabaseSync, table: string): readonly string[] {
  const columns = database.prepare("SELECT name FROM pragma_table_xinfo(?)").all(table).map(({ name }) => {
    return `CASE typeof(${name}) WHEN 'text' THEN 'text ' || hex(${name}) WHEN 'blob' THEN hex(${name}) ELSE ${name} END
      AS ${name}`;
  });
  const rows = database.prepare(`SELECT ${columns.join()} FROM ${table}`).all();
  return rows.map((row) => JSON.stringify(row, shown)).toSorted();
}

function shown(_: string, value: unknown): unknown {
  if (typeof value !== "string" || !value.startsWith("text ")) return value;
  return new TextDecoder().decode(Uint8Array.fromHex(value.slice("text ".length)));
}

/** Moves a store; `tell` hears the lines. Sessions that are about to end are waited for with patience. */
export function move(from: string, to: string, tell: (line: string) => void = () => {}): Promise<MovedStore> {
  // What is waited for 5 seconds elsewhere, is waited for a minute here.
  const clock = FakeClock.ofMachine({ factor: 12 });
  return moveStore({ from, to, clock, tell });
}

/** Moves a store whose sessions are there to stay: they are not waited for. */
export function moveInUse(from: string, to: string): Promise<MovedStore> {
  const clock = FakeClock.ofMachine({ factor: 1 / 1_000_000 });
  return moveStore({ from, to, clock, tell: () => {} });
}
