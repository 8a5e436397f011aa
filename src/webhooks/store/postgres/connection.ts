import process from "node:process";
import pg from "pg";
import type { TlsFileLog } from "../../../net/client_tls.ts";
import type { Clock } from "../../../base/clock.ts";
import { withTimeout } from "../../../base/wait.ts";
import {
  isSocketFolder,
  type PostgresAddress,
  type PostgresHost,
  type SslMode,
} from "../../../base/postgres_address.ts";
import { hostPort } from "../../../base/host_port.ts";
import { type ClientStream, openClientStream } from "./client_stream.ts";
import { endsSession, PostgresError, postgresError, sqlStateOf } from "./error.ts";
import { boundValue, columnReader, PreparedTexts } from "./text.ts";
import { explainedHandshake, readTls } from "./tls.ts";
import { StoreError } from "../store.ts";
import type { Answer, Parameter, Statement } from "../work.ts";

/** The timeouts of a connection. */
export interface PostgresSessionOptions {
  readonly clock: Clock;
  /** The address may name another. */
  readonly connectTimeoutMs: number;
  /** The server cancels a statement after this; 0 for no limit. */
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  /** Between two statements of a transaction; the statement timeout and 10 seconds when absent. */
  readonly idleTimeoutMs?: number | undefined;
  /** Logs files for TLS that keep their last good content. */
  readonly logger?: TlsFileLog | undefined;
}

/** The options of a connection. */
export interface PostgresConnectionOptions extends PostgresSessionOptions {
  /** Cancels the connection attempt. */
  readonly signal?: AbortSignal | undefined;
}

/** A transaction that writes, or one that only reads. */
export type TransactionKind = "write" | "read";

type Result = pg.QueryResult<Record<string, string | number | Uint8Array | null>>;

const BEGINS: Readonly<Record<TransactionKind, string>> = {
  write: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
  // All its statements see the same state.
  read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
};

/** A statement without an answer this long after its timeout breaks the connection: the server is stopped or unreachable. */
const GRACE_MS = 2_000;
const IDLE_MS = 10_000;
const FAREWELL_MS = 1_000;
const USE = "Cannot use the store";
const INVALID_AUTHORIZATION = "28000";

/** With or without TLS, in the order of the tries; the second only where the server refused the first. */
const TLS_ATTEMPTS: Readonly<Record<SslMode, readonly boolean[]>> = {
  "disable": [false],
  "allow": [false, true],
  "prefer": [true, false],
  "require": [true],
  "verify-ca": [true],
  "verify-full": [true],
};

/** A connection to PostgreSQL for one transaction at a time; once broken it stays broken. Errors are `StoreError`s. */
export class PostgresConnection {
  readonly #client: pg.Client;
  /** Settles when the socket is closed. */
  readonly closed: Promise<void>;
  readonly #stream: ClientStream;
  readonly #clock: Clock;
  readonly #statementMs: number | undefined;
  readonly #texts = new PreparedTexts();
  #isBroken = false;
  /** The error of the server or the network that broke it. */
  #failure: unknown = new Error("the connection is broken");
  #isSilent = false;
  #onBroken: () => void = () => {};

  private constructor(
    client: pg.Client,
    stream: ClientStream,
    { clock, statementTimeoutMs }: PostgresConnectionOptions,
  ) {
    this.#client = client;
    this.#stream = stream;
    this.closed = new Promise((resolve) => stream.once("close", () => resolve()));
    this.#clock = clock;
    this.#statementMs = statementTimeoutMs === 0 ? undefined : statementTimeoutMs + GRACE_MS;
    client.on("error", (error) => {
      if (!this.#isBroken) this.#failure = error;
      this.#break();
    });
    client.on("end", () => this.#break());
  }

  /** Connects to a host, with or without TLS as the address requires. */
  static async open(
    address: PostgresAddress,
    host: PostgresHost,
    options: PostgresConnectionOptions,
  ): Promise<PostgresConnection> {
    const { clock, signal } = options;
    const end = clock.elapsed() + (address.fields.connectTimeoutMs ?? options.connectTimeoutMs);
    const attempts = isSocketFolder(host.host) ? [false] : TLS_ATTEMPTS[address.fields.sslMode];
    for (const [index, isEncrypted] of attempts.entries()) {
      const ending = new AbortController();
      let [isReached, isOverdue] = [false, false];
      const onReached = () => void (isReached = true);
      const cancel = () => ending.abort(new Error("cancelled"));
      signal?.addEventListener("abort", cancel, { once: true });
      try {
        signal?.throwIfAborted();
        const attempt = { host, isEncrypted, signal: ending.signal, onReached };
        const connecting = PostgresConnection.#connect(address, attempt, options);
        return await withTimeout(connecting, end - clock.elapsed(), clock, () => {
          isOverdue = true;
          cancel();
          return new Error("timeout");
        });
      } catch (error) {
        // Only a server that refused this kind of connection is asked for the other kind.
        const state = sqlStateOf(error);
        const isKindRefused = state === INVALID_AUTHORIZATION ||
          isReached && isEncrypted && state === undefined && !isOverdue;
        if (index < attempts.length - 1 && isKindRefused) continue;
        const look = { address, host, clock, signal, logger: options.logger, ms: end - clock.elapsed() };
        const cause = isEncrypted && state === undefined && !isOverdue
          ? await explainedHandshake(error, look)
          : error;
        throw withPlace(cause, `Cannot connect to PostgreSQL at "${hostPort(host)}"`);
      } finally {
        signal?.removeEventListener("abort", cancel);
      }
    }
    throw new StoreError("failed", `${USE}: no way to connect`);
  }

  static async #connect(
    address: PostgresAddress,
    { host, isEncrypted, signal, onReached }: Attempt,
    options: PostgresConnectionOptions,
  ): Promise<PostgresConnection> {
    const tls = isEncrypted ? await readTls(address.fields, options.logger) : undefined;
    const stream = await openClientStream(host, { tls, clock: options.clock, signal, onReached });
    const client = clientOf(address, host, stream);
    const connection = new PostgresConnection(client, stream, options);
    try {
      await client.connect();
      await connection.#prepare(options, address.fields.mustTakeWrites);
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  /** The process that the server, or a pooler, announced. */
  get announcedProcess(): number | undefined {
    return this.#stream.announcedProcess;
  }

  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** True if it broke because the server did not respond within the timeout. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  get inTransaction(): boolean {
    return this.#client.getTransactionStatus() !== "I";
  }

  /** Called once when it breaks, which may be at any time. */
  set onBroken(run: () => void) {
    this.#onBroken = run;
  }

  /** The process of the session that responds; not prepared, as a pooler may have switched the session. */
  async process(): Promise<number> {
    const { rows } = await this.#ask(() => this.#client.query("SELECT pg_backend_pid() AS process"));
    return Number(rows[0]?.["process"]);
  }

  /** Runs a statement with `?` for its parameters. */
  async query(
    text: string,
    parameters: readonly Parameter[],
    returns: Statement["returns"],
  ): Promise<Answer> {
    const prepared = this.#texts.of(text);
    const config = {
      text: prepared.text,
      ...(prepared.name === undefined ? {} : { name: prepared.name }),
      values: parameters.map(boundValue),
    };
    const { rows, rowCount } = await this.#ask(() => this.#client.query(config));
    return returns === "rows" ? { rows, changes: 0 } : { rows: [], changes: rowCount ?? 0 };
  }

  async begin(kind: TransactionKind): Promise<void> {
    await this.#ask(() => this.#client.query(BEGINS[kind]));
  }

  /** Commits the transaction; when the connection breaks meanwhile, the outcome is unknown. */
  async commit(): Promise<void> {
    const { command } = await this.#ask(() => this.#client.query("COMMIT"));
    // After a failed statement the server responds with ROLLBACK instead of an error.
    if (command !== "COMMIT") throw new PostgresError("failed", `${USE}: the transaction was rolled back`);
  }

  /** Rolls the transaction back, or destroys the connection. */
  async rollBack(): Promise<void> {
    if (this.#isBroken) return;
    try {
      await this.#ask(() => this.#client.query("ROLLBACK"));
    } catch {
      this.destroy();
    }
  }

  /** Closes the connection, with a timeout. */
  async close(): Promise<void> {
    if (!this.#isBroken) {
      const left = this.#client.end();
      await withTimeout(left, FAREWELL_MS, this.#clock, () => new Error("no answer")).catch(() => {});
    }
    this.destroy();
  }

  /** Closes it immediately; a statement in flight fails. */
  destroy(): void {
    this.#stream.destroy();
    this.#break();
  }

  #break(): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#onBroken();
  }

  /** Overrides the settings of the role and the database; refuses a read-only server where it must accept writes. */
  async #prepare(options: PostgresConnectionOptions, mustTakeWrites: boolean): Promise<void> {
    const { statementTimeoutMs, lockTimeoutMs, idleTimeoutMs = statementTimeoutMs + IDLE_MS } = options;
    if (mustTakeWrites) await this.#checkWrites();
    const settings = [
      `SET statement_timeout = ${statementTimeoutMs}`,
      `SET lock_timeout = ${lockTimeoutMs}`,
      `SET idle_in_transaction_session_timeout = ${idleTimeoutMs}`,
      "SET bytea_output = 'hex'",
      "SET standard_conforming_strings = on",
      // For single statements without a transaction.
      "SET default_transaction_isolation = 'read committed'",
      "SET default_transaction_read_only = off",
    ];
    await this.#ask(() => this.#client.query(settings.join("; ")));
  }

  async #checkWrites(): Promise<void> {
    const { rows } = await this.#ask(() => this.#client.query("SHOW transaction_read_only"));
    if (rows[0]?.["transaction_read_only"] === "off") return;
    throw new PostgresError("read_only", `${USE}: the server is read-only`);
  }

  async #ask(send: () => Promise<Result>): Promise<Result> {
    if (this.#isBroken) throw postgresError(USE, this.#failure, true);
    const ms = this.#statementMs;
    try {
      if (ms === undefined) return await send();
      return await withTimeout(send(), ms, this.#clock, () => {
        this.#isSilent = true;
        this.destroy();
        return new PostgresError("busy", `${USE}: no answer within ${ms} ms`);
      });
    } catch (error) {
      if (endsSession(error)) this.destroy();
      throw postgresError(USE, error, this.#isBroken);
    }
  }
}

interface Attempt {
  readonly host: PostgresHost;
  readonly isEncrypted: boolean;
  readonly signal: AbortSignal;
  readonly onReached: () => void;
}

function clientOf(address: PostgresAddress, { host, port }: PostgresHost, stream: ClientStream): pg.Client {
  const { fields } = address;
  const config: pg.ClientConfig & { readonly replication: string | undefined } = {
    host,
    port,
    user: fields.user,
    database: fields.database,
    // A function, because the client would otherwise read PGPASSWORD or a password file where there is none.
    password: () => address.password() ?? "",
    application_name: fields.applicationName,
    options: fields.options ?? insteadOf("PGOPTIONS", " "),
    replication: insteadOf("PGREPLICATION", "off"),
    ssl: false,
    sslnegotiation: "postgres",
    client_encoding: "UTF8",
    stream: () => stream,
    types: { getTypeParser: columnReader },
  };
  return new pg.Client(config);
}

/**
 * A value without effect where the client would take one from the environment. Only there, because poolers refuse
 * parameters that they do not know.
 */
function insteadOf(variable: string, value: string): string | undefined {
  return process.env[variable] === undefined ? undefined : value;
}

function withPlace(error: unknown, what: string): StoreError {
  if (!(error instanceof PostgresError)) return postgresError(what, error, true);
  return new PostgresError(error.code, error.message.replace(USE, what), error.sqlState);
}
