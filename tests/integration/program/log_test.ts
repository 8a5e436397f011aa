import { assert, assertEquals } from "#assert";
import { freePort } from "../../harness/free_port.ts";
import { until } from "../../harness/until.ts";
import { runtimeEnvironment, weirCommand } from "../../harness/weir_command.ts";
import { makeWeirFolder } from "../../harness/weir_folder.ts";

const RULES = "domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: day, requests_per_unit: 10}\n";
/** The limit for everything that does not wait for the log, which waits forever. */
const SOON_MS = 60_000;

interface UnreadOptions {
  /** Shell text that redirects or fills the streams before Weir takes the shell's place. */
  readonly shell: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
}

/** Weir whose output streams are read by the test alone, when the test asks for it; its address is known without the log. */
class UnreadWeir implements AsyncDisposable {
  readonly port: number;
  readonly child: Deno.ChildProcess;
  readonly #folder: string;

  private constructor(child: Deno.ChildProcess, port: number, folder: string) {
    this.child = child;
    this.port = port;
    this.#folder = folder;
  }

  static async start({ shell, env = {}, args = ["serve"] }: UnreadOptions): Promise<UnreadWeir> {
    const port = freePort();
    const folder = await makeWeirFolder({ "a.yaml": RULES });
    const weir = weirCommand(args);
    const child = new Deno.Command("sh", {
      args: ["-c", `${shell}; exec "$@"`, "sh", weir.command, ...weir.args],
      clearEnv: true,
      env: { ...runtimeEnvironment(weir), ...folder.env, PORT: `${port}`, LOG_LEVEL: "debug", ...env },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    return new UnreadWeir(child, port, folder.path);
  }

  async get(path: string, init: RequestInit = {}): Promise<[number, string]> {
    const signal = AbortSignal.timeout(SOON_MS);
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, { signal, ...init });
    return [response.status, await response.text()];
  }

  /** Decides, is refused, and is healthy. */
  async checkAnswers(): Promise<void> {
    await until("Weir to be healthy", async () => (await this.get("/healthcheck"))[0] === 200);
    const body = JSON.stringify({ domain: "d", descriptors: [{ entries: [{ key: "k", value: "v" }] }] });
    for (let call = 0; call < 3; call++) {
      assertEquals((await this.get("/json", { method: "POST", body }))[0], 200);
      assertEquals((await this.get("/json", { method: "POST", body: "{" }))[0], 400);
    }
    assertEquals(await this.get("/healthcheck"), [200, "OK"]);
  }

  /** The exit code; -1 when it did not end in time. */
  async exitCode(): Promise<number> {
    const timer = setTimeout(() => this.child.kill("SIGKILL"), SOON_MS);
    const { code, signal } = await this.child.status;
    clearTimeout(timer);
    return signal === null ? code : -1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await this.child.status;
    await Promise.allSettled([this.child.stdout.cancel(), this.child.stderr.cancel()]);
    await Deno.remove(this.#folder, { recursive: true });
  }
}

/** As many bytes as a pipe holds: the next write waits for a reader. */
const FILL = "head -c 65536 /dev/zero";

Deno.test("log: with stderr and stdout on pipes that are not read, decisions continue and SIGTERM ends", async () => {
  const env = { DISABLE_STATS: "false", USE_PUSH_STATS: "false", STATS_FLUSH_INTERVAL: "50ms" };
  await using weir = await UnreadWeir.start({ shell: `${FILL} >&2; ${FILL}`, env });
  await weir.checkAnswers();
  weir.child.kill("SIGTERM");
  assertEquals(await weir.exitCode(), 0);
});

Deno.test("log: once a full pipe is read, every line arrives, the last before the exit too", async () => {
  await using weir = await UnreadWeir.start({ shell: `${FILL} >&2` });
  await weir.checkAnswers();
  const text = new Response(weir.child.stderr).text();
  weir.child.kill("SIGTERM");
  assertEquals(await weir.exitCode(), 0);
  const lines = (await text).replaceAll("\0", "").trimEnd().split("\n");
  assert(lines.some((line) => line.includes("Listening for gRPC")), lines.join("\n"));
  assert(lines.at(-1)?.endsWith('msg="Stopped"'), lines.join("\n"));
});

Deno.test("log: on a full disk Weir starts, answers, is healthy and ends", async () => {
  const env = { DISABLE_STATS: "false", USE_PUSH_STATS: "false", STATS_FLUSH_INTERVAL: "50ms" };
  await using weir = await UnreadWeir.start({ shell: "exec 2>/dev/full >/dev/full", env });
  await weir.checkAnswers();
  weir.child.kill("SIGTERM");
  assertEquals(await weir.exitCode(), 0);
});

for (
  const [what, env, code] of [
    ["a wrong setting", { PORT: "abc" }, 2],
    ["an address of another machine", { HOST: "192.0.2.1" }, 1],
  ] as const
) {
  for (
    const [where, shell] of Object.entries({ "full disk": "exec 2>/dev/full", "full pipe": `${FILL} >&2` })
  ) {
    Deno.test(`log: on a ${where} a start that fails by ${what} exits with ${code}`, async () => {
      await using weir = await UnreadWeir.start({ shell, env });
      assertEquals(await weir.exitCode(), code);
    });
  }
}

Deno.test("log: a command whose output is not read to its end is ended as by SIGPIPE, and says nothing", async () => {
  await using weir = await UnreadWeir.start({ shell: ":", args: ["help"] });
  await weir.child.stdout.cancel();
  const said = new Response(weir.child.stderr).text();
  assertEquals([await weir.exitCode(), await said], [141, ""]);
});
