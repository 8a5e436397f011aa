/**
 * Runs the examples of the README. Fenced blocks are marked behind their language:
 * - `yaml rules`: a good rule file. `yaml wrong`: a bad one.
 * - `yaml mapping`: a good mapping of statistics to metrics.
 * - `yaml file=PATH`: the same text as that file.
 * - `ts rest`: a program with the HTTP client library; a comment behind a statement is what it prints.
 * - `console try`: lines with `$ ` are commands, what follows is what they print. The rules are those of
 *   `config/rules/shop.yaml`, with `above` those of the block before; `NAME=value` is a setting of the service.
 * `console webhooks` and `yaml workflow` are for `readme_webhooks_test.ts`, `receiver=NAME` for the recipes' own test.
 */
import { assertEquals } from "@std/assert";
import { parse } from "yaml";
import { scaledClock } from "../../harness/scaled_clock.ts";
import { runCommand } from "../../../src/cli/commands.ts";
import type { Output } from "../../../src/cli/command.ts";
import { readRuleFile } from "../../../src/config/rule_file.ts";
import { readMetricMapping } from "../../../src/config/metric_mapping.ts";
import { compileRules } from "../../../src/ratelimit/compile_rules.ts";
import { BUCKET_BOUNDS_MS } from "../../../src/stats/timer.ts";
import { makeCertificates } from "../../harness/certificates.ts";
import { ChildProcess } from "../../harness/child_process.ts";
import { startEnvoy } from "../../harness/envoy.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import {
  type Block,
  blocksOf,
  commandsOf,
  comparable,
  curl,
  curlFlags,
  wordsOf,
} from "../../harness/readme_text.ts";
import { needs, requireTool } from "../../harness/tools.ts";

const ROOT = new URL("../../../", import.meta.url);
const README = await Deno.readTextFile(new URL("README.md", ROOT));
const SHOP = await Deno.readTextFile(new URL("config/rules/shop.yaml", ROOT));
const ENVOY_FILE = "config/deploy/envoy.yaml";
/** Far from the end of a minute, so that no window ends within an example. */
const STILL_CLOCK = scaledClock({ now: 1_795_263_681_000 });

const BLOCKS = blocksOf(README);

Deno.test("every YAML, console and TypeScript block of the README is marked for a test", () => {
  const kinds = [
    ...["rules", "wrong", "try", "mapping", "rest", "webhooks", "workflow", "receiver=deno"],
    `file=${ENVOY_FILE}`,
  ];
  const unmarked = BLOCKS
    .filter(({ language }) => ["yaml", "console", "ts"].includes(language))
    .filter(({ marks }) => !marks.some((mark) => kinds.includes(mark)));
  assertEquals(unmarked, []);
});

Deno.test("every link of the README leads to a heading of it, or to a file that there is", async () => {
  const text = README.replaceAll(/^```.*?^```$/gms, "").replaceAll(/`[^`\n]*`/g, "");
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  const anchors = anchorsOf(README);
  const lost: string[] = [];
  for (const target of new Set(targets)) {
    if (/^https?:/.test(target) || anchors.has(target)) continue;
    if (target.startsWith("#") || !(await isThere(target))) lost.push(target);
  }
  assertEquals([targets.length > 50, lost], [true, []]);
});

for (const block of BLOCKS.filter(({ marks }) => marks.includes("rules"))) {
  Deno.test(`the rules in line ${block.line} of the README load without error or warning`, () => {
    const { source, problems } = readRuleFile("rules.yaml", block.text);
    const compiled = compileRules(source === undefined ? [] : [source], { mergeDomains: false });
    assertEquals([...problems, ...compiled.problems], []);
  });
}

for (const block of BLOCKS.filter(({ marks }) => marks.includes("mapping"))) {
  Deno.test(`the mapping in line ${block.line} of the README is read without a mistake`, () => {
    const { mappings, problems } = readMetricMapping("mapping.yaml", block.text, {
      boundsSeconds: BUCKET_BOUNDS_MS.map((ms) => ms / 1_000),
    });
    assertEquals([mappings.length > 0, problems], [true, []]);
  });
}

for (const [index, block] of BLOCKS.entries()) {
  if (!block.marks.includes("try")) continue;
  const above = block.marks.includes("above") ? BLOCKS[index - 1]?.text ?? "" : SHOP;
  Deno.test({
    ...needs(
      block.marks.includes("grpcurl") ? ["grpcurl"] : [],
      `the commands in line ${block.line} of the README print what it says`,
    ),
    async fn() {
      await using session = new Session(above, block.marks);
      const printed = await printedBy(session, block);
      assertEquals(comparable(printed), comparable(block.text));
    },
  });
}

const PROGRAMS = BLOCKS.filter(({ marks }) => marks.includes("rest"));

Deno.test({
  ...needs(["openssl"], "the programs in the README print what it says"),
  async fn(test) {
    await using programs = await Programs.write(PROGRAMS.map(({ text }) => text));
    await programs.addAuthority();
    const { code, printed } = await programs.run();
    for (const [index, { line, text }] of PROGRAMS.entries()) {
      const said = [...text.matchAll(/; \/\/ (.+)$/gm)].map(([, words]) => words);
      await test.step(`line ${line}`, () => assertEquals(printed[index], said));
    }
    assertEquals(code, 0);
  },
});

Deno.test("the programs in the README pass the type check", async () => {
  await using programs = await Programs.write(PROGRAMS.map(({ text }) => text));
  const { code, lines } = await programs.check();
  assertEquals([PROGRAMS.length > 15, code, lines], [true, 0, []]);
});

Deno.test("the Envoy configuration in the README is the one of the file", async () => {
  const text = BLOCKS.find(({ marks }) => marks.includes(`file=${ENVOY_FILE}`))?.text;
  assertEquals(text, await Deno.readTextFile(new URL(ENVOY_FILE, ROOT)));
});

Deno.test({
  ...needs(["envoy"], "Envoy limits with the configuration in the README"),
  async fn() {
    await using weir = await ServeFixture.start({ rules: { "shop.yaml": SHOP }, clock: STILL_CLOCK });
    const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
    await using application = Deno.serve(quiet, () => new Response("hello from the application"));
    const ports = new Map([
      [10_000, 0],
      [3_000, application.addr.port],
      [8_081, portOf(weir.running.addresses.grpc)],
    ]);
    const text = await Deno.readTextFile(new URL(ENVOY_FILE, ROOT));
    await using envoy = await startEnvoy(
      parse(text, (key, value) => {
        if (key === "port_value") return ports.get(Number(value));
        // A busy machine is no failure.
        return key === "timeout" || key === "connect_timeout" ? "60s" : value;
      }),
    );
    const url = `http://127.0.0.1:${portOf(envoy.address("edge"))}/`;
    const seen: unknown[] = [];
    for (let call = 1; call <= 6; call++) seen.push(await statusOf(url, { "x-account": "bob" }));
    assertEquals([...seen, await statusOf(url, {})], [200, 200, 200, 200, 200, 429, 200]);
  },
});

/** Where links to the headings of a page lead; the second heading of one name has `-1` behind it, and so on. */
function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ""] of markdown.replaceAll(/^```.*?^```$/gms, "").matchAll(/^#{2,4} (.+)$/gm)) {
    const name = `#${heading.toLowerCase().replaceAll(/[^\w\- ]/g, "").replaceAll(" ", "-")}`;
    let anchor = name;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${name}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

async function isThere(path: string): Promise<boolean> {
  try {
    await Deno.stat(new URL(path, ROOT));
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

async function statusOf(url: string, headers: Record<string, string>): Promise<number> {
  const response = await fetch(url, { headers });
  await response.body?.cancel();
  return response.status;
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}

/** The commands of a block, each followed by what it prints: the whole block as a terminal shows it. */
async function printedBy(session: Session, block: Block): Promise<string> {
  let text = "";
  for (const command of commandsOf(block.text)) {
    text += `$ ${command}\n`;
    const printed = await session.run(command);
    text += printed === "" || printed.endsWith("\n") ? printed : `${printed}\n`;
  }
  return text;
}

/** What a reader has before them: a terminal, and a service that is started when first asked. */
class Session implements AsyncDisposable {
  readonly #rules: string;
  readonly #marks: readonly string[];
  #weir: ServeFixture | undefined;
  #exitCode = 0;

  constructor(rules: string, marks: readonly string[]) {
    this.#rules = rules;
    this.#marks = marks;
  }

  /** Runs a command; answers what it prints, addresses and folders as the README has them. */
  async run(command: string): Promise<string> {
    const loop = /^for i in ([\d ]+); do (.*); done$/s.exec(command);
    if (loop !== null) {
      let text = "";
      for (const _ of (loop[1] ?? "").split(" ")) text += await this.run(loop[2] ?? "");
      return text;
    }
    const [piped, wanted] = command.split(" | grep -F ");
    if (piped !== undefined && wanted !== undefined) {
      const lines = (await this.run(piped)).split("\n").filter((line) => line.includes(wanted));
      return `${lines.join("\n")}\n`;
    }
    const [program, ...args] = wordsOf(command);
    if (program === "echo" && args[0] === "$?") return `${this.#exitCode}\n`;
    if (program === "curl") return await this.#curl(args);
    if (program === "grpcurl") return await this.#grpcurl(args);
    const [, , main, name, ...rest] = args;
    if (program !== "deno" || main !== "main.ts") throw new Error(`Cannot run "${command}": it is unknown`);
    return name === "check" ? await this.#check(rest) : await this.#client(rest);
  }

  async #curl(args: string[]): Promise<string> {
    const flags = curlFlags(args);
    const { addresses } = (await this.#service()).running;
    const url = flags.url.replace("localhost:8080", addresses.http).replace(
      "localhost:6070",
      addresses.debug,
    );
    return await curl({ ...flags, url });
  }

  async #grpcurl(args: readonly string[]): Promise<string> {
    const { grpc } = (await this.#service()).running.addresses;
    const own = args.map((arg) => arg === "localhost:8081" ? grpc : arg);
    await using child = new ChildProcess(requireTool("grpcurl"), { args: own });
    await child.exited;
    return [...child.stdoutLines, ...child.stderrLines].map((line) => `${line}\n`).join("");
  }

  async #client(args: readonly string[]): Promise<string> {
    const { grpc } = (await this.#service()).running.addresses;
    const text = await this.#printed((output) =>
      runCommand(["client", ...args, "-dial_string", grpc], { environment: {}, output })
    );
    return text.replaceAll(grpc, "localhost:8081");
  }

  async #check(args: readonly string[]): Promise<string> {
    const folder = await Deno.makeTempDir({ prefix: "weir_" });
    try {
      await Deno.writeTextFile(`${folder}/shop.yaml`, this.#rules);
      const own = args.map((arg) => arg === "config/rules" ? folder : arg);
      return (await this.#printed((output) => runCommand(["check", ...own], { environment: {}, output })))
        .replaceAll(folder, "config/rules");
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  }

  async #printed(command: (output: Output) => Promise<number>): Promise<string> {
    let text = "";
    const print = (line: string) => void (text += `${line}\n`);
    this.#exitCode = await command({ stdout: print, stderr: print });
    return text;
  }

  async #service(): Promise<ServeFixture> {
    const env = Object.fromEntries(
      this.#marks.filter((mark) => mark.includes("=")).map((mark) => mark.split("=", 2)),
    );
    return this.#weir ??= await ServeFixture.start({
      env,
      rules: { "shop.yaml": this.#rules },
      clock: STILL_CLOCK,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#weir?.[Symbol.asyncDispose]();
  }
}

/** Programs of the README as files of a folder of their own. */
class Programs implements AsyncDisposable {
  readonly #folder: string;
  readonly #files: readonly string[];

  private constructor(folder: string, count: number) {
    this.#folder = folder;
    this.#files = Array.from({ length: count }, (_, index) => `${folder}/program_${index}.ts`);
  }

  static async write(texts: readonly string[]): Promise<Programs> {
    const programs = new Programs(await Deno.makeTempDir({ prefix: "weir_" }), texts.length);
    for (const [index, file] of programs.#files.entries()) await Deno.writeTextFile(file, texts[index] ?? "");
    return programs;
  }

  /** Puts the certificate of an authority beside them. */
  async addAuthority(): Promise<void> {
    await using certificates = await makeCertificates();
    await Deno.copyFile(certificates.authority.certFile, `${this.#folder}/ca.pem`);
  }

  /** Runs them one after the other in one process; answers how it ended, and what each of them printed. */
  async run(): Promise<{ code: number; printed: string[][] }> {
    const api = new URL("tests/integration/rest/readme_api.ts", ROOT).pathname;
    const main = `${this.#folder}/main.ts`;
    const runs = this.#files.map((file) => `console.log("# next");\nawait import("${file}");\n`);
    await Deno.writeTextFile(main, runs.join(""));
    const { code, lines } = await this.#deno(["run", "--no-check", "-A", `--preload=${api}`, main]);
    const [, ...printed] = lines.join("\n").split(/^# next\n?/m).map((text) =>
      text.split("\n").filter(Boolean)
    );
    return { code, printed };
  }

  /** Checks their types; answers how that ended and what was printed. */
  async check(): Promise<{ code: number; lines: string[] }> {
    return await this.#deno(["check", "--quiet", ...this.#files]);
  }

  async #deno([command = "", ...args]: readonly string[]): Promise<{ code: number; lines: string[] }> {
    await using child = new ChildProcess(Deno.execPath(), {
      args: [command, `--config=${new URL("deno.json", ROOT).pathname}`, ...args],
      cwd: this.#folder,
      env: { ...Deno.env.toObject(), NO_COLOR: "1" },
    });
    const { code } = await child.exited;
    return { code, lines: [...child.stdoutLines, ...child.stderrLines] };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.#folder, { recursive: true });
  }
}
