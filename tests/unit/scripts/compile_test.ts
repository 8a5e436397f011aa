import { assert, assertEquals, assertMatch } from "@std/assert";
import { join } from "node:path";
import { commitOf, stamped } from "../../../scripts/compile/commit.ts";
import { WORKERS } from "../../../scripts/compile/contents.ts";
import { readCompileOptions, TARGETS } from "../../../scripts/compile/options.ts";
import { writeSums } from "../../../scripts/compile/sums.ts";
import { compile } from "../../../scripts/compile.ts";
import { newFolder, ROOT } from "../../harness/compile_bed.ts";

const ALL = TARGETS.join(", ");
const WRONG: readonly [args: string[], line: string][] = [
  [["--target", "sparc"], `Cannot compile for "sparc": the platforms are ${ALL}; or "all" by itself`],
  [["--target=all,sparc"], `Cannot compile for "all": the platforms are ${ALL}; or "all" by itself`],
  [["--target"], 'Cannot read flag "-target": its value is missing'],
  [["--dryy"], 'Cannot read flag "-dryy": there is no such flag, did you mean "-dry"?'],
  [
    ["--dry", "--target=all"],
    'Cannot read flag "--dry": it is the same for all platforms, leave --target out',
  ],
  [["--output="], 'Cannot read flag "--output": it has to name a folder'],
  [["weir"], 'Cannot compile "weir": there is nothing but flags to name'],
];

for (const [args, line] of WRONG) {
  Deno.test(`compile ${args.join(" ")}: is refused with what would be right`, async () => {
    const lines: string[] = [];
    const code = await compile(args, {
      stdout: (text) => lines.push(text),
      stderr: (text) => lines.push(text),
    });
    assertEquals([code, lines], [2, [line]]);
  });
}

Deno.test("compile: what its flags ask for", () => {
  const plain = { targets: [], dry: false, check: true, folder: "dist" };
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

Deno.test("compile: the commit is that of the tree, and says when the tree was changed", async () => {
  await using folder = await newFolder();
  const git = async (...args: string[]) => {
    const own = ["-c", "user.name=weir", "-c", "user.email=weir@example.com", ...args];
    const { success } = await new Deno.Command("git", { args: own, cwd: folder.path, stdout: "null" })
      .output();
    assert(success, args.join(" "));
  };
  const before = await commitOf(folder.path);
  await git("init", "--quiet");
  const empty = await commitOf(folder.path);
  await Deno.writeTextFile(join(folder.path, "main.ts"), "");
  await git("add", "main.ts");
  await git("commit", "--quiet", "--message", "One");
  const clean = await commitOf(folder.path) ?? "";
  // A copy that only stands within it has no commit.
  await Deno.mkdir(join(folder.path, "copy"));
  assertEquals(await commitOf(join(folder.path, "copy")), undefined);
  await Deno.writeTextFile(join(folder.path, "main.ts"), "changed");
  const changed = await commitOf(folder.path);
  await git("checkout", "--quiet", "main.ts");
  await Deno.writeTextFile(join(folder.path, "new.ts"), "");
  assertEquals([before, empty], [undefined, undefined]);
  assertMatch(clean, /^[0-9a-f]{7}$/);
  assertEquals([changed, await commitOf(folder.path)], [`${clean}-dirty`, `${clean}-dirty`]);
});

Deno.test("compile: the commit stands in the version of the copy alone", async () => {
  const text = await Deno.readTextFile(join(ROOT, "src/version.ts"));
  const own = await versionOf(text);
  const stamp = await versionOf(stamped(text, "abc1234"));
  const { deno } = Deno.version;
  assertEquals([own, stamp], [`weir 1.2.3 (deno ${deno})`, `weir 1.2.3 (commit abc1234, deno ${deno})`]);
  let refused = "";
  try {
    stamped(text.replace("COMMIT", "OTHER"), "abc1234");
  } catch (error) {
    refused = String(error);
  }
  assertMatch(refused, /^CompileError: Cannot put the commit into "src\/version.ts": it has no line /);
});

Deno.test("compile: sums of other programs stay while these are there", async () => {
  await using folder = await newFolder();
  for (const name of ["weir", "weir-a", "weir-b"]) await Deno.writeTextFile(join(folder.path, name), name);
  await writeSums(folder.path, ["weir-b", "weir"]);
  await Deno.remove(join(folder.path, "weir"));
  await writeSums(folder.path, ["weir-a"]);
  const lines = (await Deno.readTextFile(join(folder.path, "SHA256SUMS"))).split("\n");
  assertEquals(lines.map((line) => line.slice(64)), ["  weir-a", "  weir-b", ""]);
  const check = { args: ["--check", "--strict", "SHA256SUMS"], cwd: folder.path };
  const { success } = await new Deno.Command("sha256sum", { ...check, stdout: "null" }).output();
  await Deno.writeTextFile(join(folder.path, "weir-b"), "other");
  const other = await new Deno.Command("sha256sum", { ...check, stdout: "null", stderr: "null" }).output();
  assertEquals([success, other.success], [true, false]);
});

/** What a version module says of release 1.2.3. */
async function versionOf(text: string): Promise<string> {
  await using folder = await newFolder();
  const path = join(folder.path, "version.ts");
  await Deno.writeTextFile(path, text);
  const { versionText } = await import(`file://${path}`);
  return versionText("1.2.3");
}

async function* modulesIn(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(join(ROOT, folder))) {
    const path = `${folder}/${name}`;
    if (isDirectory) yield* modulesIn(path);
    else if (name.endsWith(".ts")) yield path;
  }
}
