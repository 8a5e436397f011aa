import { assertEquals } from "@std/assert";
import { SEALED_COLUMNS, sealedColumnsOf } from "../../../../src/webhooks/store/sealed.ts";
import { SCHEMA_VERSION } from "../../../../src/webhooks/store/schema.ts";
import { TABLES } from "../../../../src/webhooks/store/tables.ts";

/** Columns of bytes that are not encrypted. */
const IN_CLEAR = ["event.body"];

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
