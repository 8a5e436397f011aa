import type { AuditEntry } from "../model/records.ts";
import { addAudit } from "./audit_log.ts";
import { integer, text } from "./rows.ts";
import { get, type Row, run, type Work } from "./work.ts";

/** A pause of all deliveries, which holds for every process of the store until it is resumed. */
export interface DeliveryPause {
  readonly at: number;
  /** The administrator. */
  readonly actor: string;
}

const NAME = "name = 'deliveries'";
const FIND = `SELECT at, actor FROM pause WHERE ${NAME}`;
const BEGIN = "INSERT INTO pause (name, at, actor) VALUES ('deliveries', ?, ?) ON CONFLICT (name) DO NOTHING";
const END = `DELETE FROM pause WHERE ${NAME}`;

/** The columns of a pause, for a statement about something else; NULL without a pause. */
export const PAUSE_COLUMNS = ["at", "actor"]
  .map((column) => `(SELECT ${column} FROM pause WHERE ${NAME}) AS ${column}`).join(", ");

/** A condition: deliveries are not paused. */
export const NOT_PAUSED = `NOT EXISTS (SELECT 1 FROM pause WHERE ${NAME})`;

/** The pause of a row; undefined without one, also where the columns are NULL. */
export function pauseOf(row: Row | undefined): DeliveryPause | undefined {
  if (row === undefined || row["at"] === null) return undefined;
  return { at: integer(row, "at"), actor: text(row, "actor") };
}

/** The pause, if deliveries are paused. */
export function* findPause(): Work<DeliveryPause | undefined> {
  return pauseOf(yield* get(FIND));
}

/** Pauses deliveries: no attempt begins from now on. A pause that exists stays as it is, without an audit entry. */
export function* pauseDeliveries(audit: AuditEntry): Work<DeliveryPause> {
  if ((yield* run(BEGIN, audit.at, audit.actor)) > 0) yield* addAudit(audit);
  return (yield* findPause()) ?? audit;
}

/** Ends the pause, if there is one. */
export function* resumeDeliveries(audit: AuditEntry): Work<void> {
  if ((yield* run(END)) > 0) yield* addAudit(audit);
}
