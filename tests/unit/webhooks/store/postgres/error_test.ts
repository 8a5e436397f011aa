import { assertEquals } from "#assert";
import pg from "pg";
import {
  endsSession,
  isConflict,
  PostgresError,
  postgresError,
} from "../../../../../src/webhooks/store/postgres/error.ts";
import { StoreError } from "../../../../../src/webhooks/store/store.ts";
import { ConflictError } from "../../../../../src/webhooks/store/work.ts";

Deno.test("each error of PostgreSQL becomes the one of the store that says what to do", () => {
  const cases:
    readonly (readonly [state: string, code: StoreError["code"], repeats: boolean, ends: boolean])[] = [
      ["40001", "busy", true, false],
      ["40P01", "busy", true, false],
      ["53100", "full", false, false],
      ["53200", "busy", false, false],
      ["53300", "busy", false, false],
      ["25006", "read_only", false, true],
      ["25P03", "busy", false, false],
      ["55P03", "busy", false, false],
      ["57014", "busy", false, false],
      ["57P01", "busy", false, false],
      ["57P03", "busy", false, false],
      ["08006", "busy", false, false],
      ["23503", "busy", false, false],
      ["26000", "busy", false, true],
      ["23505", "failed", false, false],
      ["42P01", "failed", false, false],
      ["42501", "failed", false, false],
      ["28P01", "failed", false, false],
      ["0A000", "failed", false, false],
    ];
  for (const [state, code, repeats, ends] of cases) {
    const error = said(state, "of that kind");
    const made = postgresError("Cannot do", error);
    assertEquals(
      [made.code, made.message, isConflict(error), isConflict(made), endsSession(error)],
      [code, `Cannot do: of that kind (${state})`, repeats, repeats, ends],
      state,
    );
  }
});

Deno.test("errors of the network are no errors of the server, and those of the store stay what they are", () => {
  const network = Object.assign(new Error("write EPIPE"), { code: "EPIPE" });
  const closed = new StoreError("closed", "it is");
  assertEquals(
    [postgresError("Cannot do", network, true).code, postgresError("Cannot do", network).code],
    ["busy", "failed"],
  );
  assertEquals(postgresError("Cannot do", closed, true), closed);
  const fatal = Object.assign(said("57P01", "over"), { severity: "FATAL" });
  const stale = said("0A000", "cached plan must not change result type");
  assertEquals([endsSession(fatal), endsSession(stale), endsSession(network)], [true, true, false]);
  assertEquals(postgresError("Cannot do", stale).code, "busy");
  assertEquals([isConflict(new ConflictError()), isConflict(network), isConflict(undefined)], [
    true,
    false,
    false,
  ]);
});

Deno.test("what the server quotes of rows is in no error", () => {
  const error = Object.assign(said("23505", "duplicate"), {
    detail: "Key (id)=(hush) exists",
    where: "hush",
  });
  const made = postgresError("Cannot do", error);
  assertEquals(made instanceof PostgresError && made.sqlState, "23505");
  assertEquals(Deno.inspect(made, { depth: 9, showHidden: true }).includes("hush"), false);
});

function said(code: string, message: string): Error {
  return Object.assign(new pg.DatabaseError(message, message.length, "error"), { code, severity: "ERROR" });
}
