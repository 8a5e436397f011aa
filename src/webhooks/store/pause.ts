import { integer, text } from "./rows.ts";
import { get, type Row, type Work } from "./work.ts";

/** A pause of all deliveries, which holds for every process of the store until it is resumed. */
export interface DeliveryPause {
  readonly at: number;
  /** The administrator. */
  readonly actor: string;
}

const NAME = "name = 'deliveries'";
const FIND = `SELECT at, actor FROM pause WHERE ${NAME}`;

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
