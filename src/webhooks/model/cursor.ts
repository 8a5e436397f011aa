/** The lists of records that have cursors. */
export type ListName =
  | "endpoints"
  | "triggers"
  | "eventKeys"
  | "events"
  | "deliveries"
  | "replays"
  | "executions"
  | "audit";

/** The pattern of the cursors of a list: its name, and the number of the last record of a page. */
export function cursorPattern(list: string): string {
  return `${list}\\.[1-9][0-9]{0,14}`;
}

/** The cursor behind a record. */
export function cursorOf(list: ListName, seq: number): string {
  return `${list}.${seq}`;
}

/** The record of a cursor; undefined for a text that is no cursor of the list. */
export function seqOfCursor(list: ListName, cursor: string): number | undefined {
  const isCursor = new RegExp(`^${cursorPattern(list)}$`).test(cursor);
  return isCursor ? Number(cursor.slice(list.length + 1)) : undefined;
}
