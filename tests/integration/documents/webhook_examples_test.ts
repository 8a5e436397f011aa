/**
 * Runs the `console webhooks` blocks of the pages: all blocks of a page in order, against one service with the settings
 * of `deno task start`. `console webhooks listener` is what the receiver prints meanwhile. Loads the `yaml workflow` blocks.
 */
import { assertEquals } from "#assert";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { runCommand } from "../../../src/cli/commands.ts";
import { readWorkflowFile } from "../../../src/webhooks/workflows/file.ts";
import { type Block, documentPages } from "../../harness/documents.ts";
import { commandsOf, curl, steady, wordsOf } from "../../harness/example_text.ts";
import { freePort } from "../../harness/free_port.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { eventually, until } from "../../harness/until.ts";
import { api } from "../../harness/webhook_weir.ts";

for (const { path, blocks } of documentPages()) {
  const commands = blocks.filter(({ language, marks }) =>
    language === "console" && marks.includes("webhooks")
  );
  const workflows = blocks.filter(({ language, marks }) => language === "yaml" && marks.includes("workflow"));

  if (commands.length > 0) {
    Deno.test(`${path}: the webhook commands print the output`, async (test) => {
      const settings = commands.flatMap(({ marks }) => marks).filter((mark) => mark.includes("="));
      await using session = await WebhookExamples.start(
        Object.fromEntries(settings.map((mark) => mark.split("=", 2))),
      );
      for (const block of commands) {
        const isRight = await test.step({
          name: `line ${block.line}`,
          fn: () => session.replay(block),
          // The service lives on.
          sanitizeOps: false,
          sanitizeResources: false,
        });
        if (!isRight) break;
      }
    });
  }

  for (const { line, text } of workflows) {
    Deno.test(`${path}:${line}: the workflow is valid`, () => {
      const { problems } = readWorkflowFile("workflow.yaml", text, ["CRM_TOKEN"]);
      assertEquals(problems, []);
    });
  }
}

const ROOT = new URL("../../../", import.meta.url);
const LOOPBACK = "127.0.0.0/8,::1/128";
const TOKEN = "the-token-that-deno-task-start-has-made";
/** Commands that change nothing: their output may take a moment to be complete. */
const READING = /^weir (?:\S+ (?:list|show|why)|audit)\b/;
/** Files of the commands, which belong into the folder of the session. */
const FILE = /^(?!-)(?:data\/)?[\w.-]+\.(?:db|json|jsonl|txt|yaml)$|^secret$|^data\//;

/** A service as the start task starts it, and two terminals: one for commands, one for the receiver. */
class WebhookExamples implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack;
  readonly #folder: string;
  readonly #address: string;
  readonly #receiverPort: number;
  readonly #stop = new AbortController();
  #names: ExampleNames;
  /** Lines of the receiver that no block has shown yet. */
  #heard: string[] = [];
  #receiver: Promise<unknown> = Promise.resolve();
  #exitCode = 0;

  private constructor(stack: AsyncDisposableStack, folder: string, address: string, receiverPort: number) {
    this.#stack = stack;
    this.#folder = folder;
    this.#address = address;
    this.#receiverPort = receiverPort;
    this.#names = new ExampleNames([
      [":9000", `:${receiverPort}`],
      [":9001", `:${freePort()}`],
      ["localhost:8080", address],
      ['"Authorization: Bearer $(cat data/admin-token)"', `'Authorization: Bearer ${TOKEN}'`],
    ]);
  }

  /** Starts the service; `settings` are those of the page. */
  static async start(settings: Readonly<Record<string, string>>): Promise<WebhookExamples> {
    await using stack = new AsyncDisposableStack();
    const folder = await Deno.makeTempDir({ prefix: "weir_" });
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
          ...settings,
        },
      }),
    );
    const { http } = weir.running.addresses;
    // The ports are open before the webhook service has its store.
    assertEquals((await api(http, "/triggers?limit=1", { token: TOKEN })).status, 200);
    return new WebhookExamples(stack.move(), folder, http, receiverPort);
  }

  /** Runs a block and compares the output with the one on the page. */
  async replay(block: Block): Promise<void> {
    if (block.marks.includes("listener")) return await this.#listened(block.text);
    const commands = commandsOf(block.text);
    const [, ...expected] = block.text.split(/^\$ .*\n/m);
    assertEquals(expected.length, commands.length);
    for (const [index, command] of commands.entries()) await this.#replayOne(command, expected[index] ?? "");
  }

  async #replayOne(command: string, expected: string): Promise<void> {
    const printed = async () => this.#shown(await this.#run(this.#names.made(command)), expected);
    if (READING.test(command)) await eventually(steadyRecords(expected), printed);
    else assertEquals(await printed(), steadyRecords(expected), command);
  }

  /** The output with the names of the page, which are learned if all is as expected. */
  #shown(printed: string, expected: string): string {
    const { text, names } = this.#names.read(printed, expected);
    const shown = steadyRecords(text);
    if (shown === steadyRecords(expected)) this.#names = names;
    return shown;
  }

  async #listened(expected: string): Promise<void> {
    const count = expected.trimEnd().split("\n").length;
    await until(`${count} lines of the receiver`, () => this.#heard.length >= count);
    assertEquals(this.#shown(this.#heard.splice(0, count).join("\n"), expected), steadyRecords(expected));
  }

  /** Runs a command; returns its output. */
  async #run(line: string): Promise<string> {
    const [piped = line, expected] = line.split(" | grep -F ");
    if (expected !== undefined) {
      const lines = (await this.#run(piped)).split("\n").filter((text) => text.includes(expected));
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
    if (program === "curl") return `${(await curl(args)).trimEnd()}\n`;
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
    return args.map((arg) => FILE.test(arg) ? join(this.#folder, arg) : arg);
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

/** Identifiers, keys and secrets. */
const MADE = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|svc[te]_[\w-]{43}|whsec_[\w+/]{43}=/g;
const KEY = /^svc[te]_/;

/**
 * Pairs each identifier, key or secret of a page with the one that the service has created. Two of them are a pair when
 * they are at the same place in the output on the page and in the output of the command.
 */
class ExampleNames {
  /** The created names, by the names of the page. */
  readonly #made: Map<string, string>;

  /** `known` are texts of the page and what replaces them, such as addresses. */
  constructor(known: Iterable<readonly [string, string]>) {
    this.#made = new Map(known);
  }

  /** A command as it is run. */
  made(command: string): string {
    return [...this.#made].reduce((text, [shown, made]) => text.replaceAll(shown, made), command);
  }

  /** The output with the names of the page; `expected` is the output on the page. */
  read(printed: string, expected: string): { readonly text: string; readonly names: ExampleNames } {
    const names = new ExampleNames(this.#made);
    const made = printed.match(MADE) ?? [];
    for (const [index, shown] of (expected.match(MADE) ?? []).entries()) names.#add(shown, made[index]);
    return { text: names.#asShown(printed), names };
  }

  #add(shown: string, made: string | undefined): void {
    if (made === undefined || this.#made.has(shown) || [...this.#made.values()].includes(made)) return;
    this.#made.set(shown, made);
  }

  #asShown(printed: string): string {
    return [...this.#made].reduce((text, [shown, made]) => {
      const whole = text.replaceAll(made, shown);
      if (!KEY.test(shown)) return whole;
      // Lists show the end of a key.
      return whole.replaceAll(new RegExp(`(?<=  )${made.slice(-4)}(?=\\s)`, "g"), shown.slice(-4));
    }, printed);
  }
}

/** As `steady`, without times, sizes, hashes and the widths of columns. */
function steadyRecords(text: string): string {
  return steady(text)
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, "TIME")
    .replace(/"date":"\w{3}, /g, '"date":"DAY, ')
    .replace(/\b[0-9a-f]{64}\b/g, "HASH")
    .replace(/\b\d+ (bytes|ms|rows of audit)\b/g, "N $1")
    .replace(/ {2,}/g, "  ");
}
