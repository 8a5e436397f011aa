import { assertEquals } from "#assert";
import { SEALED_COLUMNS, sealedColumnsOf } from "../../../../src/webhooks/store/sealed.ts";
import { MIGRATIONS, SCHEMA_VERSION } from "../../../../src/webhooks/store/schema.ts";
import type { Column, Table } from "../../../../src/webhooks/store/table.ts";
import { TABLES } from "../../../../src/webhooks/store/tables.ts";

/** The schema that 0.1.0 has. */
const RELEASED = 2;

Deno.test("schema: a later version adds no column that an older release would have to write", () => {
  const required = newParts((table) => table.columns).filter(([, part]) => {
    const column: Column = typeof part === "string" ? { type: part } : part;
    const isFilled = column.default !== undefined || column.generated !== undefined ||
      column.type.endsWith("?");
    return !isFilled;
  });
  assertEquals(required.map(([name]) => name), []);
});

Deno.test("schema: a later version adds no index that refuses what an older release writes", () => {
  const unique = newParts((table) => table.indexes ?? {}).filter(([, { isUnique }]) => isUnique === true);
  assertEquals(unique.map(([name]) => name), []);
});

Deno.test("schema: migrations of later versions remove and rename nothing", () => {
  for (const statements of Object.values(MIGRATIONS)) {
    const others = statements.slice(RELEASED).flat().filter((statement) => {
      return !/^(?:CREATE (?:UNIQUE )?(?:TABLE|INDEX)|ALTER TABLE \w+ ADD COLUMN|INSERT INTO)/.test(
        statement,
      );
    });
    assertEquals(others, []);
  }
});

/** The parts of tables of 0.1.0 that later versions add, by their names. */
function newParts<T>(
  partsOf: (table: Table) => Readonly<Record<string, T>>,
): readonly (readonly [string, T])[] {
  return Object.entries(TABLES)
    .filter(([, { since = 1 }]) => since <= RELEASED)
    .flatMap(([table, description]) =>
      Object.entries(partsOf(description)).map(([name, part]) => [`${table}.${name}`, part] as const)
    )
    .filter(([, part]) => ((part as { readonly since?: number }).since ?? 1) > RELEASED);
}

/** Columns of bytes that are not encrypted. */
const IN_CLEAR = ["event.body", "delivery_body.body"];

Deno.test("sealed columns: every column of bytes is listed, or not encrypted", () => {
  const columns = Object.entries(TABLES).flatMap(([table, { columns }]) =>
    Object.entries(columns)
      .filter(([, column]) => (typeof column === "string" ? column : column.type).startsWith("bytes"))
      .map(([name]) => `${table}.${name}`)
  );
  const listed = SEALED_COLUMNS.map(({ table, bytes }) => `${table}.${bytes}`);
  assertEquals([...listed, ...IN_CLEAR].toSorted(), columns.toSorted());
});

Deno.test("sealed columns: each has the column of its key, in a table with a seq and an id", () => {
  for (const { table, keyId } of SEALED_COLUMNS) {
    const columns = TABLES[table]?.columns ?? {};
    assertEquals([table, columns["seq"], columns["id"] !== undefined], [table, "sequence", true]);
    const key = columns[keyId];
    assertEquals([table, (typeof key === "string" ? key : key?.type)?.startsWith("text")], [table, true]);
  }
});

Deno.test("sealed columns: an older schema has those that it has", () => {
  assertEquals(sealedColumnsOf(SCHEMA_VERSION), SEALED_COLUMNS);
  assertEquals(sealedColumnsOf(1).map(({ table }) => table), ["endpoint_secret", "endpoint"]);
  assertEquals(sealedColumnsOf(0), []);
});
