import { assert, assertEquals, assertMatch } from "#assert";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { commitOf } from "../../../scripts/compile/commit.ts";
import { PAGE, WORKERS } from "../../../scripts/compile/contents.ts";
import { CompileError } from "../../../scripts/compile/failure.ts";
import { compile } from "../../../scripts/compile.ts";
import { SERVE_FLAGS } from "../../../scripts/serve_flags.ts";
import { until } from "../../harness/until.ts";
import {
  addBase,
  bytesOf,
  freshDenoFolder,
  HERE,
  metadataOf,
  namesIn,
  newFolder,
  OFFLINE,
  OTHER,
  ROOT,
  runTask,
  smallSources,
  STAND_IN,
} from "./compile_bed.ts";

/** Ends with code 1 and a complaint, as no file has the name "version". */
const NO_BASE = "/usr/bin/cat";
const isLinux = Deno.build.os === "linux";

Deno.test("compile --dry: proves what needs no base runtime, wherever the sources and temporary files are", async () => {
  await using folder = await newFolder();
  const [root, temporary] = [join(folder.path, "my sources"), join(folder.path, "#1 100%20")];
  await Deno.symlink(ROOT, root);
  await Deno.mkdir(temporary);
  const { code, stdout, stderr } = await runTask("compile", ["--dry"], {
    env: { ...OFFLINE, TMPDIR: temporary },
    root,
  });
  assertEquals([code, stderr], [0, ""]);
  assertMatch(stdout, /^ {2}[1-9]\d*\.\d\d MB [1-9]\d npm packages$/m);
  assertMatch(stdout, /^module graph and embedded files: all \d{3,} files are in the output$/m);
  assertMatch(
    stdout,
    /^weir \d\S+ \(commit \w{7}(?:-dirty)?, deno [\d.]+\): everything is proven but Deno's base/m,
  );
  assertEquals(await namesIn(temporary), []);
});

Deno.test({
  name:
    "compile: a filled DENO_DIR supplies the base runtimes; programs, sums, permissions, version and files are right",
  ignore: !isLinux,
  async fn() {
    await using out = await newFolder();
    await using deno = await freshDenoFolder();
    for (const target of [HERE, OTHER]) await addBase(deno.path, target, STAND_IN);
    const { version } = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
    const said = `weir ${version} (commit ${await commitOf(ROOT)}, deno ${Deno.version.deno})`;
    const env = { ...OFFLINE, DENO_DIR: deno.path, version: said };
    const { code, stdout, stderr } = await runTask(
      "compile",
      ["--output", out.path, `--target=${HERE}`, `--target=${OTHER}`],
      { env },
    );
    const names = [`weir-${HERE}`, `weir-${OTHER}`];
    assertEquals([code, stderr, await namesIn(out.path)], [0, "", ["SHA256SUMS", ...names].sort()]);
    for (const name of names) assert(stdout.includes(`${join(out.path, name)}: ${said}, `), stdout);
    const check = { args: ["--check", "--strict", "SHA256SUMS"], cwd: out.path, stdout: "null" as const };
    assert((await new Deno.Command("sha256sum", check).output()).success);

    const program = await bytesOf(join(out.path, `weir-${OTHER}`));
    assert(program.includes(`const COMMIT: string = "${await commitOf(ROOT)}";`), "the commit is in it");
    assertEquals(grantedIn(metadataOf(program)), grantedBy(SERVE_FLAGS));
    assertEquals(await missingIn(program), []);
    assertEquals(metadataOf(program)["code_cache_key"], null);
    const foreign = [ROOT, deno.path, "weir_compile_", "export declare class ", "experimental_attributes."];
    assertMatch(program, /^==== yaml@\d\S+: ISC\n\nCopyright /m);
    assertEquals(foreign.filter((text) => program.includes(text)), []);
  },
});

Deno.test("compile: a program with a path of the machine that makes it is refused", async () => {
  await using small = await smallSources();
  await Deno.writeTextFile(join(small.path, "main.ts"), `console.log("file://${small.path}/main.ts");\n`);
  const { code, stderr } = await runTask("compile", ["--dry"], { root: small.path });
  const [, line, path] = stderr.split("\n");
  assertEquals([code, line, path], [
    1,
    `Cannot compile for "${HERE}": the program has paths of this machine in it`,
    `  file://${small.path}/`,
  ]);
});

Deno.test("compile: a base runtime that does not run the program is refused, and nothing is left", async () => {
  await using out = await newFolder();
  await using small = await smallSources();
  const base = isLinux ? NO_BASE : Deno.execPath();
  const { code, stderr } = await runTask("compile", ["--output", out.path], {
    env: { DENORT_BIN: base },
    root: small.path,
  });
  const blame = `; DENORT_BIN "${base}" has to be denort of Deno ${Deno.version.deno}\n`;
  assertMatch(
    stderr,
    /^The commit is not known: .+\nCannot run the program: "weir version" ended with code 1 and ".+", not with 0 and "weir /,
  );
  assertEquals([code, stderr.endsWith(blame), await namesIn(out.path)], [1, true, []]);
});

Deno.test("compile: without a base runtime it says which and how to supply it, and nothing is left", async () => {
  await using out = await newFolder();
  await using deno = await freshDenoFolder();
  await using small = await smallSources();
  const args = ["--output", out.path, "--target", OTHER];
  const { code, stderr } = await runTask("compile", args, {
    env: { ...OFFLINE, DENO_DIR: deno.path },
    root: small.path,
  });
  const { deno: release } = Deno.version;
  const [, ...lines] = stderr.split("\n");
  assertEquals([code, await namesIn(out.path)], [1, []]);
  assertEquals(
    lines[0],
    `Cannot compile for "${OTHER}": the base runtime of Deno ${release} for it is not on this machine and could not ` +
      "be downloaded",
  );
  assert(lines[2]?.includes(`${deno.path}/dl/release/v${release}/denort-${OTHER}.zip`), stderr);
  assert(lines[3]?.includes("DENORT_BIN"), stderr);
});

Deno.test("compile: told to stop, it leaves nothing behind", async () => {
  await using out = await newFolder();
  const stop = new AbortController();
  const lines: string[] = [];
  const output = { stdout: () => {}, stderr: (line: string) => lines.push(line) };
  const compiling = compile(["--no-check", "--output", out.path], output, stop.signal);
  await until("the temporary folder", async () => (await namesIn(out.path)).length > 0);
  stop.abort(new CompileError("Cannot compile: enough"));
  assertEquals([await compiling, lines, await namesIn(out.path)], [1, ["Cannot compile: enough"], []]);
});

Deno.test("compile: a DENORT_BIN that cannot be meant is refused", async () => {
  await using out = await newFolder();
  const named = join(out.path, "denort");
  const absent = await runTask("compile", ["--output", out.path], { env: { DENORT_BIN: named } });
  assertEquals([absent.code, absent.stderr], [
    1,
    `Cannot compile with DENORT_BIN "${named}": there is no such file\n`,
  ]);
});

/** Those of the modules, workers and files of the web page that are not in a program. */
async function missingIn(program: string): Promise<string[]> {
  const files = [
    "main.ts",
    ...WORKERS,
    "src/webhooks/store/postgres/store.ts",
    "src/telemetry/otlp_settings.ts",
  ];
  files.push(...await filesIn(PAGE));
  assert(files.length > 20, "the files are found");
  const texts = await Promise.all(files.map(async (file) => {
    const text = await bytesOf(join(ROOT, file));
    return file.startsWith(PAGE) && file.endsWith(".ts") ? stripTypeScriptTypes(text) : text;
  }));
  return files.filter((_, index) => !program.includes(texts[index] ?? ""));
}

/** The permissions and options of a program, as in its description. */
function grantedIn(metadata: Record<string, unknown>): unknown {
  const { permissions, v8_flags, unstable_config, entrypoint_key, argv } = metadata as {
    permissions: Record<string, unknown>;
    v8_flags: string[];
    unstable_config: { features: string[] };
    entrypoint_key: string;
    argv: string[];
  };
  const { allow_import: _, ...said } = permissions;
  return {
    granted: Object.fromEntries(Object.entries(said).filter(([, value]) => value !== null)),
    v8: v8_flags.filter((flag) => /pretenuring|semi-space/.test(flag)),
    features: [...unstable_config.features].sort(),
    entry: entrypoint_key,
    argv,
  };
}

/** The same, as the flags of the serve task ask for it; an empty list means everything. */
function grantedBy(flags: readonly string[]): unknown {
  const v8 = flags.find((flag) => flag.startsWith("--v8-flags="))?.slice("--v8-flags=".length) ?? "";
  return {
    granted: {
      allow_env: [],
      allow_net: [],
      allow_read: [],
      allow_write: [],
      allow_sys: [],
      prompt: !flags.includes("--no-prompt"),
    },
    v8: v8.split(","),
    // The first is from deno.json alone.
    features: ["net", "no-legacy-abort"],
    entry: "main.ts",
    argv: [],
  };
}

async function filesIn(folder: string): Promise<string[]> {
  const files = [];
  for await (const { name, isDirectory } of Deno.readDir(join(ROOT, folder))) {
    const path = `${folder}/${name}`;
    files.push(...isDirectory ? await filesIn(path) : [path]);
  }
  return files;
}
