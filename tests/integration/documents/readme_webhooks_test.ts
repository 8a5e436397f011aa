/**
 * Runs what the README says of webhooks and workflows. Fenced blocks are marked behind their language:
 * - `console webhooks`: lines with `$ ` are commands, what follows is what they print. All of them, from the first to
 *   the last, are run against one service, as `deno task start` would start it.
 * - `console webhooks listener`: what the receiver prints meanwhile.
 * - `yaml workflow`: a good workflow file.
 */
import { assertEquals } from "@std/assert";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { commandsMarkdown, runCommand } from "../../../src/cli/commands.ts";
import { SLOTS_MS } from "../../../src/webhooks/model/schedule.ts";
import { WEBHOOK_COUNTERS, WEBHOOK_GAUGES, WEBHOOK_TIMERS } from "../../../src/webhooks/service/metrics.ts";
import { readWorkflowFile } from "../../../src/webhooks/workflows/file.ts";
import { freePort } from "../../harness/free_port.ts";
import { ReadmeNames, steadyRecords } from "../../harness/readme_names.ts";
import { type Block, blocksOf, commandsOf, curl, curlFlags, wordsOf } from "../../harness/readme_text.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";
import { api, WebhookFolder } from "../../harness/webhook_weir.ts";

const ROOT = new URL("../../../", import.meta.url);
const README = await Deno.readTextFile(new URL("README.md", ROOT));
const BLOCKS = blocksOf(README);
const LOOPBACK = "127.0.0.0/8,::1/128";
const TOKEN = "the-token-that-deno-task-start-has-made";
/** More than `WEBHOOK_MAX_BODY_BYTES`. */
const LONG = " ".repeat(1_048_577);
/** Commands that change nothing: what they show may take a moment. */
const READING = /^weir (?:\S+ (?:list|show|why)|audit)\b/;

Deno.test("the commands for webhooks in the README print what it says", async (test) => {
  await using session = await Session.start();
  for (const block of BLOCKS.filter(({ marks }) => marks.includes("webhooks"))) {
    await test.step({
      name: `line ${block.line}`,
      fn: () => session.replay(block),
      // The service lives on.
      sanitizeOps: false,
      sanitizeResources: false,
    });
  }
});

for (const { line, text } of BLOCKS.filter(({ marks }) => marks.includes("workflow"))) {
  Deno.test(`the workflow in line ${line} of the README is right`, () => {
    const { problems } = readWorkflowFile("workflow.yaml", text, ["CRM_TOKEN"]);
    assertEquals(problems, []);
  });
}

Deno.test("the schedule in the README is the one in force", () => {
  const units: Record<string, number> = { s: 1_000, min: 60_000, h: 3_600_000 };
  const times = [...section("### Deliveries").matchAll(/^\| \d +\| (?:at once|(\d+) (s|min|h))\b/gm)];
  const offsets = times.map(([, count = "0", unit = "s"]) => Number(count) * (units[unit] ?? NaN));
  assertEquals(offsets, SLOTS_MS);
});

Deno.test("the calls of the administration in the README are those that there are", async () => {
  const listed = [...section("### Administration").matchAll(/^\| `([A-Z]+) (\/\S+)`/gm)];
  const told = listed.map(([, method, path]) => `${method} ${path}`);
  const folder = new URL("src/webhooks/api/", ROOT);
  const there = new Set(["POST /events"]);
  for await (const { name } of Deno.readDir(folder)) {
    const text = await Deno.readTextFile(new URL(name, folder));
    for (const [, method, path = ""] of text.matchAll(/"([A-Z]+) (\/[^"]+)":/g)) {
      there.add(`${method} ${path.replace(":keyId", "<keyId>").replace(":id", "<id>")}`);
    }
  }
  assertEquals(told.toSorted(), [...there].sort());
});

Deno.test("the commands of the webhook service in the README are those that there are", () => {
  const rows = commandsMarkdown().split("\n").filter((line) => line.startsWith("| `weir "));
  const wanted = rows.map((row) => /^\| `([^`]+)`/.exec(row)?.[1]);
  const told = [...section("### The command line").matchAll(/^\| `(weir [^`]+)`/gm)].map(([, call]) => call);
  assertEquals(told, wanted);
});

Deno.test("the codes and statistics of webhooks in the README are those that there are", async () => {
  let sources = "";
  for (const name of ["webhook_routes", "api_call", "problem", "body"]) {
    sources += await Deno.readTextFile(new URL(`src/http/${name}.ts`, ROOT));
  }
  for (const place of ["api", "service"]) {
    const folder = new URL(`src/webhooks/${place}/`, ROOT);
    for await (const { name } of Deno.readDir(folder)) {
      sources += await Deno.readTextFile(new URL(name, folder));
    }
  }
  const rows = [...section("### Triggers").matchAll(/^\|.*\| (?:4|5)\d\d +\| `(\w+)`/gm)];
  const codes = rows.map(([, code = ""]) => code);
  assertEquals([codes.length > 12, codes.filter((code) => !sources.includes(`"${code}"`))], [true, []]);
  const cells = section("### What it tells of itself").split("\n").map((line) => line.split("|")[1] ?? "");
  const told = cells.flatMap((cell) => [...cell.matchAll(/`([a-z_]+)/g)].map(([, name]) => name));
  const there = [...WEBHOOK_COUNTERS, ...WEBHOOK_GAUGES, ...WEBHOOK_TIMERS].map((name) => name.split(".")[0]);
  assertEquals(told.toSorted(), [...new Set(["triggers", ...there])].sort());
});

/** A call of a trigger: which trigger, what is otherwise than in a good call, and what the README says of that. */
type TriggerCase = readonly [
  row: string,
  trigger: "plain" | "strict" | "limited" | "disabled" | "lost",
  call: Readonly<{ method?: string; token?: string; headers?: Record<string, string>; body?: string }>,
];

const TRIGGER_CASES: readonly TriggerCase[] = [
  ["Good", "plain", {}],
  ["Another method than `POST`", "plain", { method: "PUT", token: "x" }],
  ["No key, an unknown one, or not as `Bearer`", "plain", {
    token: "svct_x",
    headers: { "content-type": "a/b" },
  }],
  ["The key of another trigger", "disabled", { token: "plain" }],
  ["The trigger is disabled", "disabled", { headers: { "content-type": "a/b" } }],
  ["`Content-Type` that is not `application/json`", "plain", {
    headers: { "content-type": "a/b" },
    body: LONG,
  }],
  ["A body of more than `WEBHOOK_MAX_BODY_BYTES`", "plain", {
    headers: { "idempotency-key": "" },
    body: LONG,
  }],
  ["`Idempotency-Key` empty, too long, with control characters", "plain", {
    headers: { "idempotency-key": "k".repeat(256) },
    body: "{",
  }],
  ["No `Idempotency-Key` where the trigger requires one", "strict", { body: "{" }],
  ["A body that is not JSON", "plain", { body: "{" }],
  ["JSON that is not an object", "plain", { body: `${"[".repeat(99)}${"]".repeat(99)}` }],
  ["Objects and lists nested more than 64 deep", "plain", {
    body: `{"a":${"[".repeat(99)}${"]".repeat(99)}}`,
  }],
  ["A known key with another body, `onBodyMismatch: reject`", "strict", {
    headers: { "idempotency-key": "known" },
    body: '{"other":1}',
  }],
  ["The input lacks what the trigger's limit is made of", "limited", {}],
  ["Over the trigger's limit", "limited", { body: '{"who":"closed"}' }],
  ["No workflow file of that name, or it was never right", "lost", {}],
];

Deno.test("calls of triggers are answered as the table in the README says", async () => {
  await using folder = await WebhookFolder.make();
  const rules =
    "domain: d\ndescriptors: [{ key: who, value: closed, rate_limit: { unit: day, requests_per_unit: 0 } }]\n";
  await using weir = await ServeFixture.start({ env: folder.env, rules: { "d.yaml": rules } });
  const { http } = weir.running.addresses;
  await opened(http);
  const limit = { domain: "d", descriptors: [{ who: "{{ input.who }}" }] };
  const keys: Record<string, string> = {};
  for (
    const [name, fields] of Object.entries({
      plain: {},
      strict: { requireIdempotencyKey: true, onBodyMismatch: "reject" },
      limited: { limit },
      disabled: { enabled: false },
      lost: { workflow: "lost" },
    })
  ) {
    const { body } = await api(http, "/triggers", { body: { name, workflow: "echo", ...fields } });
    keys[name] = body.key;
  }
  await api(http, "/workflows/triggers/strict", {
    token: keys["strict"] ?? "",
    idempotencyKey: "known",
    body: {},
  });
  const table = section("### Triggers").split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
  for (const [row, name, { method = "POST", token = name, headers = {}, body = "{}" }] of TRIGGER_CASES) {
    const response = await fetch(`http://${http}/api/v1/workflows/triggers/${name}`, {
      method,
      headers: {
        authorization: `Bearer ${keys[token] ?? token}`,
        "content-type": "application/json",
        ...headers,
      },
      body,
    });
    const { code = "executionId" } = await response.json();
    const [, , status, wanted = ""] = table.find((cells) => cells[1] === row) ?? [];
    assertEquals([String(response.status), wanted.includes(code)], [status, true], `${row}: ${code}`);
  }
});

/** Waits until the webhook service has its store: the ports are open before. */
async function opened(address: string, token?: string): Promise<void> {
  const call = token === undefined ? {} : { token };
  await until("the webhook service", async () => {
    return (await api(address, "/triggers?limit=1", call)).status !== 503;
  });
}

/** What stands under a heading. */
function section(heading: string): string {
  const [, rest = ""] = README.split(`\n${heading}\n`);
  return rest.split(/\n#{2,3} /)[0] ?? "";
}

/** A service as the start task starts it, and two terminals: one for commands, one for the receiver. */
class Session implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack;
  readonly #folder: string;
  readonly #address: string;
  readonly #receiverPort: number;
  readonly #stop = new AbortController();
  #names: ReadmeNames;
  /** What the receiver has printed and no block has shown. */
  #heard: string[] = [];
  #receiver: Promise<unknown> = Promise.resolve();
  #exitCode = 0;

  private constructor(stack: AsyncDisposableStack, folder: string, address: string, receiverPort: number) {
    this.#stack = stack;
    this.#folder = folder;
    this.#address = address;
    this.#receiverPort = receiverPort;
    this.#names = new ReadmeNames([
      [":9000", `:${receiverPort}`],
      [":9001", `:${freePort()}`],
      ["localhost:8080", address],
      ['"Authorization: Bearer $(cat data/admin-token)"', `'Authorization: Bearer ${TOKEN}'`],
    ]);
  }

  static async start(): Promise<Session> {
    await using stack = new AsyncDisposableStack();
    const folder = await Deno.makeTempDir({ prefix: "weir_readme_" });
    stack.defer(() => Deno.remove(folder, { recursive: true }));
    const receiverPort = freePort();
    await Deno.mkdir(join(folder, "data"));
    await Deno.mkdir(join(folder, "workflows"));
    await Deno.writeTextFile(join(folder, "data/admin-token"), `${TOKEN}\n`);
    const workflow = await Deno.readTextFile(new URL("config/workflows/order-intake.yaml", ROOT));
    const text = workflow.replaceAll(":9000", `:${receiverPort}`);
    await Deno.writeTextFile(join(folder, "workflows/order-intake.yaml"), text);
    const shop = await Deno.readTextFile(new URL("config/rules/shop.yaml", ROOT));
    const weir = stack.use(
      await ServeFixture.start({
        rules: { "shop.yaml": shop },
        env: {
          WEBHOOK_STORE: join(folder, "data/weir.db"),
          WORKFLOW_DIRECTORY: join(folder, "workflows"),
          WEBHOOK_ALLOW_CIDRS: LOOPBACK,
          WORKFLOW_ALLOW_CIDRS: LOOPBACK,
          ADMIN_TOKEN: TOKEN,
        },
      }),
    );
    await opened(weir.running.addresses.http, TOKEN);
    return new Session(stack.move(), folder, weir.running.addresses.http, receiverPort);
  }

  /** Runs a block and compares what is printed with what it says. */
  async replay(block: Block): Promise<void> {
    if (block.marks.includes("listener")) return await this.#listened(block.text);
    const commands = commandsOf(block.text);
    const [, ...wanted] = block.text.split(/^\$ .*\n/m);
    assertEquals(wanted.length, commands.length);
    for (const [index, command] of commands.entries()) await this.#replayOne(command, wanted[index] ?? "");
  }

  async #replayOne(command: string, wanted: string): Promise<void> {
    let printed = await this.#printed(command, wanted);
    const end = performance.now() + 60_000;
    while (READING.test(command) && printed.text !== printed.wanted && performance.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      printed = await this.#printed(command, wanted);
    }
    assertEquals(printed.text, printed.wanted, command);
    this.#names = printed.names;
  }

  async #printed(
    command: string,
    wanted: string,
  ): Promise<{ text: string; wanted: string; names: ReadmeNames }> {
    const { text, names } = this.#names.read(await this.#run(this.#names.made(command)), wanted);
    return { text: steadyRecords(text), wanted: steadyRecords(wanted), names };
  }

  async #listened(wanted: string): Promise<void> {
    const count = wanted.trimEnd().split("\n").length;
    await until(`${count} lines of the receiver`, () => this.#heard.length >= count);
    const { text, names } = this.#names.read(this.#heard.splice(0, count).join("\n"), wanted);
    assertEquals(steadyRecords(text), steadyRecords(wanted));
    this.#names = names;
  }

  /** Runs a command; answers what it prints. */
  async #run(line: string): Promise<string> {
    const [piped = line, wanted] = line.split(" | grep -F ");
    if (wanted !== undefined) {
      const lines = (await this.#run(piped)).split("\n").filter((text) => text.includes(wanted));
      return `${lines.join("\n")}\n`;
    }
    const [, command = line, sign, file] = /^(.*) ([<>]) (\S+)$/.exec(line) ?? [];
    const [program, ...args] = wordsOf(command);
    const path = join(this.#folder, file ?? "");
    if (program === "echo" && args[0] === "$?") return `${this.#exitCode}\n`;
    if (program === "echo" && sign === ">") {
      await Deno.writeTextFile(path, `${args.join(" ")}\n`);
      return "";
    }
    if (program === "curl") return `${(await curl(curlFlags(args))).trimEnd()}\n`;
    if (program !== "weir") throw new Error(`Cannot run "${line}": it is unknown`);
    return args[1] === "listen" ? await this.#listen(args) : await this.#weir(args, path);
  }

  async #weir(args: readonly string[], input: string): Promise<string> {
    const lines: string[] = [];
    const stdin = () => new Blob([Deno.readFileSync(input)]).stream();
    this.#exitCode = await runCommand(this.#inFolder(args), { ...this.#options(lines), stdin });
    return lines.map((line) => `${line.replaceAll(`${this.#folder}/`, "")}\n`).join("");
  }

  async #listen(args: readonly string[]): Promise<string> {
    const command = [...this.#inFolder(args), "--port", String(this.#receiverPort)];
    this.#receiver = runCommand(command, this.#options(this.#heard));
    await until("the receiver listens", () => this.#heard.length > 0);
    return `${this.#heard.shift()}\n`;
  }

  #inFolder(args: readonly string[]): string[] {
    return args.map((arg) => /^(?:secret|data\/.*|copy\.db)$/.test(arg) ? join(this.#folder, arg) : arg);
  }

  #options(lines: string[]) {
    const print = (text: string) => void lines.push(...text.split("\n"));
    return {
      environment: { WEIR_URL: `http://${this.#address}` },
      output: { stdout: print, stderr: print },
      clock: systemClock,
      folder: this.#folder,
      stop: this.#stop.signal,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#receiver;
    await this.#stack.disposeAsync();
  }
}
