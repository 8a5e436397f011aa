import { assertEquals } from "#assert";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SERVE_FLAGS } from "../../../scripts/serve_flags.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const FILES = ["scripts/weir", "README.md", "CONTRIBUTING.md", "deno.json"];
const FOLDERS = ["docs", "config"];
/** A command that runs the service, or starts it. */
const RUN = /deno run\b([^\n]*?)(?:(?<!bench\/)\bmain|scripts\/start)\.ts\b/g;
/** Flags that say how modules are loaded, not what the program may do. */
const LOADING = [
  "--cached-only",
  "--watch",
  "--unstable-npm-lazy-caching",
  "--unstable-lazy-dynamic-imports",
];

async function allFiles(): Promise<string[]> {
  const files = [...FILES];
  const folders = [...FOLDERS];
  for (const folder of folders) {
    // The site has copies of files.
    if (folder === "docs/site") continue;
    for await (const { name, isDirectory } of Deno.readDir(join(ROOT, folder))) {
      (isDirectory ? folders : files).push(`${folder}/${name}`);
    }
  }
  return files;
}

Deno.test("V8 flags and permissions are the same wherever the program is run from its sources", async () => {
  const found: Record<string, string[]> = {};
  for (const file of await allFiles()) {
    const text = (await Deno.readTextFile(join(ROOT, file))).replaceAll("\\\n", "");
    const runs = [...text.matchAll(RUN)].map(([, words = ""]) => {
      return words.split(" ").filter((word) => word.startsWith("-") && !LOADING.includes(word)).join(" ");
    });
    if (runs.length > 0) found[file] = [...new Set(runs)];
  }
  const flags = [SERVE_FLAGS.join(" ")];
  // The tasks for a trial, whose command line Deno prints, have the permissions only.
  const trial = SERVE_FLAGS.filter((flag) => flag.startsWith("--allow-")).join(" ");
  const inTasks = [trial, ...flags];
  assertEquals(found, { "config/deploy/weir.sh": flags, "deno.json": inTasks, "scripts/weir": flags });
});
