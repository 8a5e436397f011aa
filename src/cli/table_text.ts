import { isJsonObject, type JsonObject, type JsonValue } from "../base/exact_json.ts";
import { compact, JsonText } from "../base/json_text.ts";
import { plainText, shortened } from "./plain_text.ts";
import { relativeTime } from "./relative_time.ts";

const MAX_CELL = 60;
/** Columns whose end matters most: it has the cause. */
const WHOLE: ReadonlySet<string> = new Set(["detail", "why"]);
/** A list in place of whose row its own are shown: each of them has the fields of that row. */
const SEVERAL = "windows";
const NOTHING = "-";

/** Options of texts of values. */
interface TextOptions {
  /** The time to which times are relative; they are shown as they are when absent. */
  readonly now?: number | undefined;
  /** The order of the columns of lists of records, by the field that they are in. */
  readonly columns?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** Formats the rows of a table, also page by page: its columns never get narrower. */
export class TableText {
  readonly #columns: readonly string[];
  readonly #widths: number[];
  readonly #options: TextOptions;
  #hasHead = false;

  constructor(columns: readonly string[], options: TextOptions = {}) {
    this.#columns = columns;
    this.#options = options;
    this.#widths = columns.map(widthOf);
  }

  /** The lines of these rows; those of the first call begin with the names of the columns. */
  lines(rows: readonly JsonObject[]): string[] {
    const cells = rows.map((row) => this.#columns.map((name) => cellText(row, name, this.#options)));
    for (const row of cells) {
      row.forEach((cell, index) => this.#widths[index] = Math.max(this.#widths[index] ?? 0, widthOf(cell)));
    }
    const head = this.#hasHead ? [] : [this.#columns];
    this.#hasHead = true;
    return [...head, ...cells].map((row) => this.#line(row));
  }

  #line(cells: readonly string[]): string {
    return cells.map((cell, index) => padded(cell, this.#widths[index] ?? 0)).join("  ").trimEnd();
  }
}

/** A record whose objects are shown as they were sent: their keys in their order. */
export function asSent(record: JsonObject, sent: JsonText | undefined): JsonObject {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => {
      const text = sent?.get(name);
      if (isJsonObject(value)) return [name, text ?? value];
      if (!isRecords(value)) return [name, value];
      return [name, value.map((row, index) => asSent(row, text?.get(String(index))))];
    }),
  );
}

/** One record: a line for each field, and below them a table for each field that is a list of records. */
export function recordLines(record: JsonObject, options: TextOptions = {}): string[] {
  const fields = Object.entries(record);
  const plain = fields.filter(([, value]) => !isRecords(value));
  const width = Math.max(0, ...plain.map(([name]) => widthOf(name)));
  const lines = plain.map(([name, value]) => {
    const text = valueText(value);
    const relative = relativeText(value, options);
    return `${padded(plainText(name), width)}  ${text}${relative === undefined ? "" : ` (${relative})`}`;
  });
  for (const [name, value] of fields) {
    if (!isRecords(value)) continue;
    if (lines.length > 0) lines.push("");
    lines.push(`${plainText(name)}:`, ...tableLines(value, name, options));
  }
  return lines;
}

function cellText(row: JsonObject, name: string, options: TextOptions): string {
  const value = Object.hasOwn(row, name) ? row[name] : undefined;
  if (value !== undefined && isRecords(value)) return String(value.length);
  const text = relativeText(value, options) ?? fieldText(row, name);
  return WHOLE.has(name) ? text : shortened(text, MAX_CELL);
}

/** A field in one line. */
export function fieldText(record: JsonObject, name: string): string {
  return Object.hasOwn(record, name) ? valueText(record[name]) : NOTHING;
}

function tableLines(records: readonly JsonObject[], field: string, options: TextOptions): string[] {
  const rows = records.flatMap((record) => {
    const { [SEVERAL]: several = NOTHING, ...rest } = record;
    return isRecords(several) ? several.map((one) => ({ ...rest, ...one })) : [record];
  });
  const present = new Set(rows.flatMap((row) => Object.keys(row)));
  const known = options.columns?.[field] ?? [];
  const columns = [
    ...known.filter((name) => present.has(name)),
    ...[...present].filter((name) => !known.includes(name)),
  ];
  return new TableText(columns, options).lines(rows).map((line) => `  ${line}`);
}

function relativeText(value: JsonValue | undefined, { now }: TextOptions): string | undefined {
  return typeof value === "string" && now !== undefined ? relativeTime(value, now) : undefined;
}

function isRecords(value: JsonValue): value is readonly JsonObject[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => isJsonObject(item));
}

function valueText(value: JsonValue | undefined): string {
  if (value === undefined || value === null || value === "") return NOTHING;
  if (typeof value === "string") return plainText(value);
  if (value instanceof JsonText) return plainText(compact(value.text));
  if (!Array.isArray(value)) return plainText(JSON.stringify(value));
  if (value.length === 0) return NOTHING;
  const isPlain = value.every((item) => typeof item !== "object");
  return plainText(isPlain ? value.join(", ") : JSON.stringify(value));
}

function widthOf(text: string): number {
  return [...text].length;
}

function padded(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
}
