import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { dirname } from "node:path";
import { errorText } from "../../../base/error_text.ts";
import { FailedCall } from "../call_groups.ts";
import { isCompound } from "../compound_statement.ts";
import { type Call, runCalls } from "../list_operation.ts";
import { StoreError } from "../store.ts";
import { addTallies, talliedBy } from "../operations/tally.ts";
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

/** For a database file. */
export interface ConnectionOptions {
  /** Longest wait of a statement for the writes of another process; 2 seconds when absent. */
  readonly busyTimeoutMs?: number | undefined;
  /** True if nothing is written, and no file created. */
  readonly readOnly?: boolean | undefined;
  /** Run after our own, such as to limit the size of a store in tests. */
  readonly pragmas?: readonly string[] | undefined;
}

const BUSY_TIMEOUT_MS = 2_000;
// SQLite does not wait for a lock when it switches to the write-ahead log.
const OPEN_TRIES = 20;

/** By the primary result codes of SQLite. */
const CODES: Readonly<Record<number, StoreError["code"]>> = {
  5: "busy",
  6: "busy",
  8: "read_only",
  13: "full",
};

/** An open database file, whose statements are prepared once. Errors are `StoreError`s. */
export class SqliteConnection {
  readonly path: string;
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  /** The files that were opened, of a store that is written. */
  readonly #identities: Map<string, string> | undefined;
  #isLost = false;
  #open = true;

  /** Opens the file and creates it with its folder when missing; only its owner may read it. */
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
      if (options.readOnly !== true) {
        this.#identities = new Map();
        this.checkFiles();
      }
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** False after an error that ended the transaction, such as a full disk. */
  get inTransaction(): boolean {
    return this.#database.isTransaction;
  }

  /** All rows. */
  all(sql: string, ...parameters: readonly Parameter[]): readonly Row[] {
    return this.#all(sql, parameters);
  }

  /** The first row. */
  get(sql: string, ...parameters: readonly Parameter[]): Row | undefined {
    // A statement that is not read to its end would keep its transaction open.
    return this.#all(sql, parameters)[0];
  }

  /** Changes rows; returns how many. */
  run(sql: string, ...parameters: readonly Parameter[]): number {
    return this.#change(sql, parameters);
  }

  /** Runs an operation. */
  perform<T>(work: Work<T>): T {
    return performed(work, (statement) => this.#answer(statement));
  }

  /** Runs an operation that only reads, in one state of the database. */
  read<T>(work: Work<T>): T {
    if (this.#isLost) this.checkFiles();
    const first = work.next();
    const run = () => performed(work, (statement) => this.#answer(statement), first);
    // A single statement sees one state by itself.
    return first.done === true || first.value.isAlone === true ? run() : this.#between("BEGIN", run);
  }

  /** Runs statements without parameters. */
  script(sql: string): void {
    this.#check();
    translated("Cannot use the store", () => this.#database.exec(sql));
  }

  /**
   * Runs calls in one transaction that changes each tally once, those of one list operation as a list; if one throws, the
   * others again, and it is a `FailedCall`.
   */
  performAll(calls: readonly Call[]): readonly unknown[] {
    const tallied: Parameter[] = [];
    const answer = (statement: Statement) => {
      const counts = talliedBy(statement);
      if (counts === undefined) return this.#answer(statement);
      tallied.push(...counts);
      return NO_ANSWER;
    };
    let isSeparable = false;
    try {
      return this.transaction(() => {
        try {
          const results = performed(runCalls(calls), answer);
          this.perform(addTallies(tallied));
          return results;
        } catch (error) {
          // SQLite may have ended the whole transaction, such as when the disk is full.
          isSeparable = this.inTransaction;
          throw error;
        }
      });
    } catch (error) {
      if (!isSeparable) throw error;
      if (calls.length === 1) return [new FailedCall(error)];
    }
    return this.transaction(() => calls.map((call) => this.#performWithSavepoint(call)));
  }

  #performWithSavepoint({ operation, args }: Call): unknown {
    this.run("SAVEPOINT operation");
    try {
      const value = this.perform(operation(...args));
      this.run("RELEASE operation");
      return value;
    } catch (error) {
      if (!this.inTransaction) throw error;
      this.run("ROLLBACK TO operation");
      this.run("RELEASE operation");
      return new FailedCall(error);
    }
  }

  /** Runs a write transaction; throws when the file was deleted or replaced. */
  transaction<T>(run: () => T): T {
    if (this.#isLost) this.checkFiles();
    const result = this.#between("BEGIN IMMEDIATE", () => {
      const result = run();
      this.checkFiles();
      return result;
    });
    // The files may have been replaced during the commit.
    this.checkFiles();
    return result;
  }

  /** Runs reads that all see the same state. */
  snapshot<T>(run: () => T): T {
    if (this.#isLost) this.checkFiles();
    return this.#between("BEGIN", run);
  }

  /**
   * Throws when the files were deleted or replaced since they were opened: SQLite continues to write to a deleted file,
   * which the next start does not find.
   */
  checkFiles(): void {
    if (this.#identities === undefined) return;
    const lost = [this.path, `${this.path}-wal`].find((file) => !this.#isInPlace(file));
    this.#isLost = lost !== undefined;
    if (lost === undefined) return;
    throw new StoreError(
      "replaced",
      `Cannot use the store "${this.path}": "${lost}" was deleted or replaced; put the file that was opened back`,
    );
  }

  /** The size of the database without its log. */
  get fileBytes(): number {
    return this.#number("page_count") * this.#number("page_size");
  }

  /** The size of the database without the pages that removed rows have left. */
  get usedBytes(): number {
    return (this.#number("page_count") - this.#number("freelist_count")) * this.#number("page_size");
  }

  /** The size of the write-ahead log. */
  get logBytes(): number {
    return fileAt(`${this.path}-wal`)?.size ?? 0;
  }

  /** Moves the write-ahead log into the database and empties its file; false while another process reads it. */
  truncateLog(): boolean {
    const timeoutMs = Number(this.get("PRAGMA busy_timeout")?.["timeout"]);
    // Without waiting: a reader such as a backup may take long.
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

  /** Closes the file; a second call does nothing. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#statements.clear();
    this.#database.close();
  }

  /** SQLite creates the log with the first transaction. */
  #isInPlace(file: string): boolean {
    const known = this.#identities?.get(file);
    const found = identityOf(file);
    if (known === undefined && found !== undefined) this.#identities?.set(file, found);
    return known === undefined || known === found;
  }

  #answer(statement: Statement): Answer {
    if (isCompound(statement)) {
      return { rows: statement.inSqlite((one) => this.#answer(one)), changes: 0 };
    }
    const text = textOf(statement, "sqlite");
    if (text === "") return NO_ANSWER;
    const { parameters, returns } = statement;
    if (returns === "rows") return { rows: this.#all(text, parameters), changes: 0 };
    return { rows: [], changes: this.#change(text, parameters) };
  }

  #all(sql: string, parameters: readonly Parameter[]): readonly Row[] {
    return this.#run(sql, (statement) => statement.all(...parameters.map(bound)));
  }

  #change(sql: string, parameters: readonly Parameter[]): number {
    return this.#run(sql, (statement) => Number(statement.run(...parameters.map(bound)).changes));
  }

  #between<T>(begin: string, run: () => T): T {
    this.run(begin);
    try {
      const result = run();
      this.run("COMMIT");
      return result;
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

  #number(pragma: string): number {
    return Number(this.get(`PRAGMA ${pragma}`)?.[pragma]);
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
        // This waits for the lock.
        this.snapshot(() => this.get("SELECT count(*) FROM sqlite_schema"));
      }
    }
    this.get("PRAGMA synchronous = FULL");
    // Erased payloads must not remain in the file.
    this.get("PRAGMA secure_delete = ON");
    this.get("PRAGMA journal_size_limit = 67108864");
    // In KiB. Identifiers are random, so each write touches many pages of their indexes.
    this.get("PRAGMA cache_size = -32768");
    // In pages: those that many commits write to the log are then copied to the database only once.
    this.get("PRAGMA wal_autocheckpoint = 4000");
  }
}

/** An error as one of the store. */
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
  if (parameter === undefined || parameter === null) return null;
  if (typeof parameter === "string") return storedText(parameter);
  if (typeof parameter === "boolean") return Number(parameter);
  return typeof parameter === "object" && !(parameter instanceof Uint8Array)
    ? JSON.stringify(parameter)
    : parameter;
}

function prepareFiles(path: string): void {
  Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  Deno.openSync(path, { create: true, write: true, mode: 0o600 }).close();
  // SQLite creates its other files with the mode of the database; older ones may have another.
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    try {
      Deno.chmodSync(file, 0o600);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}

function identityOf(file: string): string | undefined {
  // By its path: to open and close the file would release the locks of SQLite.
  const found = fileAt(file);
  return found && `${found.dev}:${found.ino}`;
}

/** The file at a path; `undefined` for none. */
export function fileAt(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
