import { statfsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { toolsFolder } from "./tool_register.ts";
import { requireTool } from "./tools.ts";

/** Name and password of the user that tests come as; it owns the databases that they make. */
export const POSTGRES_USER = { name: "weir", password: "se:cr@et" } as const;

/** Files in PEM that a server speaks TLS with. */
export interface PostgresTls {
  readonly certFile: string;
  readonly keyFile: string;
  /** Authority of the certificates that clients must show; none is asked for when absent. */
  readonly clientAuthorityFile?: string;
}

const MEMORY_FOLDER = "/dev/shm";
const MEMORY_BYTES = 4 * 2 ** 30;

const INIT_ARGS = [
  ...["--no-sync", "--encoding=UTF8", "--no-locale", "--username=postgres", "--wal-segsize=1"],
  ...["--auth-local=trust", "--auth-host=scram-sha-256"],
];

/** A program of PostgreSQL, next to the server; in a folder of the PATH may be a link to the server alone. */
export function postgresProgram(name: string): string {
  return join(dirname(Deno.realPathSync(requireTool("postgres"))), name);
}

/** The words that run a program as somebody whom PostgreSQL accepts, which root is not. */
export function asPostgres(...words: readonly string[]): readonly [string, ...string[]] {
  const user = ["--reuid=postgres", "--regid=postgres", "--clear-groups"];
  if (Deno.uid() === 0) return ["setpriv", ...user, ...words];
  const [program = "", ...args] = words;
  return [program, ...args];
}

/** Runs a program to its end; answers its output, or throws what it wrote to standard error. */
export async function output(words: readonly string[], input?: string): Promise<string> {
  const [program = "", ...args] = words;
  const child = new Deno.Command(program, { args, stdin: "piped", stdout: "piped", stderr: "piped" }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input ?? "")).catch(() => {});
  await writer.close().catch(() => {});
  const { success, stdout, stderr } = await child.output();
  const text = new TextDecoder();
  if (!success) throw new Error(`Cannot run "${basename(program)}": ${text.decode(stderr).trim()}`);
  return text.decode(stdout).trimEnd();
}

/** An empty folder that a server may keep its files in. */
export async function makePostgresFolder(): Promise<string> {
  const folder = await Deno.makeTempDir({ prefix: "weir_postgres_", ...memoryFolder() });
  await give(folder);
  return folder;
}

/** A folder in memory, if there is room for some clusters: creating a database there takes a tenth of the time. */
function memoryFolder(): { readonly dir?: string } {
  try {
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
    return bavail * bsize > MEMORY_BYTES ? { dir: MEMORY_FOLDER } : {};
  } catch {
    return {};
  }
}

/** Writes who may connect: from this machine with a password, and over TLS only where that is asked for. */
export async function writeAccess(folder: string, tls: PostgresTls | undefined): Promise<void> {
  const certificate = tls?.clientAuthorityFile === undefined ? "" : " clientcert=verify-ca";
  const kind = tls === undefined ? "host" : "hostssl";
  const lines = [
    "local all postgres trust",
    "host all postgres 127.0.0.1/32 trust",
    "local replication postgres trust",
    "local all all scram-sha-256",
    `${kind} all all 127.0.0.1/32 scram-sha-256${certificate}`,
    `${kind} all all ::1/128 scram-sha-256${certificate}`,
  ];
  await Deno.writeTextFile(join(folder, "pg_hba.conf"), `${lines.join("\n")}\n`);
  await give(folder);
}

/** Copies the files to where the server can read them; answers its arguments. */
export async function tlsArgs(folder: string, tls: PostgresTls): Promise<readonly string[]> {
  const files = [
    ["ssl_cert_file", tls.certFile],
    ["ssl_key_file", tls.keyFile],
    ...(tls.clientAuthorityFile === undefined ? [] : [["ssl_ca_file", tls.clientAuthorityFile]]),
  ];
  const args = ["-c", "ssl=on"];
  for (const [name = "", from = ""] of files) {
    const file = join(folder, name);
    await Deno.copyFile(from, file);
    await Deno.chmod(file, 0o600);
    args.push("-c", `${name}=${file}`);
  }
  await give(folder);
  return args;
}

async function give(folder: string): Promise<void> {
  if (Deno.uid() === 0) await output(["chown", "-R", "postgres:", folder]);
}

/** The folder of a new cluster: copying it is faster than creating one. */
export async function clusterTemplate(): Promise<string> {
  const release = /[\d.]+/.exec(await output([requireTool("postgres"), "--version"]))?.[0];
  const kept = join(toolsFolder(), `postgres-${release}-cluster-1`);
  try {
    await Deno.lstat(kept);
    return kept;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  await makeTemplate(kept);
  return kept;
}

async function makeTemplate(kept: string): Promise<void> {
  const folder = await makePostgresFolder();
  const unfinished = `${kept}.${basename(folder)}`;
  try {
    const data = join(folder, "data");
    await output(asPostgres(postgresProgram("initdb"), ...INIT_ARGS, "--pgdata", data));
    const sql = `CREATE ROLE ${POSTGRES_USER.name} LOGIN PASSWORD '${POSTGRES_USER.password}';\n`;
    const single = ["--single", "-D", data, "-c", "log_min_messages=error", "postgres"];
    await output(asPostgres(requireTool("postgres"), ...single), sql);
    await Deno.mkdir(toolsFolder(), { recursive: true });
    await output(["cp", "-a", data, unfinished]);
    await Deno.rename(unfinished, kept).catch(async (error) => {
      // Another test run has made it in the meantime; then there is one.
      await Deno.remove(unfinished, { recursive: true });
      await Deno.lstat(kept).catch(() => {
        throw error;
      });
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
