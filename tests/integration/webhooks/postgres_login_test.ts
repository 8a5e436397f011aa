import { assert, assertEquals } from "#assert";
import { openPostgresLogin } from "../../../src/webhooks/store/postgres/login.ts";
import type { PostgresConnection } from "../../../src/webhooks/store/postgres/connection.ts";
import { PostgresPool } from "../../../src/webhooks/store/postgres/pool.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { NO_LIMITS, postgresServer } from "../../harness/postgres_fixture.ts";
import type { PostgresServer } from "../../harness/postgres_server.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { SecretFolder } from "../../harness/secret_folder.ts";
import { until } from "../../harness/until.ts";

const FIRST = "first-pa55word";
const SECOND = "second-pa55word";
/** Limit of the recovery after a change of the file. */
const RECOVERY_MS = 1_000;
const QUERIES = 50;

let roles = 0;

/** A pool with a role whose password changes; time does not pass faster than that of the machine. */
class Bed implements AsyncDisposable {
  readonly folder = new SecretFolder();
  readonly log = new RecordedLogger();
  readonly #role = `rotated_${++roles}`;
  readonly #server: PostgresServer;
  readonly #clock = FakeClock.byTurns();
  #login: ReturnType<typeof openPostgresLogin> | undefined;
  #pool: PostgresPool | undefined;

  private constructor(server: PostgresServer) {
    this.#server = server;
  }

  static async open(server: PostgresServer): Promise<Bed> {
    const bed = new Bed(server);
    await server.psql(`CREATE ROLE ${bed.#role} LOGIN PASSWORD '${FIRST}'`);
    bed.write(FIRST);
    const [clock, logger] = [bed.#clock, bed.log];
    const file = { name: "WEBHOOK_STORE", path: bed.folder.file("store"), value: bed.#address(FIRST) };
    bed.#login = openPostgresLogin({ file, clock, logger });
    const limits = { size: 2, maxWaiting: 1_000, waitMs: 600_000, ...NO_LIMITS };
    bed.#pool = new PostgresPool({ login: bed.#login.credential, clock, random: Math.random, ...limits });
    await bed.ask();
    return bed;
  }

  get lines(): readonly string[] {
    return this.log.lines.map(({ message }) => message);
  }

  get metrics() {
    const { reloaded = 0, rejected = 0 } = this.#login?.metrics ?? {};
    return { reloaded, rejected };
  }

  get elapsedMs(): number {
    return this.#clock.elapsed();
  }

  write(password: string, parameters = ""): void {
    this.folder.write("store", `${this.#address(password)}${parameters}\n`);
  }

  async change(password: string): Promise<void> {
    await this.#server.psql(`ALTER ROLE ${this.#role} PASSWORD '${password}'`);
  }

  /** Breaks the connections. */
  async kill(): Promise<void> {
    const whose = `usename = '${this.#role}'`;
    await this.#server.psql(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE ${whose}`);
    await until("the end of the connections", () => this.#pool?.metrics.open === 0);
  }

  async ask(): Promise<void> {
    const query = (connection: PostgresConnection) => connection.query("SELECT 1", [], "rows");
    await this.#pool?.use(query);
  }

  /** Waits until a query succeeds, within the limit after `since`. */
  async recovered(since = this.elapsedMs): Promise<void> {
    await until("an answer", () => this.ask().then(() => true));
    const tookMs = this.elapsedMs - since;
    assert(tookMs <= RECOVERY_MS, `queries succeed within ${RECOVERY_MS} ms, not after ${tookMs} ms`);
  }

  /** Waits until the password is refused. */
  async refuses(): Promise<void> {
    await until("the refusal", () => this.ask().then(() => false, (error) => /28P01/.test(String(error))));
  }

  /** All of many queries succeed. */
  async goesOn(): Promise<void> {
    for (let count = 0; count < QUERIES; count++) await this.ask();
  }

  async logs(line: string): Promise<void> {
    await until(line, () => this.lines.includes(line));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool?.close();
    await this.#login?.close();
    await this.folder[Symbol.asyncDispose]();
    assertEquals(/pa55word/.test(Deno.inspect(this.log.lines, { depth: 9 })), false);
  }

  #address(password: string): string {
    return `postgres://${this.#role}:${password}@127.0.0.1:${this.#server.port}/postgres`;
  }
}

postgresServer.test("postgres login: the password changes on the server first", async (server) => {
  await using bed = await Bed.open(server);
  await bed.change(SECOND);
  await bed.goesOn();
  await bed.kill();
  await bed.refuses();
  bed.write(SECOND);
  await bed.recovered(bed.elapsedMs);
  await bed.logs("New credentials accepted");
  await bed.kill();
  await bed.recovered();
});

postgresServer.test("postgres login: the password changes in the file first", async (server) => {
  await using bed = await Bed.open(server);
  bed.write(SECOND);
  await bed.logs("Credentials of WEBHOOK_STORE_FILE reloaded");
  await bed.goesOn();
  await bed.kill();
  await bed.recovered();
  await bed.logs("New credentials refused; using the former ones");
  await bed.change(SECOND);
  await bed.goesOn();
  await bed.kill();
  await bed.recovered();
  await bed.logs("New credentials accepted");
  assertEquals(bed.metrics, { reloaded: 1, rejected: 0 });
});

postgresServer.test("postgres login: another address is rejected, and its password too", async (server) => {
  await using bed = await Bed.open(server);
  bed.write(SECOND, "?sslmode=disable");
  const rejected = "Reload of WEBHOOK_STORE_FILE rejected; keeping the previous credentials";
  await bed.logs(rejected);
  await bed.kill();
  await bed.recovered();
  assertEquals([bed.lines, bed.metrics], [[rejected], { reloaded: 0, rejected: 1 }]);
});
