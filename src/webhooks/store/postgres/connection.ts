import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { ConnectionOptions } from "node:tls";
import pg from "pg";
import type { Clock } from "../../../base/clock.ts";
import { answeredWithin } from "../../../base/wait.ts";
import type { PostgresAddress, PostgresHost } from "../../../base/postgres_address.ts";
import { hostPort } from "../../../base/host_port.ts";
import { endsSession, PostgresError, postgresError, sqlStateOf } from "./error.ts";
import { boundValue, columnReader, PreparedTexts } from "./text.ts";
import { readPostgresTls, tlsAttempts } from "./tls.ts";
import { StoreError } from "../store.ts";
import type { Answer, Parameter, Statement } from "../work.ts";

/** How long things may take on a connection. */
export interface PostgresConnectionOptions {
  readonly clock: Clock;
  /** For coming in; the address may say another time. */
  readonly connectTimeoutMs: number;
  /** After this the server ends a statement; 0 for no limit. */
  readonly statementTimeoutMs: number;
  /** After this it does not wait for a row any longer. */
  readonly lockTimeoutMs: number;
  /** How long a transaction may rest between two statements; as long as a statement takes, and more, when absent. */
  readonly idleTimeoutMs?: number | undefined;
  /** Breaks off what is under way. */
  readonly signal?: AbortSignal | undefined;
}

/** What a transaction is begun for. */
export type TransactionKind = "write" | "read";

type Result = pg.QueryResult<Record<string, string | number | Uint8Array | null>>;

const BEGINS: Readonly<Record<TransactionKind, string>> = {
  write: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
  // All its statements see the same state.
  read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
};

/** So much later than the server should have, we end a statement ourselves: the server is stopped, or out of reach. */
const GRACE_MS = 2_000;
/** How long a transaction may rest between two statements, beside the time for one: we may be stopped, too. */
const IDLE_MS = 10_000;
const FAREWELL_MS = 1_000;
const KEEP_ALIVE_MS = 15_000;
const USE = "Cannot use the store";
const REFUSED_AS_SUCH = "28000";

/**
 * A connection to PostgreSQL, for one transaction after the other. One that breaks stays so. Errors are `StoreError`s,
 * and nothing that happens on it ends in an event that nobody hears.
 */
export class PostgresConnection {
  readonly #client: pg.Client;
  readonly #socket: Socket;
  readonly #clock: Clock;
  /** Absent for no limit. */
  readonly #statementMs: number | undefined;
  readonly #texts = new PreparedTexts();
  #announcedProcess: number | undefined;
  #isBroken = false;
  #isSilent = false;
  #onBroken: () => void = () => {};

  private constructor(
    client: pg.Client,
    socket: Socket,
    { clock, statementTimeoutMs }: PostgresConnectionOptions,
  ) {
    this.#client = client;
    this.#socket = socket;
    this.#clock = clock;
    this.#statementMs = statementTimeoutMs === 0 ? undefined : statementTimeoutMs + GRACE_MS;
    client.connection.once("backendKeyData", ({ processID }: { readonly processID: number }) => {
      this.#announcedProcess = processID;
    });
    client.on("error", () => this.#break());
    client.on("end", () => this.#break());
  }

  /** Comes in at one of the hosts, with and without encryption as the address has it. */
  static async open(
    address: PostgresAddress,
    host: PostgresHost,
    options: PostgresConnectionOptions,
  ): Promise<PostgresConnection> {
    const { clock } = options;
    const end = clock.elapsed() + (address.fields.connectTimeoutMs ?? options.connectTimeoutMs);
    const attempts = tlsAttempts(address.fields, host.host);
    for (const [index, isEncrypted] of attempts.entries()) {
      const attempt = new Attempt(address, host, isEncrypted);
      try {
        return await attempt.run(options, end - clock.elapsed());
      } catch (error) {
        if (index === attempts.length - 1 || !attempt.isRefusedAsSuch(error)) throw error;
      }
    }
    throw new StoreError("failed", `${USE}: there is no way to come in`);
  }

  /** Makes a connection of a client that is about to come in; rejects when it cannot, and then nothing is left of it. */
  static async connected(
    client: pg.Client,
    socket: Socket,
    options: PostgresConnectionOptions & { readonly mustTakeWrites: boolean },
  ): Promise<PostgresConnection> {
    const connection = new PostgresConnection(client, socket, options);
    try {
      await client.connect();
      await connection.#prepare(options);
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  /** The process that the other side named when it accepted the connection. */
  get announcedProcess(): number | undefined {
    return this.#announcedProcess;
  }

  /** Whether nothing can be asked any more. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /** Whether it was broken off because the server did not answer in time, as one that can still would have. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Whether a transaction is under way. */
  get inTransaction(): boolean {
    return this.#client.getTransactionStatus() !== "I";
  }

  /** Told once when it breaks, which may be at any time. */
  set onBroken(run: () => void) {
    this.#onBroken = run;
  }

  /** The process of the session that answers. It is not prepared: a pooler may have given it another session. */
  async process(): Promise<number> {
    const { rows } = await this.#ask(() => this.#client.query("SELECT pg_backend_pid() AS process"));
    return Number(rows[0]?.["process"]);
  }

  /** Carries out a statement, its parameters as `?`. */
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

  /** Begins a transaction. */
  async begin(kind: TransactionKind): Promise<void> {
    await this.#ask(() => this.#client.query(BEGINS[kind]));
  }

  /** Ends it, and makes it durable. When the connection breaks on the way, nobody knows whether it is. */
  async commit(): Promise<void> {
    const { command } = await this.#ask(() => this.#client.query("COMMIT"));
    // So it says where a statement has failed before, instead of an error.
    if (command !== "COMMIT") {
      throw new PostgresError("failed", `${USE}: the transaction was undone`);
    }
  }

  /** Undoes it; a connection that cannot do even that is thrown away. */
  async rollBack(): Promise<void> {
    if (this.#isBroken) return;
    try {
      await this.#ask(() => this.#client.query("ROLLBACK"));
    } catch {
      this.destroy();
    }
  }

  /** Takes its leave of the server, within a time. */
  async close(): Promise<void> {
    if (!this.#isBroken) {
      this.#onBroken = () => {};
      const left = this.#client.end();
      await answeredWithin(left, FAREWELL_MS, this.#clock, () => new Error("no answer")).catch(() => {});
    }
    this.destroy();
  }

  /** Ends it at once; what is under way on it fails. */
  destroy(): void {
    // With encryption there are two, and the outer one may not be there yet.
    this.#client.connection.stream.destroy();
    this.#socket.destroy();
    this.#break();
  }

  #break(): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#onBroken();
  }

  /** Whatever a role or a database has set otherwise; and whether this is the server that takes writes. */
  async #prepare(options: PostgresConnectionOptions & { readonly mustTakeWrites: boolean }): Promise<void> {
    const { statementTimeoutMs, lockTimeoutMs, idleTimeoutMs = statementTimeoutMs + IDLE_MS } = options;
    if (options.mustTakeWrites) await this.#checkWrites();
    const settings = [
      `SET statement_timeout = ${statementTimeoutMs}`,
      `SET lock_timeout = ${lockTimeoutMs}`,
      `SET idle_in_transaction_session_timeout = ${idleTimeoutMs}`,
      "SET bytea_output = 'hex'",
      "SET standard_conforming_strings = on",
      // For statements that are a transaction by themselves.
      "SET default_transaction_isolation = 'read committed'",
      "SET default_transaction_read_only = off",
    ];
    await this.#ask(() => this.#client.query(settings.join("; ")));
  }

  async #checkWrites(): Promise<void> {
    const { rows } = await this.#ask(() => this.#client.query("SHOW transaction_read_only"));
    if (rows[0]?.["transaction_read_only"] === "off") return;
    throw new PostgresError("read_only", `${USE}: the server takes no writes`);
  }

  async #ask(send: () => Promise<Result>): Promise<Result> {
    if (this.#isBroken) throw new PostgresError("busy", `${USE}: the connection is broken`);
    const ms = this.#statementMs;
    try {
      if (ms === undefined) return await send();
      return await answeredWithin(send(), ms, this.#clock, () => {
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

/** One attempt to come in. */
class Attempt {
  readonly #address: PostgresAddress;
  readonly #host: PostgresHost;
  readonly #isEncrypted: boolean;
  readonly #socket = new Socket();
  #isReached = false;
  #isOverdue = false;

  constructor(address: PostgresAddress, host: PostgresHost, isEncrypted: boolean) {
    this.#address = address;
    this.#host = host;
    this.#isEncrypted = isEncrypted;
    this.#socket.once("connect", () => this.#isReached = true);
  }

  /** Whether the server is there, and has refused only the kind of connection. */
  isRefusedAsSuch(error: unknown): boolean {
    const state = sqlStateOf(error);
    return state === REFUSED_AS_SUCH ||
      this.#isReached && this.#isEncrypted && state === undefined && !this.#isOverdue;
  }

  async run(options: PostgresConnectionOptions, ms: number): Promise<PostgresConnection> {
    const { signal, clock } = options;
    const breakOff = () => this.#socket.destroy();
    signal?.addEventListener("abort", breakOff, { once: true });
    try {
      signal?.throwIfAborted();
      const overdue = () => {
        this.#isOverdue = true;
        breakOff();
        return new Error("no answer in time");
      };
      return await answeredWithin(this.#connect(options), ms, clock, overdue);
    } catch (error) {
      throw withPlace(error, `Cannot reach PostgreSQL at "${hostPort(this.#host)}"`);
    } finally {
      signal?.removeEventListener("abort", breakOff);
    }
  }

  async #connect(options: PostgresConnectionOptions): Promise<PostgresConnection> {
    const { fields } = this.#address;
    const tls = this.#isEncrypted ? await readPostgresTls(fields) : undefined;
    // The wait may be over by now.
    if (this.#socket.destroyed) throw new Error("broken off");
    const client = this.#client(tls);
    return await PostgresConnection.connected(client, this.#socket, {
      ...options,
      mustTakeWrites: fields.mustTakeWrites,
    });
  }

  #client(tls: ConnectionOptions | undefined): pg.Client {
    const { fields } = this.#address;
    const client = new pg.Client({
      host: this.#host.host,
      port: this.#host.port,
      user: fields.user,
      database: fields.database,
      // As a function, because the client looks for another one, even in files, where there is none.
      password: () => this.#address.password() ?? "",
      application_name: fields.applicationName,
      ssl: tls ?? false,
      sslnegotiation: "postgres",
      client_encoding: "UTF8",
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      stream: () => this.#socket,
      types: { getTypeParser: columnReader },
    });
    withoutEnvironment(client, fields.options);
    guard(this.#socket);
    client.connection.once("sslconnect", () => guard(client.connection.stream));
    return client;
  }
}

/** The client throws at messages that it does not know, where nobody could catch it; the connection is to end then. */
function guard(stream: Duplex): void {
  const emit = stream.emit.bind(stream);
  stream.emit = (event: string | symbol, ...args: unknown[]) => {
    try {
      return emit(event, ...args);
    } catch (error) {
      stream.destroy(error instanceof Error ? error : new Error(String(error)));
      return true;
    }
  };
}

function withPlace(error: unknown, what: string): StoreError {
  if (!(error instanceof PostgresError)) return postgresError(what, error, true);
  return new PostgresError(error.code, error.message.replace(USE, what), error.sqlState);
}

/** The client fills what it was not given from variables of the environment. */
function withoutEnvironment(client: object, options: string | undefined): void {
  const { connectionParameters } = client as { readonly connectionParameters: Record<string, unknown> };
  connectionParameters["options"] = options;
  connectionParameters["replication"] = undefined;
}
