import { makeCertificates } from "./certificates.ts";
import { ChildProcess } from "./child_process.ts";

const ROOT = new URL("../../", import.meta.url);

/** The `ts rest` programs of a page, as files in a temporary folder. */
export class ExamplePrograms implements AsyncDisposable {
  readonly #folder: string;
  readonly #files: readonly string[];

  private constructor(folder: string, count: number) {
    this.#folder = folder;
    this.#files = Array.from({ length: count }, (_, index) => `${folder}/program_${index}.ts`);
  }

  /** Writes them into files. */
  static async write(texts: readonly string[]): Promise<ExamplePrograms> {
    const programs = new ExamplePrograms(await Deno.makeTempDir({ prefix: "weir_" }), texts.length);
    for (const [index, file] of programs.#files.entries()) await Deno.writeTextFile(file, texts[index] ?? "");
    return programs;
  }

  /** Puts the certificate of an authority into their folder. */
  async addAuthority(): Promise<void> {
    await using certificates = await makeCertificates();
    await Deno.copyFile(certificates.authority.certFile, `${this.#folder}/ca.pem`);
  }

  /** Runs them one after the other in one process; returns its exit code and what each of them printed. */
  async run(): Promise<{ code: number; printed: string[][] }> {
    const api = new URL("tests/integration/rest/example_api.ts", ROOT).pathname;
    const main = `${this.#folder}/main.ts`;
    const runs = this.#files.map((file) => `console.log("# next");\nawait import("${file}");\n`);
    await Deno.writeTextFile(main, runs.join(""));
    const { code, lines } = await this.#deno(["run", "--no-check", "-A", `--preload=${api}`, main]);
    const [, ...printed] = lines.join("\n").split(/^# next\n?/m).map((text) =>
      text.split("\n").filter(Boolean)
    );
    return { code, printed };
  }

  /** Checks their types; returns the exit code and what was printed. */
  async check(): Promise<{ code: number; lines: string[] }> {
    return await this.#deno(["check", "--quiet", ...this.#files]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.#folder, { recursive: true });
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
}
