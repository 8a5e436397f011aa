import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { dirname } from "node:path";
import { errorText } from "../../../base/error_text.ts";
import { StoreError } from "../store.ts";
import { StoreFiles } from "./files.ts";
import {
  type Answer,
  NO_ANSWER,
  type Parameter,
  performed,
  type Row,
  type Statement,
  storedText,
  textOf,
  type Work,
} from "../work.ts";

/** How a database file is opened. */
export interface ConnectionOptions {
  /** How long a statement waits for another process that writes; 2 seconds when absent. */
  readonly busyTimeoutMs?: number | undefined;
  /** Whether nothing is written, and no file made. */
  readonly readOnly?: boolean | undefined;
  /** Said to the connection after our own; tests make a store small, or one that cannot be written, with it. */
  readonly pragmas?: readonly string[] | undefined;
}

const BUSY_TIMEOUT_MS = 2_000;
// For the switch to the write-ahead log nobody waits inside SQLite; so often it is asked again.
const OPEN_TRIES = 20;

/** Primary result codes of SQLite, as our codes. */
const CODES: Readonly<Record<number, StoreError["code"]>> = {
  5: "busy",
  6: "busy",
  8: "read_only",
  13: "full",
};

/** An open database file, whose statements are prepared once. Errors are `StoreError`s. */
export class SqliteConnection {
  /** Where the database file is. */
  readonly path: string;
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  readonly #files: StoreFiles | undefined;
  #open = true;

  /** Opens the file, which is made with its folder when missing; nobody else may read it. */
  constructor(path: string, options: ConnectionOptions = {}) {
    this.path = path;
    this.#database = translated(`Cannot open the store "${path}"`, () => {
      if (options.readOnly !== true) prepareFiles(path);
      return new DatabaseSync(path, {
        readOnly: options.readOnly ?? false,
        timeout: options.busyTimeoutMs ?? BUSY_TIMEOUT_MS,
        enableForeignKeyConstraints: true,
      });
    });
    try {
      if (options.readOnly !== true) this.#makeDurable();
      for (const pragma of options.pragmas ?? []) this.get(`PRAGMA ${pragma}`);
      if (options.readOnly !== true) this.#files = new StoreFiles(path);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Whether a transaction is under way; an error such as a full disk may have ended it. */
  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  /** All rows. */
  all(sql: string, ...parameters: readonly Parameter[]): readonly Row[] {
    return this.#run(sql, (statement) => statement.all(...parameters.map(bound)));
  }

  /** The first row. */
  get(sql: string, ...parameters: readonly Parameter[]): Row | undefined {
    // A statement that is left before its last row would keep its transaction open; all() goes to the end.
    return this.#run(sql, (statement) => statement.all(...parameters.map(bound))[0]);
  }

  /** Changes rows; answers how many. */
  run(sql: string, ...parameters: readonly Parameter[]): number {
    return this.#run(sql, (statement) => Number(statement.run(...parameters.map(bound)).changes));
  }

  /** Carries out an operation. */
  perform<T>(work: Work<T>): T {
    return performed(work, (statement) => this.#answer(statement));
  }

  /** Several statements of our own, without parameters. */
  script(sql: string): void {
    this.#check();
    translated("Cannot use the store", () => this.#database.exec(sql));
  }

  /** All of it or nothing, with the right to write taken first; throws when it was written to a file that is gone. */
  transaction<T>(run: () => T): T {
    this.#files?.refuseIfLost();
    const answer = this.#between("BEGIN IMMEDIATE", () => {
      const answer = run();
      this.checkFiles();
      return answer;
    });
    // The files may have been replaced during the commit.
    this.checkFiles();
    return answer;
  }

  /** Reads that all see the same state. */
  snapshot<T>(run: () => T): T {
    this.#files?.refuseIfLost();
    return this.#between("BEGIN", run);
  }

  /** Throws when the files were deleted or replaced since they were opened. */
  checkFiles(): void {
    this.#files?.check();
  }

  /** Moves the write-ahead log into the database and empties its file; false while another process reads it. */
  truncateLog(): boolean {
    const timeoutMs = Number(this.get("PRAGMA busy_timeout")?.["timeout"]);
    // Without waiting: a reader, such as a backup, may take long.
    this.script("PRAGMA busy_timeout = 0");
    try {
      return Number(this.get("PRAGMA wal_checkpoint(TRUNCATE)")?.["busy"]) === 0;
    } finally {
      this.script(`PRAGMA busy_timeout = ${timeoutMs}`);
    }
  }

  /** Ends the transaction, if SQLite has not done so itself. */
  rollBack(): void {
    if (this.#open && this.inTransaction) this.run("ROLLBACK");
  }

  /** Lets go of the file; twice is fine. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#statements.clear();
    this.#database.close();
  }

  #answer(statement: Statement): Answer {
    const { parameters, returns } = statement;
    const text = textOf(statement, "sqlite");
    if (text === "") return NO_ANSWER;
    if (returns === "rows") return { rows: this.all(text, ...parameters), changes: 0 };
    return { rows: [], changes: this.run(text, ...parameters) };
  }

  #between<T>(begin: string, run: () => T): T {
    this.run(begin);
    try {
      const answer = run();
      this.run("COMMIT");
      return answer;
    } catch (error) {
      this.rollBack();
      throw error;
    }
  }

  #run<T>(sql: string, use: (statement: StatementSync) => T): T {
    this.#check();
    return translated("Cannot use the store", () => {
      let statement = this.#statements.get(sql);
      if (statement === undefined) {
        statement = this.#database.prepare(sql);
        this.#statements.set(sql, statement);
      }
      return use(statement);
    });
  }

  #check(): void {
    if (!this.#open) throw new StoreError("closed", `Cannot use the store "${this.path}": it is closed`);
  }

  #makeDurable(): void {
    for (let tries = 1;; tries++) {
      try {
        this.get("PRAGMA journal_mode = WAL");
        break;
      } catch (error) {
        if (tries === OPEN_TRIES || !(error instanceof StoreError && error.code === "busy")) throw error;
        // This does wait inside SQLite for whoever is in the way.
        this.snapshot(() => this.get("SELECT count(*) FROM sqlite_schema"));
      }
    }
    this.get("PRAGMA synchronous = FULL");
    // What was erased is not to be found in the file.
    this.get("PRAGMA secure_delete = ON");
    this.get("PRAGMA journal_size_limit = 67108864");
    // In KiB. Identifiers are random, so that each write touches many pages of the indexes over them.
    this.get("PRAGMA cache_size = -32768");
  }
}

/** What went wrong, as an error of the store. */
export function storeError(what: string, error: unknown): StoreError {
  if (error instanceof StoreError) return error;
  const number = error instanceof Error && "errcode" in error ? Number(error.errcode) & 0xff : 0;
  return new StoreError(CODES[number] ?? "failed", `${what}: ${errorText(error)}`, { cause: error });
}

function translated<T>(what: string, run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw storeError(what, error);
  }
}

function bound(parameter: Parameter): SQLInputValue {
  if (parameter === undefined) return null;
  if (typeof parameter === "string") return storedText(parameter);
  if (typeof parameter === "boolean") return Number(parameter);
  return isList(parameter) ? JSON.stringify(parameter) : parameter;
}

function prepareFiles(path: string): void {
  Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  Deno.openSync(path, { create: true, write: true, mode: 0o600 }).close();
  // SQLite gives its files beside the mode of the database; those of an earlier start may have another.
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    try {
      Deno.chmodSync(file, 0o600);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}

function isList(parameter: Parameter): parameter is readonly string[] | readonly number[] {
  return Array.isArray(parameter);
}
