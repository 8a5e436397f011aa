import { type Answer, type Parameter, type Row, type Sql, type Statement, type Work } from "./work.ts";

type Value = string | number | bigint | boolean | Uint8Array | null | undefined;
type Values = Readonly<Record<string, Value>>;

/** Rows that a compound statement begins with; `place` is the number of their call. */
type GivenRow = Values & { readonly place: number };

/** A part of a compound statement. */
export interface Part {
  /** It names the columns of earlier parts with the names of these parts. */
  readonly text: string;
  /** The earlier parts as they are joined behind a `FROM` of the text; SQLite runs it for each row of the first. */
  readonly from: string;
  /** Replaces `{}` in PostgreSQL: the order of the rows, and their locks. */
  readonly order?: string | undefined;
  /** SQLite skips it for rows of the first part without a value in this column. */
  readonly needs?: string | undefined;
  /** SQLite skips it for rows with a value in this column for which that part has changed nothing. */
  readonly unless?: { readonly needs: string; readonly part: string } | undefined;
  /** SQLite runs it once for equal values: the other parts change none of its rows. */
  readonly isShared?: boolean | undefined;
  /** SQLite skips the part, or takes the rows of another. */
  readonly inSqlite?: { readonly as: string | undefined } | undefined;
}

/** The types of PostgreSQL of given columns. */
type GivenColumns = Readonly<Record<string, "TEXT" | "BIGINT" | "BYTEA">>;

/** The parts of a compound statement in order, and its result. */
interface CompoundOptions {
  readonly given: Readonly<Record<string, GivenColumns>>;
  readonly parts: Readonly<Record<string, Part>>;
  /** The result has these columns of the rows of these parts. */
  readonly answers: readonly string[];
  readonly columns: string;
}

/**
 * Several reads and changes for the rows of a list of calls. PostgreSQL runs them as one statement, in one round trip.
 * SQLite, which has no such statements, runs them one after another for each call, with the values of the earlier parts as
 * parameters; an insertion has the rows of its first part for which it changed a row. The `SELECT` of an `INSERT`, up to
 * the `{}`, is a `VALUES` there, since SQLite would prepare to undo the insertion of several rows.
 */
export class CompoundStatement {
  readonly #given: readonly (readonly [name: string, columns: readonly string[]])[];
  readonly #postgres: Sql;
  readonly #parts: readonly SqlitePart[];
  /** The numbers of the parts that are the result. */
  readonly #answers: readonly number[];

  constructor({ given, parts, answers, columns }: CompoundOptions) {
    const tables = Object.entries(given);
    this.#given = tables.map(([name, types]) => [name, ["place", ...Object.keys(types)]]);
    const names = [...Object.keys(given), ...Object.keys(parts)];
    this.#answers = answers.map((name) => names.indexOf(name));
    const withs = [
      ...tables.map(([name, types]) => `${name} AS MATERIALIZED (${unnested(name, types)})`),
      ...Object.entries(parts).map(([name, { text, order = "" }]) =>
        `${name} AS ${isSelect(text) ? "MATERIALIZED " : ""}(${text.replace("{}", order)})`
      ),
    ];
    const result = answers.map((name) => `SELECT ${columns} FROM ${name}`).join(" UNION ALL ");
    this.#postgres = { sqlite: "", postgres: `WITH ${withs.join(",\n  ")}\n  ${result}` };
    this.#parts = Object.values(parts).map((part) => sqlitePart(part, names));
  }

  /** Runs it for given rows; `isAlone` where it is the only statement of an operation. */
  *run(given: GivenRows, isAlone = false): Work<readonly Row[]> {
    const columns = this.#given;
    const call: CompoundCall = {
      sql: this.#postgres,
      // SQLite does not read them.
      get parameters() {
        return columns.flatMap(([name, columns]) => {
          return columns.map((column) =>
            (given[name] ?? []).map((row) => row[column])
          ) as readonly Parameter[];
        });
      },
      returns: "rows",
      isAlone,
      inSqlite: (answer) => this.#runInSqlite(given, answer),
    };
    return (yield call).rows;
  }

  #runInSqlite(given: GivenRows, answer: (statement: Statement) => Answer): readonly Row[] {
    const [calls = NO_GIVEN, ...others] = this.#given.map(([name]) => given[name] ?? NO_GIVEN);
    const byPlace = others.map((rows) => Map.groupBy(rows, ({ place }) => place));
    const rows: Values[] = [];
    const answers: Answers = { answer, shared: new Map() };
    for (const call of calls) {
      const found: (readonly Values[])[] = [
        [call],
        ...byPlace.map((other) => other.get(call.place) ?? NO_ROWS),
      ];
      for (const part of this.#parts) found.push(rowsOf(part, found, answers));
      for (const number of this.#answers) {
        for (const row of found[number] ?? NO_ROWS) {
          rows.push("place" in row ? row : { ...row, place: call.place });
        }
      }
    }
    return rows as readonly Row[];
  }
}

type GivenRows = Readonly<Record<string, readonly GivenRow[]>>;

/** A call of a compound statement. */
interface CompoundCall extends Statement {
  /** Runs its parts by statements of SQLite. */
  inSqlite(answer: (statement: Statement) => Answer): readonly Row[];
}

/** True for a call of a compound statement. */
export function isCompound(statement: Statement): statement is CompoundCall {
  return "inSqlite" in statement;
}

/** A part for SQLite, with the numbers of the parts that it names. */
interface SqlitePart {
  readonly sql: Sql;
  readonly returns: Statement["returns"];
  readonly isShared: boolean;
  readonly isSkipped: boolean;
  readonly needs: string | undefined;
  readonly unless: { readonly needs: string; readonly part: number } | undefined;
  readonly as: number | undefined;
  /** Runs for each row of the first of these parts, if the others have one. */
  readonly first: number;
  readonly others: readonly number[];
  /** The values that are its parameters. */
  readonly values: readonly (readonly [part: number, column: string])[];
}

const NO_ROWS: readonly Values[] = [];
const NO_GIVEN: readonly GivenRow[] = [];
const REFERENCE = /\b(\w+)\.(\w+)\b/g;

function sqlitePart(
  { text, from, needs, unless, isShared = false, inSqlite }: Part,
  names: readonly string[],
): SqlitePart {
  const references = new Map<string, readonly [part: number, column: string]>();
  const sqlite = withoutParts(text, from, names).replaceAll(
    REFERENCE,
    (reference, part: string, column: string) => {
      if (!names.includes(part)) return reference;
      references.set(reference, [names.indexOf(part), column]);
      return `?${[...references.keys()].indexOf(reference) + 1}`;
    },
  );
  const joined = from.matchAll(/(?:^|(?<!LEFT )JOIN )(\w+)/g).map(([, part = ""]) => names.indexOf(part));
  const [first = 0, ...others] = joined;
  return {
    sql: { sqlite, postgres: "" },
    returns: isSelect(text) || !isInsert(text) && text.includes("RETURNING") ? "rows" : "changes",
    isShared,
    isSkipped: inSqlite !== undefined,
    needs,
    unless: unless && { needs: unless.needs, part: names.indexOf(unless.part) },
    as: inSqlite?.as === undefined ? undefined : names.indexOf(inSqlite.as),
    first,
    others,
    values: [...references.values()],
  };
}

function isSelect(text: string): boolean {
  return text.trimStart().startsWith("SELECT");
}

function isInsert(text: string): boolean {
  return text.trimStart().startsWith("INSERT");
}

function withoutParts(text: string, from: string, names: readonly string[]): string {
  if (isInsert(text)) {
    const [columns = "", selected = ""] = text.replace(/RETURNING [^]*$/, "").split("SELECT ");
    const [values = "", rest = ""] = selected.split(`FROM ${from}`);
    return `${columns}VALUES (${values}) ${rest.slice(rest.indexOf("{}") + "{}".length)}`;
  }
  const [begin = "", rest = ""] = text.replace("{}", "").split(`FROM ${from}`);
  const statement = `${begin}${isSelect(text) ? `FROM ${rest.replace(/^, /, "")}` : rest}`;
  // The columns of earlier parts in the result, which these parts have.
  return statement.replace(/(SELECT|RETURNING) (?:\w+\.\w+, )+/, (columns) => {
    return columns.replaceAll(/(\w+)\.\w+, /g, (column, part: string) => names.includes(part) ? "" : column);
  });
}

/** The answers to statements of SQLite. */
interface Answers {
  answer(statement: Statement): Answer;
  /** Of shared parts, by the statement and its values. */
  readonly shared: Map<string, Answer>;
}

function rowsOf(
  part: SqlitePart,
  found: readonly (readonly Values[])[],
  answers: Answers,
): readonly Values[] {
  const { needs, unless, first, others } = part;
  if (part.as !== undefined) return found[part.as] ?? NO_ROWS;
  if (part.isSkipped || others.some((number) => found[number]?.length === 0)) return NO_ROWS;
  const rows: Values[] = [];
  for (const row of found[first] ?? NO_ROWS) {
    if (needs !== undefined && isAbsent(row[needs])) continue;
    if (unless !== undefined && !isAbsent(row[unless.needs]) && found[unless.part]?.length === 0) continue;
    const { rows: returned, changes } = answerOf(part, row, found, answers);
    if (changes > 0) rows.push(row);
    for (const one of returned) rows.push({ ...row, ...one });
  }
  return rows;
}

function answerOf(
  { sql, returns, values, first, isShared }: SqlitePart,
  row: Values,
  found: readonly (readonly Values[])[],
  { answer, shared }: Answers,
): Answer {
  const parameters = values.map(([number, column]) =>
    (number === first ? row : found[number]?.[0])?.[column] as Parameter
  );
  if (!isShared) return answer({ sql, parameters, returns });
  const key = `${sql.sqlite}\0${parameters.join("\0")}`;
  const known = shared.get(key);
  if (known !== undefined) return known;
  const result = answer({ sql, parameters, returns });
  shared.set(key, result);
  return result;
}

function isAbsent(value: Value): boolean {
  return value === undefined || value === null;
}

function unnested(name: string, types: GivenColumns): string {
  const columns = ["place", ...Object.keys(types)];
  const lists = ["BIGINT", ...Object.values(types)].map((type) => `CAST(? AS ${type}[])`);
  return `SELECT * FROM unnest(${lists.join(", ")}) AS ${name} (${columns.join(", ")})`;
}
