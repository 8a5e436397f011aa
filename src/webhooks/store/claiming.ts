import type { Sql } from "./work.ts";

/**
 * Claims rows and returns them; `changes` are further ones. The parameters are the claims, the end of their lease, and
 * the numbers of the rows in the same order.
 */
export function claiming(table: "delivery" | "execution", changes = ""): Sql {
  return {
    sqlite: `UPDATE ${table} SET claim_id = CAST(? AS TEXT) ->> taken.key, lease_until = ?${changes}
      FROM json_each(?) AS taken WHERE ${table}.seq = taken.value RETURNING *`,
    postgres: `UPDATE ${table} SET claim_id = (CAST(? AS TEXT[]))[taken.place], lease_until = ?${changes}
      FROM unnest(CAST(? AS BIGINT[])) WITH ORDINALITY AS taken (number, place)
      WHERE ${table}.seq = taken.number RETURNING ${table}.*`,
  };
}

/** A column that is set, and its type in PostgreSQL; `value` is what it becomes, the given value when absent. */
interface SetColumn {
  readonly type: "TEXT" | "BIGINT";
  readonly value?: (given: string) => string;
}

/** Changes rows by their keys. The parameters are lists: the values of each column, and the keys in the same order. */
export function settingEach(
  table: string,
  key: { readonly name: string; readonly type: "TEXT" | "BIGINT" },
  columns: Readonly<Record<string, SetColumn>>,
): Sql {
  const changes = (given: (type: string) => string) =>
    Object.entries(columns)
      .map(([name, { type, value = (text: string) => text }]) => `${name} = ${value(given(type))}`)
      .join(", ");
  return {
    sqlite: `UPDATE ${table} SET ${changes(() => "(CAST(? AS TEXT) ->> taken.key)")}
      FROM json_each(?) AS taken WHERE ${table}.${key.name} = taken.value`,
    postgres: `UPDATE ${table} SET ${changes((type) => `(CAST(? AS ${type}[]))[taken.place]`)}
      FROM unnest(CAST(? AS ${key.type}[])) WITH ORDINALITY AS taken (key, place)
      WHERE ${table}.${key.name} = taken.key`,
  };
}
