import { type BodyForm, renderBody } from "../../model/delivery_body.ts";
import type { Endpoint } from "../../model/records.ts";
import { settingEach } from "../claiming.ts";
import { bytes, integer, text } from "../rows.ts";
import type { ClaimedDelivery } from "../store.ts";
import { all, get, postgresOnly, type Row, run, sql, sqliteOnly, type Work } from "../work.ts";

/** The body of a delivery as it is sent. */
type SentBody = Pick<ClaimedDelivery, "body" | "form" | "problem">;

const STORED = sql((d) => `SELECT delivery_seq, body FROM delivery_body WHERE ${d.among("delivery_seq")}`);
const SAVE = "ON CONFLICT (delivery_seq) DO UPDATE SET body = excluded.body";
const SAVE_ONE = sqliteOnly(`INSERT INTO delivery_body (delivery_seq, body) VALUES (?, ?) ${SAVE}`);
const SAVE_MANY = postgresOnly(`
  INSERT INTO delivery_body (delivery_seq, body)
  SELECT seq, body FROM unnest(CAST(? AS BIGINT[]), CAST(? AS BYTEA[])) AS given (seq, body) ${SAVE}`);
const SET_FORMS = settingEach("delivery", { name: "seq", type: "BIGINT" }, { form: { type: "TEXT" } });
/** The form of a delivery whose body could not be rendered: its next attempt renders it again. */
const UNRENDERED = "";
const EMPTY = new Uint8Array();

/**
 * The bodies of claimed deliveries: those of their events, or in the form of their endpoints. The first attempt renders
 * and stores it, so that later ones send the same bytes, also after a change of the endpoint. Absent without a payload.
 */
export function* sentBodies(
  claimed: readonly Row[],
  events: ReadonlyMap<string, Row>,
  endpoints: ReadonlyMap<string, Endpoint>,
): Work<ReadonlyMap<Row, SentBody>> {
  const stored = yield* storedBodies(claimed);
  const sent = new Map<Row, SentBody>();
  const forms = new Map<number, string | null>();
  const rendered: [seq: number, body: Uint8Array][] = [];
  for (const row of claimed) {
    const event = events.get(text(row, "event_id"));
    const endpoint = endpoints.get(text(row, "endpoint_id"));
    if (event === undefined || endpoint === undefined) continue;
    const eventBody = bytes(event, "body");
    const seq = integer(row, "seq");
    const before = row["form"] as BodyForm | typeof UNRENDERED | null;
    const isNew = integer(row, "attempts") === 1 || before === UNRENDERED;
    if (!isNew) {
      const body = stored.get(seq);
      sent.set(row, body === undefined || !before ? { body: eventBody } : { body, form: before });
      continue;
    }
    const { form, problem, body = EMPTY } = renderedOf(row, endpoint, event);
    sent.set(row, problem !== undefined ? { body, problem } : form === undefined ? { body } : { body, form });
    const after = problem === undefined ? form ?? null : UNRENDERED;
    if (after !== before) forms.set(seq, after);
    if (problem === undefined && form !== undefined) rendered.push([seq, body]);
  }
  yield* save(forms, rendered);
  return sent;
}

function renderedOf(row: Row, endpoint: Endpoint, event: Row) {
  const body = bytes(event, "body");
  const rendered = {
    id: text(row, "event_id"),
    kind: text(row, "event"),
    createdAt: integer(event, "created_at"),
    body,
  };
  const result: Partial<SentBody> = renderBody(endpoint, rendered) ?? { body };
  return result;
}

const SENT_BODY = `
  SELECT delivery.form, delivery_body.body AS rendered, event.body AS body
  FROM delivery JOIN event ON event.id = delivery.event_id
    LEFT JOIN delivery_body ON delivery_body.delivery_seq = delivery.seq
  WHERE delivery.id = ? AND delivery.attempts > 0`;

/** The body that the attempts of a delivery send; `undefined` before the first one and without a payload. */
export function* findSentBody(id: string): Work<Uint8Array | undefined> {
  const row = yield* get(SENT_BODY, id);
  if (row === undefined || row["form"] === UNRENDERED) return undefined;
  const column = row["form"] === null ? "body" : "rendered";
  return row[column] === null ? undefined : bytes(row, column);
}

function* storedBodies(claimed: readonly Row[]): Work<ReadonlyMap<number, Uint8Array>> {
  const seqs = claimed.filter((row) => row["form"] !== null && row["form"] !== UNRENDERED)
    .map((row) => integer(row, "seq"));
  if (seqs.length === 0) return new Map();
  const rows = yield* all(STORED, seqs);
  return new Map(rows.map((row) => [integer(row, "delivery_seq"), bytes(row, "body")]));
}

function* save(
  forms: ReadonlyMap<number, string | null>,
  rendered: readonly (readonly [seq: number, body: Uint8Array])[],
): Work<void> {
  if (forms.size > 0) yield* run(SET_FORMS, [...forms.values()], [...forms.keys()]);
  if (rendered.length === 0) return;
  // Each database skips the statement of the other.
  yield* run(SAVE_MANY, rendered.map(([seq]) => seq), rendered.map(([, body]) => body));
  for (const [seq, body] of rendered) yield* run(SAVE_ONE, seq, body);
}
