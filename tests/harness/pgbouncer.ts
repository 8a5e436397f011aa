import { join } from "node:path";
import { ChildProcess } from "./child_process.ts";
import { freePort } from "./free_port.ts";
import { asPostgres, output, POSTGRES_USER } from "./postgres_folder.ts";
import type { SharedPostgresServer } from "./postgres_server.ts";
import { requireTool } from "./tools.ts";
import { until } from "./until.ts";

/** PgBouncer in front of a server of a test; killed at the end of an `await using`. */
export class PgBouncer implements AsyncDisposable {
  readonly #folder: string;
  readonly #child: ChildProcess;
  readonly #port: number;

  private constructor(folder: string, child: ChildProcess, port: number) {
    this.#folder = folder;
    this.#child = child;
    this.#port = port;
  }

  /** Starts one in a pool mode, with further settings. */
  static async start(
    server: SharedPostgresServer,
    mode: "session" | "transaction",
    settings: readonly string[] = [],
  ): Promise<PgBouncer> {
    const folder = await Deno.makeTempDir({ prefix: "weir_pgbouncer_" });
    const port = freePort();
    const file = join(folder, "pgbouncer.ini");
    const user = `user=${POSTGRES_USER.name} password='${POSTGRES_USER.password}'`;
    const lines = [
      ...["[databases]", `* = host=127.0.0.1 port=${server.port} ${user}`],
      ...["[pgbouncer]", "listen_addr = 127.0.0.1", `listen_port = ${port}`],
      ...["unix_socket_dir =", "auth_type = any", `pool_mode = ${mode}`, ...settings],
    ];
    await Deno.writeTextFile(file, `${lines.join("\n")}\n`);
    if (Deno.uid() === 0) await output(["chown", "-R", "postgres:", folder]);
    const [program, ...args] = asPostgres(requireTool("pgbouncer"), file);
    const child = new ChildProcess(program, { args });
    const pooler = new PgBouncer(folder, child, port);
    try {
      await until("pgbouncer", async () => {
        (await Deno.connect({ hostname: "127.0.0.1", port })).close();
        return true;
      });
      return pooler;
    } catch (error) {
      await pooler[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The address of a database behind it. */
  url(database: string): string {
    return `postgres://${POSTGRES_USER.name}@127.0.0.1:${this.#port}/${database}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child.kill();
    await Deno.remove(this.#folder, { recursive: true });
  }
}
