import type { Sealed } from "../model/records.ts";
import { integer, sealedOf, text } from "./rows.ts";
import { TABLES } from "./tables.ts";
import { all, run, type Work } from "./work.ts";

/** A column of encrypted values, and one with the ids of their keys. */
export interface SealedColumns {
  readonly table: string;
  readonly keyId: string;
  readonly bytes: string;
}

/** Every place of encrypted values. Its tables have a `seq` and an `id`. */
export const SEALED_COLUMNS: readonly SealedColumns[] = [
  { table: "endpoint_secret", keyId: "key_id", bytes: "bytes" },
  { table: "endpoint", keyId: "headers_key_id", bytes: "headers_bytes" },
  { table: "endpoint", keyId: "authentication_key_id", bytes: "authentication_bytes" },
  { table: "endpoint", keyId: "tls_key_id", bytes: "tls_bytes" },
  { table: "trigger_secret", keyId: "key_id", bytes: "bytes" },
];

/** An encrypted value with the number of its row. */
export interface SealedRow {
  readonly seq: number;
  readonly id: string;
  readonly sealed: Sealed;
}

/** Those places that a version of the schema has. */
export function sealedColumnsOf(version: number): readonly SealedColumns[] {
  return SEALED_COLUMNS.filter((columns) => {
    const table = TABLES[columns.table];
    const column = table?.columns[columns.bytes];
    const since = typeof column === "object" ? column.since : undefined;
    return (since ?? table?.since ?? 1) <= version;
  });
}

/** Values that other keys than this one encrypt, after a row and in their order. */
export function* sealedByOthers(
  columns: SealedColumns,
  keyId: string,
  { after, max }: { readonly after: number; readonly max: number },
): Work<readonly SealedRow[]> {
  const rows = yield* all(
    `SELECT seq, id, ${columns.keyId} AS key_id, ${columns.bytes} AS bytes FROM ${columns.table}
     WHERE ${columns.keyId} <> ? AND seq > ? ORDER BY seq LIMIT ?`,
    ...[keyId, after, max],
  );
  return rows.map((row) => ({ seq: integer(row, "seq"), id: text(row, "id"), sealed: sealedOf(row) }));
}

/** Replaces values that nothing has replaced since they were read; returns how many. */
export function* replaceSealed(
  { table, keyId, bytes }: SealedColumns,
  changes: readonly { readonly before: SealedRow; readonly after: Sealed }[],
): Work<number> {
  let replaced = 0;
  // Claims lock endpoints in this order; in another one, each would wait for the other.
  const inOrder = changes.toSorted((a, b) => a.before.id < b.before.id ? -1 : 1);
  for (const { before: { seq, sealed }, after } of inOrder) {
    replaced += yield* run(
      `UPDATE ${table} SET ${keyId} = ?, ${bytes} = ? WHERE seq = ? AND ${keyId} = ? AND ${bytes} = ?`,
      ...[after.keyId, after.bytes, seq, sealed.keyId, sealed.bytes],
    );
  }
  return replaced;
}

/** The number of values that each key encrypts, by its id. */
export function* countSealed(places: readonly SealedColumns[]): Work<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  for (const { table, keyId } of places) {
    const rows = yield* all(
      `SELECT ${keyId} AS key_id, count(*) AS count FROM ${table} WHERE ${keyId} IS NOT NULL GROUP BY ${keyId}`,
    );
    for (const row of rows) {
      const id = text(row, "key_id");
      counts[id] = (counts[id] ?? 0) + integer(row, "count");
    }
  }
  return counts;
}
