import { assertEquals } from "#assert";
import { join } from "node:path";
import { WORKERS } from "../../../scripts/compile/contents.ts";
import { readCompileOptions, TARGETS } from "../../../scripts/compile/options.ts";
import { compile } from "../../../scripts/compile.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;
const ALL = TARGETS.join(", ");
const WRONG: readonly [args: string[], line: string][] = [
  [["--target", "sparc"], `Cannot compile for "sparc": the platforms are ${ALL}; or "all" by itself`],
  [["--target=all,sparc"], `Cannot compile for "all": the platforms are ${ALL}; or "all" by itself`],
  [["--target"], "Flag --target requires a value"],
  [["--dryy"], "Unknown flag --dryy; did you mean --dry?"],
  [
    ["--dry", "--target=all"],
    'Cannot read flag "--dry": it is the same for all platforms, leave --target out',
  ],
  [["--output="], 'Cannot read flag "--output": it has to name a folder'],
  [["weir"], 'Cannot compile "weir": there is nothing but flags to name'],
];

for (const [args, line] of WRONG) {
  Deno.test(`compile ${args.join(" ")}: is refused with what is expected`, async () => {
    const lines: string[] = [];
    const code = await compile(args, {
      stdout: (text) => lines.push(text),
      stderr: (text) => lines.push(text),
    });
    assertEquals([code, lines], [2, [line]]);
  });
}

Deno.test("compile: what its flags ask for", () => {
  const plain = { targets: [], dry: false, skipMissing: false, check: true, folder: "dist" };
  const [linux, arm] = TARGETS;
  assertEquals(
    [[], ["--dry", "--no-check"], ["--target=all", "--output", "out"], [
      "--target",
      `${arm},${linux}`,
      "-h=false",
    ], [
      `--target=${arm}`,
      `--target=${linux}`,
    ], ["--help"]].map((args) => readCompileOptions(args)),
    [
      plain,
      { ...plain, dry: true, check: false },
      { ...plain, targets: TARGETS, folder: "out" },
      { ...plain, targets: [linux, arm] },
      { ...plain, targets: [linux, arm] },
      undefined,
    ],
  );
});

Deno.test("compile: every module that is started as a worker is embedded", async () => {
  const started: string[] = [];
  for await (const path of modulesIn("src")) {
    const text = await Deno.readTextFile(join(ROOT, path));
    for (const [, file = ""] of text.matchAll(/new Worker\(\s*new URL\("([^"]+)", import\.meta\.url\)/g)) {
      started.push(new URL(file, `file:///${path}`).pathname.slice(1));
    }
    // Any other way to name one would not be found here.
    assertEquals(text.match(/new Worker\((?!\s*new URL\("[^"]+", import\.meta\.url\))/), null, path);
  }
  assertEquals(started.toSorted(), WORKERS.toSorted());
});

async function* modulesIn(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(join(ROOT, folder))) {
    const path = `${folder}/${name}`;
    if (isDirectory) yield* modulesIn(path);
    else if (name.endsWith(".ts")) yield path;
  }
}
