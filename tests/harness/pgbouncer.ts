import { join } from "node:path";
import { ChildProcess } from "./child_process.ts";
import { freePort } from "./free_port.ts";
import { asPostgres, output, POSTGRES_USER } from "./postgres_folder.ts";
import type { SharedPostgresServer } from "./postgres_server.ts";
import { requireTool } from "./tools.ts";
import { until } from "./until.ts";

/** PgBouncer in front of a server of a test; killed at the end of an `await using`. */
interface PgBouncer extends AsyncDisposable {
  /** The address of a database behind it. */
  url(database: string): string;
}

/** Starts one in a pool mode, with further settings. */
export async function startPgBouncer(
  server: SharedPostgresServer,
  mode: "session" | "transaction",
  settings: readonly string[] = [],
): Promise<PgBouncer> {
  await using stack = new AsyncDisposableStack();
  const folder = await Deno.makeTempDir({ prefix: "weir_pgbouncer_" });
  stack.defer(() => Deno.remove(folder, { recursive: true }));
  const port = freePort();
  const file = join(folder, "pgbouncer.ini");
  const user = `user=${POSTGRES_USER.name} password='${POSTGRES_USER.password}'`;
  const lines = [
    ...["[databases]", `* = host=127.0.0.1 port=${server.port} ${user}`, "[pgbouncer]"],
    ...["listen_addr = 127.0.0.1", `listen_port = ${port}`, "unix_socket_dir =", "auth_type = any"],
    ...[`pool_mode = ${mode}`, ...settings],
  ];
  await Deno.writeTextFile(file, `${lines.join("\n")}\n`);
  if (Deno.uid() === 0) await output(["chown", "-R", "postgres:", folder]);
  const [program, ...args] = asPostgres(requireTool("pgbouncer"), file);
  stack.use(new ChildProcess(program, { args }));
  await until("pgbouncer", async () => {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return true;
  });
  const open = stack.move();
  return {
    url: (database) => `postgres://${POSTGRES_USER.name}@127.0.0.1:${port}/${database}`,
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}
