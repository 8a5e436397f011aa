import { assertEquals, assertNotEquals } from "#assert";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { serveFlags } from "../../../scripts/serve_flags.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const FILES = ["scripts/weir", "README.md", "CONTRIBUTING.md", "deno.json"];
const FOLDERS = ["docs", "config"];
/** A command that runs the service, or starts it. */
const RUN = /deno run\b([^\n]*?)(?:(?<!bench\/)\bmain|scripts\/start)\.ts\b/g;

/** The flags that change how the program behaves, not what it may access. */
function engineFlags(words: readonly string[]): string[] {
  return words.filter((word) => word.startsWith("--v8-flags=") || word.startsWith("--unstable-")).sort();
}

async function allFiles(): Promise<string[]> {
  const files = [...FILES];
  const folders = [...FOLDERS];
  for (const folder of folders) {
    for await (const { name, isDirectory } of Deno.readDir(join(ROOT, folder))) {
      (isDirectory ? folders : files).push(`${folder}/${name}`);
    }
  }
  return files;
}

Deno.test("V8 flags are the same wherever the program is run from its sources", async () => {
  const expected = engineFlags(serveFlags());
  assertNotEquals(expected.filter((flag) => flag.startsWith("--v8-flags=")), []);
  const found: Record<string, string[]> = {};
  for (const file of await allFiles()) {
    const text = (await Deno.readTextFile(join(ROOT, file))).replaceAll("\\\n", "");
    const runs = [...text.matchAll(RUN)].map(([, words = ""]) => engineFlags(words.split(" ")).join(" "));
    if (runs.length > 0) found[file] = [...new Set(runs)];
  }
  const flags = expected.join(" ");
  assertEquals(found, {
    "config/deploy/weir.sh": [flags],
    "deno.json": [flags],
    "scripts/weir": [flags],
  });
});
