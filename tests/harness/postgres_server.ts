import { join } from "node:path";
import pg from "pg";
import { ChildProcess } from "./child_process.ts";
import { freePort } from "./free_port.ts";
import {
  asPostgres,
  fillPostgresFolder,
  makePostgresFolder,
  output,
  POSTGRES_USER,
  postgresProgram,
  type PostgresTls,
  tlsArgs,
  writeAccess,
} from "./postgres_folder.ts";
import { requireTool } from "./tools.ts";
import { until } from "./until.ts";

/** How a PostgreSQL server is to run. */
export interface PostgresServerOptions {
  /** Settings of the server, such as `{ max_connections: "5" }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Speaks TLS, and over TCP nothing else. */
  readonly tls?: PostgresTls;
  /** Follows this server, and takes no writes until it is promoted. */
  readonly standbyOf?: PostgresServer;
  /** Its output goes nowhere, as that of a server which outlives a test must. */
  readonly isSilent?: boolean;
}

/** Where a server is: its port, and the folder of its socket. */
export interface PostgresPlace {
  readonly port: number;
  readonly folder: string;
}

/** How a server is started. */
interface PostgresStart {
  readonly args: readonly string[];
  readonly isSilent: boolean;
  readonly databasePrefix: string;
}

/** How a server is told to end: `fast` breaks its connections, `immediate` leaves the rest to the next start. */
export type PostgresStop = "fast" | "immediate" | "smart";

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

/** How often a free port is looked for. */
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
  /** Where its unix socket is. */
  readonly folder: string;
  readonly #options: PostgresStart;
  #child: ChildProcess | undefined;
  #databases = 0;
  #strategy: string | undefined;

  private constructor({ folder, port }: PostgresPlace, options: PostgresStart) {
    this.folder = folder;
    this.port = port;
    this.#options = options;
  }

  /** A server that runs already, which others use too: its databases have names that no other has. */
  static at(place: PostgresPlace): PostgresServer {
    const databasePrefix = `t${crypto.randomUUID().replaceAll("-", "")}_`;
    return new PostgresServer(place, { args: [], isSilent: false, databasePrefix });
  }

  /** Starts a server with an empty cluster, or with what the one has that it follows. */
  static async start(options: PostgresServerOptions = {}): Promise<PostgresServer> {
    const folder = await makePostgresFolder();
    try {
      await (options.standbyOf === undefined ? fillPostgresFolder(folder) : copy(options.standbyOf, folder));
      await writeAccess(folder, options.tls);
      const settings = Object.entries({ ...SETTINGS, ...options.settings });
      const args = [
        ...settings.flatMap(([name, value]) => ["-c", `${name}=${value}`]),
        ...(options.tls === undefined ? [] : await tlsArgs(folder, options.tls)),
      ];
      const start = { args, isSilent: options.isSilent ?? false, databasePrefix: "test_" };
      return await onFreePort((port) => new PostgresServer({ folder, port }, start));
    } catch (error) {
      await Deno.remove(folder, { recursive: true });
      throw error;
    }
  }

  /** Whether it runs; one that is paused does. */
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
    this.#databases++;
    const name = `${this.#options.databasePrefix}${this.#databases}`;
    // A small database is copied by its files in half the time; releases before 15 know no other way.
    this.#strategy ??= Number(await this.psql("SHOW server_version_num")) < 150_000
      ? ""
      : "STRATEGY file_copy";
    await this.psql(
      `CREATE DATABASE ${name} OWNER ${POSTGRES_USER.name} TEMPLATE template0 ${this.#strategy}`,
    );
    return name;
  }

  /** Carries out SQL as the superuser; answers the rows, a line for each, their columns with `|` between them. */
  async psql(sql: string, database = "postgres"): Promise<string> {
    // Not the unix socket: Deno 2.9.3 closes the descriptor of one twice, and the second time it may be that of another thread.
    const client = new pg.Client({ ...SUPERUSER, host: "127.0.0.1", port: this.port, database });
    // A server that ends meanwhile is seen by the query.
    client.on("error", () => {});
    try {
      await client.connect();
      const answer: pg.QueryArrayResult | pg.QueryArrayResult[] = await client.query({
        text: sql,
        ...AS_TEXT,
      });
      const rows = [answer].flat().flatMap((result) => result.rows);
      return rows.map((row) => row.map((value) => value ?? "").join("|")).join("\n");
    } finally {
      await client.end().catch(() => {});
    }
  }

  /** Begins a transaction of the superuser with this SQL; returns a function that commits it. */
  async begin(sql: string, database: string): Promise<() => Promise<void>> {
    const client = new pg.Client({ ...SUPERUSER, host: "127.0.0.1", port: this.port, database });
    await client.connect();
    await client.query(`BEGIN; ${sql}`);
    return async () => {
      await client.query("COMMIT");
      await client.end();
    };
  }

  /** Runs a script of SQL of any length as the user of `url`. */
  async restore(sql: string, database: string): Promise<void> {
    await this.psql(`SET ROLE ${POSTGRES_USER.name};\n${sql}`, database);
  }

  /** Starts it again on its port, after `stop` or `kill`; answers once it takes connections. */
  async start(): Promise<void> {
    await this.kill();
    const place = ["-D", join(this.folder, "data"), "-k", this.folder, "-p", String(this.port)];
    const access = ["-c", `hba_file=${join(this.folder, "pg_hba.conf")}`];
    const { args: more, isSilent } = this.#options;
    const [program, ...args] = asPostgres(requireTool("postgres"), ...place, ...access, ...more);
    const child = new ChildProcess(program, { args, isSilent });
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

async function onFreePort(make: (port: number) => PostgresServer): Promise<PostgresServer> {
  for (let attempt = 1;; attempt++) {
    const server = make(freePort());
    try {
      await server.start();
      return server;
    } catch (error) {
      await server.kill();
      // Somebody else may have taken the port in between; anything else fails again.
      if (attempt === ATTEMPTS) throw error;
    }
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
