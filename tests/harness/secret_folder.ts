import { join } from "node:path";

/** Ways to replace a file. */
export type Replacement = "rename" | "in place" | "links";

/** A folder with secret files, as people, programs and Kubernetes write them; removed at the end of its block. */
export class SecretFolder implements AsyncDisposable {
  readonly path: string;
  #version = 0;

  constructor() {
    this.path = Deno.makeTempDirSync({ prefix: "weir_secrets_" });
  }

  /** The path of a file. */
  file(name: string): string {
    return join(this.path, name);
  }

  /** Writes a file; with `links` it is a link through `..data`, as in a volume of Kubernetes, with all others. */
  write(name: string, text: string, how: Replacement = "rename"): void {
    if (how === "in place") return Deno.writeTextFileSync(this.file(name), text);
    const next = this.file(`..${++this.#version}`);
    if (how === "rename") {
      Deno.writeTextFileSync(next, text);
      return Deno.renameSync(next, this.file(name));
    }
    Deno.mkdirSync(next);
    Deno.writeTextFileSync(join(next, name), text);
    Deno.symlinkSync(next, this.file("..data_tmp"));
    Deno.renameSync(this.file("..data_tmp"), this.file("..data"));
    if (this.#version === 1) Deno.symlinkSync(join("..data", name), this.file(name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.path, { recursive: true });
  }
}
