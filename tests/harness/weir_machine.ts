import { dirname, join } from "node:path";
import { ChildProcess } from "./child_process.ts";
import { freePort } from "./free_port.ts";
import { type RedisDatabase, sharedRedis } from "./shared_servers.ts";
import { requireTool } from "./tools.ts";
import { ADMIN_TOKEN } from "./webhook_calls.ts";
import { ECHO_WORKFLOW } from "./webhook_weir.ts";
import { weirExecutable } from "./weir_command.ts";

const PROJECT = new URL("../../", import.meta.url).pathname;
const NOBODY = 65_534;
const REDIS = await sharedRedis();
/**
 * Runs a command as an unprivileged user, on a view of the machine that is read-only but for the folder of the data, without the
 * project and without the home of the user who has Deno: `sh -c VIEW sh DATA PROGRAM-FOLDER HIDDEN… -- COMMAND…`.
 */
const VIEW = `set -e
data=$1 program=$2 root=/mnt
shift 2
mount --bind / $root
mount -o remount,bind,ro $root
mount --bind /proc $root/proc
mount --bind /dev $root/dev
while [ "$1" != -- ]; do [ ! -d "$root$1" ] || mount -t tmpfs none "$root$1"; shift; done
shift
mount -t tmpfs -o mode=755 none $root/tmp
for folder in "$data" "$program"; do mkdir -p "$root$folder"; mount --bind "$folder" "$root$folder"; done
mount -o remount,bind,ro "$root$program"
mount -o remount,ro $root/tmp
exec /usr/sbin/chroot --userspec=${NOBODY}:${NOBODY} $root "$@"
`;

/** A folder for what the program reads and writes, and a way to run it there. */
export class Machine implements AsyncDisposable {
  readonly folder: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #database: RedisDatabase;

  private constructor(folder: string, database: RedisDatabase) {
    this.folder = folder;
    this.#database = database;
    const addresses = { HOST: "127.0.0.1", GRPC_HOST: "127.0.0.1", DEBUG_HOST: "127.0.0.1" };
    const port = `${freePort()}`;
    this.#env = {
      ...addresses,
      PORT: port,
      GRPC_PORT: `${freePort()}`,
      DEBUG_PORT: `${freePort()}`,
      WORKERS: "2",
      BACKEND_TYPE: "kv",
      KV_URL: database.url,
      RUNTIME_ROOT: join(folder, "current"),
      RUNTIME_WATCH_ROOT: "true",
      WEBHOOK_STORE: join(folder, "store", "weir.db"),
      WORKFLOW_DIRECTORY: join(folder, "workflows"),
      WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
      ADMIN_TOKEN,
      WEIR_URL: `http://127.0.0.1:${port}`,
    };
  }

  /** Makes the folder with a workflow and the first rules. */
  static async open(): Promise<Machine> {
    const machine = new Machine(await Deno.makeTempDir({ prefix: "weir machine " }), await REDIS.database());
    for (const name of ["store", "workflows"]) await Deno.mkdir(join(machine.folder, name));
    await Deno.writeTextFile(join(machine.folder, "workflows", "echo.yaml"), ECHO_WORKFLOW);
    await machine.swapRules("first", 2);
    if (Deno.uid() === 0) {
      await Deno.chmod(machine.folder, 0o755);
      await Deno.chown(join(machine.folder, "store"), NOBODY, NOBODY);
    }
    return machine;
  }

  /** Address for HTTP requests. */
  get http(): string {
    return `127.0.0.1:${this.#env.PORT}`;
  }

  /** Address of the debug pages. */
  get debug(): string {
    return `127.0.0.1:${this.#env.DEBUG_PORT}`;
  }

  /** Puts rules with this limit in the place of those before, by a symlink. */
  async swapRules(version: string, requestsPerUnit: number): Promise<void> {
    const config = join(this.folder, version, "config");
    await Deno.mkdir(config, { recursive: true });
    const rule = `{ key: k, rate_limit: { unit: day, requests_per_unit: ${requestsPerUnit} } }`;
    await Deno.writeTextFile(join(config, "shop.yaml"), `domain: shop\ndescriptors: [${rule}]\n`);
    await Deno.symlink(join(this.folder, version), join(this.folder, "next"));
    await Deno.rename(join(this.folder, "next"), join(this.folder, "current"));
  }

  /** Starts the program; without the right to change the view of the machine, it runs on the whole of it. */
  async start(args: readonly string[]): Promise<ChildProcess> {
    const program = weirExecutable();
    if (program === undefined) throw new Error("Cannot start a program: WEIR_BIN names none");
    const options = { env: { ...this.#env, PATH: "/usr/bin:/bin" }, cwd: dirname(program) };
    if (!await mayMount()) return new ChildProcess(program, { ...options, args });
    const hidden = [PROJECT, Deno.env.get("HOME") ?? "/root", dirname(Deno.execPath())];
    const view = ["--mount", "sh", "-c", VIEW, "sh", this.folder, dirname(program), ...hidden, "--"];
    return new ChildProcess("/usr/bin/unshare", { ...options, args: [...view, program, ...args] });
  }

  /**
   * Starts it under strace on the whole machine, as nothing should keep it from what it opens: calls that open files
   * go to `file`, also those that fail, one line each, with the paths of folders.
   */
  startTraced(args: readonly string[], file: string, env: Readonly<Record<string, string>>): ChildProcess {
    const program = weirExecutable();
    if (program === undefined) throw new Error("Cannot start a program: WEIR_BIN names none");
    const trace = ["--follow-forks", "-qq", "-y", "-s", "4096", "-e", "signal=none", "-o", file];
    return new ChildProcess(requireTool("strace"), {
      args: [...trace, "-e", "trace=?open,openat,?openat2,?creat,execve", program, ...args],
      env: { ...this.#env, PATH: "/usr/bin:/bin", ...env },
      cwd: this.folder,
    });
  }

  /** Runs a command to its end; answers its code and what it printed. */
  async run(...args: readonly string[]): Promise<[code: number, text: string]> {
    await using child = await this.start(args);
    const { code } = await child.exited;
    return [code, [...child.stdoutLines, ...child.stderrLines].join("\n")];
  }

  /** The status of a decision, and the limit that it shows. */
  async decide(value: string): Promise<[status: number, limit: number]> {
    const body = JSON.stringify({ domain: "shop", descriptors: [{ entries: [{ key: "k", value }] }] });
    const response = await fetch(`http://${this.http}/json`, { method: "POST", body });
    const { statuses } = await response.json();
    return [response.status, statuses[0].currentLimit.requestsPerUnit];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
    await this.#database[Symbol.asyncDispose]();
  }
}

/** Returns whether this process may change the view of the machine for a program. */
export async function mayMount(): Promise<boolean> {
  if (Deno.uid() !== 0) return false;
  const { success } = await new Deno.Command("/usr/bin/unshare", {
    args: ["--mount", "mount", "--bind", "/", "/mnt"],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).output();
  return success;
}
