import { assertEquals, assertMatch } from "@std/assert";
import { dirname, join } from "node:path";
import { ChildProcess } from "../harness/child_process.ts";
import { freePort } from "../harness/free_port.ts";
import { eventually, until } from "../harness/until.ts";
import { ADMIN_TOKEN } from "../harness/webhook_calls.ts";
import { WebhookReceiver } from "../harness/webhook_receiver.ts";
import { api, ECHO_WORKFLOW } from "../harness/webhook_weir.ts";
import { weirExecutable } from "../harness/weir_command.ts";

const PROJECT = new URL("../../", import.meta.url).pathname;
const NOBODY = 65_534;
/**
 * Runs a command as the user nobody, on a view of the machine that is read-only but for the folder of the data, without the
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
class Machine implements AsyncDisposable {
  readonly folder: string;
  readonly #env: Readonly<Record<string, string>>;

  private constructor(folder: string) {
    this.folder = folder;
    const addresses = { HOST: "127.0.0.1", GRPC_HOST: "127.0.0.1", DEBUG_HOST: "127.0.0.1" };
    const port = `${freePort()}`;
    this.#env = {
      ...addresses,
      ...{ PORT: port, GRPC_PORT: `${freePort()}`, DEBUG_PORT: `${freePort()}`, WORKERS: "2" },
      ...{ BACKEND_TYPE: "memory", RUNTIME_ROOT: join(folder, "current"), RUNTIME_WATCH_ROOT: "true" },
      ...{ WEBHOOK_STORE: join(folder, "store", "weir.db"), WORKFLOW_DIRECTORY: join(folder, "workflows") },
      ...{ WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8", ADMIN_TOKEN, WEIR_URL: `http://127.0.0.1:${port}` },
    };
  }

  /** Makes the folder with a workflow and the first rules. */
  static async open(): Promise<Machine> {
    const machine = new Machine(await Deno.makeTempDir({ prefix: "weir machine " }));
    for (const name of ["store", "workflows"]) await Deno.mkdir(join(machine.folder, name));
    await Deno.writeTextFile(join(machine.folder, "workflows", "echo.yaml"), ECHO_WORKFLOW);
    await machine.swapRules("first", 2);
    if (Deno.uid() === 0) {
      await Deno.chmod(machine.folder, 0o755);
      await Deno.chown(join(machine.folder, "store"), NOBODY, NOBODY);
    }
    return machine;
  }

  /** Where it takes HTTP requests. */
  get http(): string {
    return `127.0.0.1:${this.#env.PORT}`;
  }

  /** Where its page is. */
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
  }
}

async function mayMount(): Promise<boolean> {
  if (Deno.uid() !== 0) return false;
  const { success } = await new Deno.Command("/usr/bin/unshare", {
    args: ["--mount", "mount", "--bind", "/", "/mnt"],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).output();
  return success;
}

Deno.test("the program alone on a machine decides, reloads, delivers and takes commands", async () => {
  await using machine = await Machine.open();
  await using receiver = await WebhookReceiver.start();
  await using weir = await machine.start(["serve"]);
  await weir.find({ grpc: /Listening for gRPC on '([^']+)'/, http: /Listening for HTTP on '([^']+)'/ });
  const decisions = [];
  for (let call = 0; call < 3; call++) decisions.push(await machine.decide("v"));
  assertEquals(decisions, [[200, 2], [200, 2], [429, 2]]);

  await machine.swapRules("second", 3);
  await eventually(3, async () => (await machine.decide("other"))[1]);
  weir.signal("SIGHUP");
  assertEquals(await machine.decide("another"), [200, 3]);

  await until("the store", async () => (await api(machine.http, "/endpoints")).status === 200);
  await api(machine.http, "/endpoints", { body: { url: receiver.url } });
  const event = { event: "order.paid", data: { total: 3 } };
  assertEquals((await api(machine.http, "/events", { body: event })).status, 202);
  await until("the delivery", () => receiver.receptions.length === 1);
  assertEquals(JSON.parse(receiver.receptions[0]?.body ?? "").data, { total: 3 });
  assertMatch(await (await fetch(`http://${machine.debug}/ui/`)).text(), /<html/);

  const commands: readonly (readonly [words: string, code: number, text: RegExp])[] = [
    ["version", 0, /^weir \d/],
    ["health", 0, /^OK$/],
    [`check ${machine.folder.replaceAll(" ", "?")}/current/config`, 0, /^/],
    ["endpoints list", 0, /http:\/\/127\.0\.0\.1/],
    ["completions bash", 0, /complete/],
    ["nonsense", 2, /Unknown command/],
  ];
  for (const [words, code, text] of commands) {
    const [ended, printed] = await machine.run(
      ...words.split(" ").map((word) => word.replaceAll("?", " ")),
    );
    assertEquals([words, ended], [words, code], printed);
    assertMatch(printed, text);
  }
  assertEquals((await weir.stop()).code, 0, weir.stderrLines.join("\n"));
});
