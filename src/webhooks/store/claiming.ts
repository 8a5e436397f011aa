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
