import { join } from "node:path";
import pg from "pg";
import { ChildProcess } from "./child_process.ts";
import { freePort } from "./free_port.ts";
import {
  asPostgres,
  clusterTemplate,
  makePostgresFolder,
  output,
  POSTGRES_USER,
  postgresProgram,
  type PostgresTls,
  tlsArgs,
  writeAccess,
} from "./postgres_folder.ts";
import { requireTool } from "./tools.ts";
import { eventually, until } from "./until.ts";

/** Options of a postgres server. */
interface PostgresServerOptions {
  /** Settings of the server, such as `{ max_connections: "5" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Speaks TLS, and over TCP nothing else. */
  readonly tls?: PostgresTls;
  /** Follows this server, and takes no writes until it is promoted. */
  readonly standbyOf?: PostgresServer;
  /** Its output goes nowhere, as that of a server which outlives a test must. */
  readonly isSilent?: boolean;
}

/** Port and socket folder of a server. */
export interface PostgresPlace {
  readonly port: number;
  readonly folder: string;
}

/** The end of a server: `fast` breaks its connections, `immediate` leaves the rest to the next start. */
type PostgresStop = "fast" | "immediate" | "smart";

const STOP_SIGNALS: Readonly<Record<PostgresStop, Deno.Signal>> = {
  smart: "SIGTERM",
  fast: "SIGINT",
  immediate: "SIGQUIT",
};
const STOP_MS = 60_000;
/** Everything that the client would take from the environment. */
const SUPERUSER = { user: "postgres", password: "", options: "", application_name: "tests", ssl: false };
/** Rows as lists of the texts that the server sends. */
const AS_TEXT = { rowMode: "array", types: { getTypeParser: () => (value: string) => value } } as const;

/** Number of times that a free port is looked for. */
const ATTEMPTS = 3;

// What is written is for as long as the test; a machine that breaks down takes the test with it.
const SETTINGS = {
  listen_addresses: "127.0.0.1",
  fsync: "off",
  shared_buffers: "32MB",
  max_connections: "100",
  logging_collector: "off",
  log_min_messages: "fatal",
  // A cluster that is new has no need of it, and it costs a process and its wake-ups.
  autovacuum: "off",
};

/** A PostgreSQL server of a test's own on 127.0.0.1; it is killed and forgotten at the end of an `await using`. */
export class PostgresServer implements AsyncDisposable {
  /** Its port, which stays the same over restarts. */
  readonly port: number;
  /** Folder of its unix socket. */
  readonly folder: string;
  readonly #args: readonly string[];
  readonly #isSilent: boolean;
  readonly #prefix: string;
  #child: ChildProcess | undefined;
  #databases = 0;
  #strategy: string | undefined;

  private constructor(place: PostgresPlace, prefix: string, args: readonly string[] = [], isSilent = false) {
    this.folder = place.folder;
    this.port = place.port;
    this.#prefix = prefix;
    this.#args = args;
    this.#isSilent = isSilent;
  }

  /** A server that runs already, which others use too: its databases have names that no other has. */
  static at(place: PostgresPlace): PostgresServer {
    return new PostgresServer(place, `t${crypto.randomUUID().replaceAll("-", "")}_`);
  }

  /** Starts a server with an empty cluster, or with what the one has that it follows. */
  static async start(options: PostgresServerOptions = {}): Promise<PostgresServer> {
    const folder = await makePostgresFolder();
    try {
      if (options.standbyOf !== undefined) await copy(options.standbyOf, folder);
      else await output(["cp", "-a", await clusterTemplate(), join(folder, "data")]);
      await writeAccess(folder, options.tls);
      const settings = Object.entries({ ...SETTINGS, ...options.settings });
      const args = [
        ...settings.flatMap(([name, value]) => ["-c", `${name}=${value}`]),
        ...(options.tls === undefined ? [] : await tlsArgs(folder, options.tls)),
      ];
      for (let attempt = 1;; attempt++) {
        const place = { folder, port: freePort() };
        const server = new PostgresServer(place, "test_", args, options.isSilent);
        try {
          await server.start();
          return server;
        } catch (error) {
          await server.kill();
          // Another program may have taken the port in between; anything else fails again.
          if (attempt === ATTEMPTS) throw error;
        }
      }
    } catch (error) {
      await Deno.remove(folder, { recursive: true });
      throw error;
    }
  }

  /** Returns whether it runs; one that is paused does. */
  get isRunning(): boolean {
    return this.#child?.running === true;
  }

  /** The address of a database as the settings take it, with name and password. */
  url(database = "postgres", parameters = ""): string {
    const password = encodeURIComponent(POSTGRES_USER.password);
    const query = parameters === "" ? "" : `?${parameters}`;
    return `postgres://${POSTGRES_USER.name}:${password}@127.0.0.1:${this.port}/${database}${query}`;
  }

  /** Makes an empty database, which the user of `url` owns; answers its name. */
  async createDatabase(): Promise<string> {
    const name = `${this.#prefix}${++this.#databases}`;
    // A small database is copied by its files in half the time; releases before 15 know no other way.
    this.#strategy ??= Number(await this.psql("SHOW server_version_num")) < 150_000
      ? ""
      : "STRATEGY file_copy";
    const owner = `OWNER ${POSTGRES_USER.name} TEMPLATE template0`;
    await this.psql(`CREATE DATABASE ${name} ${owner} ${this.#strategy}`);
    return name;
  }

  /** Makes an empty database that is dropped at the end of an `await using`. */
  async database(): Promise<PostgresDatabase> {
    return new PostgresDatabase(this, await this.createDatabase());
  }

  /** Carries out SQL as the superuser; answers the rows, a line for each, their columns with `|` between them. */
  async psql(sql: string, database = "postgres"): Promise<string> {
    const client = this.#client(database);
    // A server that ends meanwhile is seen by the query.
    client.on("error", () => {});
    try {
      await client.connect();
      const query = { text: sql, ...AS_TEXT };
      const answer: pg.QueryArrayResult | pg.QueryArrayResult[] = await client.query(query);
      const rows = [answer].flat().flatMap((result) => result.rows);
      return rows.map((row) => row.map((value) => value ?? "").join("|")).join("\n");
    } finally {
      await client.end().catch(() => {});
    }
  }

  /** Begins a transaction of the superuser with this SQL; returns a function that commits it. */
  async begin(sql: string, database: string): Promise<() => Promise<void>> {
    const client = this.#client(database);
    await client.connect();
    await client.query(`BEGIN; ${sql}`);
    return async () => {
      await client.query("COMMIT");
      await client.end();
    };
  }

  /** Starts it again on its port, after `stop` or `kill`; answers once it takes connections. */
  async start(): Promise<void> {
    await this.kill();
    const place = ["-D", join(this.folder, "data"), "-k", this.folder, "-p", String(this.port)];
    const access = ["-c", `hba_file=${join(this.folder, "pg_hba.conf")}`];
    const [program, ...args] = asPostgres(requireTool("postgres"), ...place, ...access, ...this.#args);
    const child = new ChildProcess(program, { args, isSilent: this.#isSilent });
    this.#child = child;
    await until("postgres", async () => !child.running || await this.#isReady(child.pid));
    if (child.running) return;
    throw new Error(`Cannot start "postgres": it ended: ${child.stderrLines.slice(-3).join("; ")}`);
  }

  /** Asks it to end and waits until it has. */
  async stop(mode: PostgresStop = "fast"): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.resume();
    child.signal(STOP_SIGNALS[mode]);
    const timer = setTimeout(() => void this.kill(), STOP_MS);
    await child.exited;
    clearTimeout(timer);
  }

  /** Ends it and all its processes without asking, as when the machine breaks down. */
  async kill(): Promise<void> {
    this.#signal("SIGKILL");
    await this.#child?.exited;
  }

  /** Stops it in its tracks: connections stay open, nothing is answered, new ones are not even greeted. */
  pause(): void {
    this.#signal("SIGSTOP");
  }

  /** Lets a paused server go on. */
  resume(): void {
    this.#signal("SIGCONT");
  }

  /** Has a standby take writes from now on. */
  async promote(): Promise<void> {
    await this.psql("SELECT pg_promote(true, 30)");
  }

  /** Breaks all connections of the users of `url`; new ones are taken. */
  async breakConnections(): Promise<void> {
    const whose = `usename = '${POSTGRES_USER.name}'`;
    await this.psql(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE ${whose}`);
  }

  /** Kills the server and removes its folder. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await Deno.remove(this.folder, { recursive: true });
  }

  /** Not over the unix socket: Deno 2.9.3 closes its descriptor twice, and the second time it may be another thread's. */
  #client(database: string): pg.Client {
    return new pg.Client({ ...SUPERUSER, host: "127.0.0.1", port: this.port, database });
  }

  /** The file names the process, and says in its last line how far it is. */
  async #isReady(pid: number): Promise<boolean> {
    const lines = (await Deno.readTextFile(join(this.folder, "data", "postmaster.pid"))).split("\n");
    return lines[0] === String(pid) && ["ready", "standby"].includes(lines[7]?.trim() ?? "");
  }

  /** Each connection is a process, which the first one's signals do not reach. */
  #signal(signal: Deno.Signal): void {
    const child = this.#child;
    if (child === undefined || !child.running) return;
    // It starts no other in between, and does not forget them.
    child.signal("SIGSTOP");
    const pids = childrenOf(child.pid);
    child.signal(signal);
    for (const pid of pids) {
      try {
        Deno.kill(pid, signal);
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error;
      }
    }
  }
}

/** A PostgreSQL server that tests share. */
export type SharedPostgresServer = Pick<
  PostgresServer,
  "port" | "folder" | "url" | "createDatabase" | "database" | "psql"
>;

/** A database of a server; dropped with its connections at the end of an `await using`. */
export class PostgresDatabase implements AsyncDisposable {
  readonly name: string;
  readonly server: SharedPostgresServer;
  readonly #server: PostgresServer;

  constructor(server: PostgresServer, name: string) {
    this.server = server;
    this.#server = server;
    this.name = name;
  }

  /** Its address as it may be shown. */
  get shown(): string {
    return `postgres://${POSTGRES_USER.name}@127.0.0.1:${this.server.port}/${this.name}`;
  }

  /** Its address as the settings take it, with name and password. */
  url(parameters?: string): string {
    return this.#server.url(this.name, parameters);
  }

  /** Carries out SQL as the superuser; answers the rows, a line for each, their columns with `|` between them. */
  psql(sql: string): Promise<string> {
    return this.#server.psql(sql, this.name);
  }

  /** Begins a transaction of the superuser with this SQL; returns a function that commits it. */
  begin(sql: string): Promise<() => Promise<void>> {
    return this.#server.begin(sql, this.name);
  }

  /** Runs a script of SQL of any length as the user of `url`. */
  async restore(sql: string): Promise<void> {
    await this.psql(`SET ROLE ${POSTGRES_USER.name};\n${sql}`);
  }

  /** Waits until no store has a session there any more: a session outlasts its connection for a moment. */
  async sessionsEnded(): Promise<void> {
    const sessions = `SELECT count(*) FROM pg_stat_activity WHERE usename = '${POSTGRES_USER.name}'`;
    await eventually("0", () => this.psql(`${sessions} AND datname = current_database()`));
  }

  /** Breaks its connections; new ones are taken. */
  async breakConnections(): Promise<void> {
    const whose = "datname = current_database() AND pid <> pg_backend_pid()";
    await this.psql(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE ${whose}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.psql(`DROP DATABASE ${this.name} WITH (FORCE)`);
  }
}

async function copy(primary: PostgresServer, folder: string): Promise<void> {
  const from = ["-h", primary.folder, "-p", String(primary.port), "-U", "postgres"];
  const manner = ["-D", join(folder, "data"), "-R", "-X", "stream", "-c", "fast", "--no-sync"];
  await output(asPostgres(postgresProgram("pg_basebackup"), ...from, ...manner));
}

function childrenOf(pid: number): readonly number[] {
  try {
    const text = Deno.readTextFileSync(`/proc/${pid}/task/${pid}/children`).trim();
    return text === "" ? [] : text.split(" ").map(Number);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
