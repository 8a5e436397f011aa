import { runCommand } from "../../src/cli/commands.ts";
import type { Output } from "../../src/cli/command.ts";
import config from "../../deno.json" with { type: "json" };
import { versionText } from "../../src/base/version.ts";
import { ChildProcess } from "./child_process.ts";
import type { Block } from "./documents.ts";
import { commandsOf, curl, wordsOf } from "./example_text.ts";
import { FakeClock } from "./fake_clock.ts";
import { ServeFixture } from "./serve_fixture.ts";
import { requireTool } from "./tools.ts";

/** Far from the end of a minute, so that no window ends within an example. */
const STILL_CLOCK = FakeClock.ofMachine({ now: 1_795_263_681_000 });
/** The two ways in which pages call the command. */
const WEIR = /^(?:weir|deno run -A main\.ts)(?: |$)/;

/** A terminal for the `console try` blocks, and a service that starts when a command first needs it. */
export class ExampleSession implements AsyncDisposable {
  readonly #rules: string;
  readonly #env: Readonly<Record<string, string>>;
  #weir: ServeFixture | undefined;
  #exitCode = 0;

  /** `rules` is the text of the only rule file; marks such as `NAME=value` are settings of the service. */
  constructor(rules: string, marks: readonly string[]) {
    this.#rules = rules;
    this.#env = Object.fromEntries(
      marks.filter((mark) => mark.includes("=")).map((mark) => mark.split("=", 2)),
    );
  }

  /** The commands of a block, each followed by its output: the whole block as a terminal shows it. */
  async printedBy(block: Block): Promise<string> {
    let text = "";
    for (const command of commandsOf(block.text)) {
      text += `$ ${command}\n`;
      const printed = await this.#run(command);
      text += printed === "" || printed.endsWith("\n") ? printed : `${printed}\n`;
    }
    return text;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#weir?.[Symbol.asyncDispose]();
  }

  /** Runs a command; returns its output with the addresses and folders of the page. */
  async #run(command: string): Promise<string> {
    const loop = /^for i in ([\d ]+); do (.*); done$/s.exec(command);
    if (loop !== null) {
      let text = "";
      for (const _ of (loop[1] ?? "").split(" ")) text += await this.#run(loop[2] ?? "");
      return text;
    }
    const [piped, pattern] = command.split(" | grep -F ");
    if (piped !== undefined && pattern !== undefined) {
      const [words = ""] = wordsOf(pattern);
      const lines = (await this.#run(piped)).split("\n").filter((line) => line.includes(words));
      return `${lines.join("\n")}\n`;
    }
    if (WEIR.test(command)) return await this.#command(wordsOf(command.replace(WEIR, "")));
    const [program, ...args] = wordsOf(command);
    if (program === "echo" && args[0] === "$?") return `${this.#exitCode}\n`;
    if (program === "curl") return await this.#curl(args);
    if (program === "grpcurl") return await this.#grpcurl(args);
    throw new Error(`Cannot run "${command}": it is unknown`);
  }

  async #curl(args: readonly string[]): Promise<string> {
    const addresses = await this.#addresses();
    const real = (arg: string) => addresses.reduce((text, [shown, to]) => text.replace(shown, to), arg);
    return await curl(args.map(real));
  }

  async #grpcurl(args: readonly string[]): Promise<string> {
    const addresses = new Map(await this.#addresses());
    await using child = new ChildProcess(requireTool("grpcurl"), {
      args: args.map((arg) => addresses.get(arg) ?? arg),
    });
    const { code } = await child.exited;
    this.#exitCode = code;
    return [...child.stdoutLines, ...child.stderrLines].map((line) => `${line}\n`).join("");
  }

  /** Names the file of the rules. */
  get #domain(): string {
    return /^domain: (\w+)$/m.exec(this.#rules)?.[1] ?? "rules";
  }

  async #command(args: readonly string[]): Promise<string> {
    const [name = ""] = args;
    if (["version", "--version"].includes(name)) return `${versionText(config.version)}\n`;
    const folder = await Deno.makeTempDir({ prefix: "weir_" });
    try {
      await Deno.writeTextFile(`${folder}/${this.#domain}.yaml`, this.#rules);
      const isCall = name === "client" || args.some((arg) => arg.includes("localhost:"));
      const names = [["config/rules", folder] as const, ...isCall ? await this.#addresses() : []];
      const own = args.map((arg) => names.reduce((text, [shown, real]) => text.replace(shown, real), arg));
      const [, , [, grpc = ""] = []] = isCall ? await this.#addresses() : [];
      const dial = name === "client" && !args.some((arg) => /^--?dial_string/.test(arg));
      const text = await this.#printed((output) =>
        runCommand(dial ? [...own, "-dial_string", grpc] : own, {
          environment: {},
          output,
          clock: STILL_CLOCK,
        })
      );
      return names.reduce((whole, [shown, real]) => whole.replaceAll(real, shown), text);
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

  /** The addresses of the pages, each with the one of the service: of HTTP, debug and gRPC. */
  async #addresses(): Promise<(readonly [shown: string, real: string])[]> {
    this.#weir ??= await ServeFixture.start({
      env: this.#env,
      rules: { [`${this.#domain}.yaml`]: this.#rules },
      clock: STILL_CLOCK,
    });
    const { http, debug, grpc } = this.#weir.running.addresses;
    return [["localhost:8080", http], ["localhost:6070", debug], ["localhost:8081", grpc]];
  }
}
