import type { Table } from "./table.ts";

/** The tables of the service itself: its audit log, its upkeep and the episodes of limits. */
export const UPKEEP_TABLES: Readonly<Record<string, Table>> = {
  audit: {
    columns: {
      seq: "sequence",
      id: "text",
      at: "number",
      actor: "text",
      action: "text",
      object: "text",
      details: "json",
    },
    indexes: { audit_at: { on: ["at"], isOrdered: true }, audit_action: { on: ["action"], isOrdered: true } },
  },
  // What the removal of endpoints, payloads and triggers has left to do.
  removal: { columns: { seq: "sequence", kind: "text", id: "text", position: "number" }, since: 2 },
  // How far events were searched for old ones.
  swept: {
    columns: { name: "text", at: "number", seq: "number" },
    key: ["name"],
    sqliteKey: "clustered",
    since: 2,
  },
  // What is paused for all processes.
  pause: { columns: { name: "text", at: "number", actor: "text" }, key: ["name"], since: 4 },
  // When keys are over a limit or near it, over all instances: one row for each counter and event.
  limit_episode: {
    columns: {
      id: "text",
      event: "text",
      started_at: "number",
      ends_at: "number",
      hits: "number",
      // Of the events.
      facts: "json",
      // Whether its end was reported.
      closed: "flag",
    },
    key: ["id"],
    sqliteKey: "clustered",
    indexes: { limit_episode_end: { on: ["closed", "ends_at"] } },
    since: 4,
  },
  // The last batch of each process that reports operational events, so that a repeated one changes nothing.
  reporter: {
    columns: { id: "text", batch: "number", at: "number" },
    key: ["id"],
    sqliteKey: "clustered",
    since: 4,
  },
  // PostgreSQL adds rows and folds them later: all writers would wait for each other at one row of a name.
  tally: {
    columns: { seq: { type: "sequence", only: "postgres" }, name: "text", count: "number" },
    key: ["name"],
    sqliteKey: "clustered",
  },
  // Its rows are locked by operations of which only one may run at a time.
  turn: { columns: { name: "text" }, key: ["name"], since: 2, only: "postgres", values: "('suspect')" },
};
