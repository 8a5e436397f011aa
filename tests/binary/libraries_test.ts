import { assertEquals } from "#assert";
import { basename, dirname, join } from "node:path";
import { copyFile } from "node:fs/promises";
import { weirExecutable } from "../harness/weir_command.ts";
import { mayMount } from "../harness/weir_machine.ts";

/** Runs a program in a root folder that has /proc and nothing else of the machine. */
const IN_ROOT = 'mount --rbind /proc "$1/proc" && exec /usr/sbin/chroot "$1" /weir version';
const LIBGCC = "libgcc_s.so.1";

/** The exit code of `weir version` with these libraries, and what it printed. */
async function runWith(libraries: readonly string[]): Promise<[code: number, text: string]> {
  const root = await Deno.makeTempDir({ prefix: "weir_root_" });
  try {
    await Deno.mkdir(join(root, "proc"));
    for (const path of [...libraries, weirExecutable() ?? ""]) {
      const copy = path === weirExecutable() ? join(root, "weir") : join(root, path);
      await Deno.mkdir(dirname(copy), { recursive: true });
      await copyFile(path, copy);
    }
    const args = ["--mount", "sh", "-c", IN_ROOT, "sh", root];
    return await outputOf("/usr/bin/unshare", args);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

async function outputOf(command: string, args: readonly string[]): Promise<[code: number, text: string]> {
  const running = new Deno.Command(command, { args: [...args], stdin: "null" });
  const { code, stdout, stderr } = await running.output();
  const decoder = new TextDecoder();
  return [code, (decoder.decode(stdout) + decoder.decode(stderr)).trim()];
}

Deno.test("the program needs glibc and libgcc_s.so.1, and the loader names a library that is missing", async () => {
  const [, text] = await outputOf("ldd", [weirExecutable() ?? ""]);
  const libraries = [...text.matchAll(/(?:=> |^\s*)(\/\S+)/gm)].map(([, path = ""]) => path);
  const others = libraries.filter((path) => basename(path) !== LIBGCC);
  const fromGlibc = /^(?:ld-linux-[\w-]+|lib(?:c|dl|m|pthread|rt))\.so\.\d+$/;
  assertEquals(others.filter((path) => !fromGlibc.test(basename(path))), []);
  assertEquals(libraries.length - others.length, 1);
  if (!await mayMount()) return;
  assertEquals(await runWith(libraries), await outputOf(weirExecutable() ?? "", ["version"]));
  assertEquals(await runWith(others), [
    127,
    `/weir: error while loading shared libraries: ${LIBGCC}: cannot open shared object file: No such file or directory`,
  ]);
});
