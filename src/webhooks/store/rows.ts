import type { FailureRun } from "../model/endpoint_health.ts";
import type {
  Attempt,
  AuditEntry,
  Delivery,
  Endpoint,
  EndpointSecret,
  EventKey,
  Execution,
  ExecutionStep,
  IdempotencyRow,
  Replay,
  Sealed,
  StoredKey,
  Trigger,
  TriggerSecret,
  WebhookEvent,
} from "../model/records.ts";
import type { Kind } from "./table.ts";
import { TABLES } from "./tables.ts";
import { type Parameter, type Row, run, type Work } from "./work.ts";

type Values = Readonly<Record<string, Parameter>>;

interface Field {
  readonly name: string;
  readonly column: string;
  readonly kind: Kind;
  readonly isOptional: boolean;
}

/** A table whose rows are records; a column has the name of its field, in snake case. */
class RecordTable<T> {
  readonly #table: string;
  readonly #fields: readonly Field[];

  /** With the columns that are no fields, and the fields whose columns have other names. */
  constructor(
    table: string,
    omitted: readonly string[] = [],
    renamed: Readonly<Record<string, string>> = {},
  ) {
    this.#table = table;
    this.#fields = Object.entries(TABLES[table]?.columns ?? {}).flatMap(([column, description]) => {
      const { type, generated = undefined } = typeof description === "string"
        ? { type: description }
        : description;
      if (type === "sequence" || generated !== undefined || omitted.includes(column)) return [];
      const name = renamed[column] ?? column.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
      return { name, column, kind: type.replace("?", "") as Kind, isOptional: type.endsWith("?") };
    });
  }

  /** The record of a row, without absent fields: it equals the record that was written. */
  read(row: Row): T {
    const record: Record<string, unknown> = {};
    for (const { name, column, kind, isOptional } of this.#fields) {
      if (!isOptional || row[column] !== null) record[name] = READERS[kind](row, column);
    }
    return record as T;
  }

  /** Inserts a record, with the values of columns that are no fields. */
  *insert(record: Partial<T>, columns: Values = {}, conflict = ""): Work<number> {
    const [names, values] = this.#given(record, columns);
    const marks = names.map(() => "?").join(", ");
    const into = `INSERT INTO ${this.#table} (${names.join(", ")})`;
    return yield* run(`${into} VALUES (${marks}) ${conflict}`, ...values);
  }

  /** Changes the fields that are defined, `null` to NULL; returns how many rows have the id. */
  *update(id: string, record: Readonly<Record<string, unknown>>, columns: Values = {}): Work<number> {
    const [names, values] = this.#given(record, columns);
    const changes = names.map((name) => `${name} = ?`).join(", ");
    return yield* run(`UPDATE ${this.#table} SET ${changes} WHERE id = ?`, ...values, id);
  }

  #given(
    record: object,
    columns: Values,
  ): readonly [columns: readonly string[], values: readonly Parameter[]] {
    const fields = new Map<string, unknown>(Object.entries(record));
    const values = this.#fields.map(({ name, column, kind }) => {
      const value = fields.get(name) as Parameter;
      return [column, kind === "json" && value ? JSON.stringify(value) : value] as const;
    });
    const given = [...values, ...Object.entries(columns)].filter(([, value]) => value !== undefined);
    return [given.map(([column]) => column), given.map(([, value]) => value)];
  }
}

const READERS: Readonly<Record<Kind, (row: Row, column: string) => unknown>> = {
  number: integer,
  flag: (row, column) => integer(row, column) !== 0,
  text,
  json: (row, column) => JSON.parse(text(row, column)),
  bytes,
};

const ENDPOINT_SEALED = ["headers", "authentication", "tls"]
  .flatMap((name) => [`${name}_key_id`, `${name}_bytes`]);

/** The record tables; headers, secrets and keys of endpoints and triggers are added by their own files. */
export const RECORDS = {
  endpoints: new RecordTable<Endpoint>("endpoint", [...ENDPOINT_SEALED, "rate_state"], {
    data_filter: "filter",
  }),
  secrets: new RecordTable<EndpointSecret>("endpoint_secret", ["endpoint_id", "key_id", "bytes"]),
  failureRuns: new RecordTable<FailureRun>("endpoint_health", ["endpoint_id"]),
  triggers: new RecordTable<Trigger>("workflow_trigger", [], {
    rate_limit: "limit",
    call_condition: "when",
  }),
  triggerSecrets: new RecordTable<TriggerSecret>("trigger_secret", ["trigger_id", "key_id", "bytes"]),
  triggerKeys: new RecordTable<StoredKey>("trigger_key", ["trigger_id"]),
  eventKeys: new RecordTable<EventKey>("event_key"),
  idempotencyKeys: new RecordTable<IdempotencyRow>("idempotency"),
  events: new RecordTable<WebhookEvent>("event"),
  deliveries: new RecordTable<Delivery>("delivery", ["claim_resend_at", "attempts", "form"]),
  replays: new RecordTable<Replay>("replay", [], { data_filter: "filter" }),
  attempts: new RecordTable<Attempt>("attempt", ["delivery_seq"]),
  executions: new RecordTable<Execution>("execution", ["voids"], { trigger_event: "event" }),
  steps: new RecordTable<ExecutionStep>("execution_step", ["execution_seq"], {
    position: "index",
  }),
  audit: new RecordTable<AuditEntry>("audit"),
};

/** An integer of a row. */
export function integer(row: Row | undefined, column: string): number {
  const value = row?.[column];
  if (typeof value !== "number") throw unreadable(column, value);
  return value;
}

/** A text of a row. */
export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== "string") throw unreadable(column, value);
  return value;
}

/** The bytes of a row. */
export function bytes(row: Row, column: string): Uint8Array {
  const value = row[column];
  if (!(value instanceof Uint8Array)) throw unreadable(column, value);
  return value;
}

/** The encrypted value of a row; `prefix` is that of its columns. */
export function sealedOf(row: Row, prefix = ""): Sealed {
  return { keyId: text(row, `${prefix}key_id`), bytes: bytes(row, `${prefix}bytes`) };
}

/** An integer of a row, or nothing. */
export function integerOrNone(row: Row, column: string): number | undefined {
  return row[column] === null ? undefined : integer(row, column);
}

function unreadable(column: string, value: Row[string] | undefined): Error {
  const kind = value === null ? "nothing" : typeof value;
  return new TypeError(`Cannot read the column "${column}" of the store: it holds ${kind}`);
}
