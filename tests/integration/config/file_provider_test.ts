import { assertEquals } from "#assert";
import { dirname, join } from "node:path";
import { systemBell } from "../../../src/threads/bell.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { createFileProvider, type FileProviderOptions } from "../../../src/config/file_provider.ts";
import { loadRuleFiles } from "../../../src/config/rule_files.ts";
import { problemText } from "../../../src/base/problem.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { eventually, until } from "../../harness/until.ts";

const MISSING = ": Cannot read the folder of rule files: it does not exist; " +
  "create it, or correct RUNTIME_ROOT, RUNTIME_SUBDIRECTORY and RUNTIME_APPDIRECTORY";

/** A folder in which a provider reads `root/config`, and its last load. */
class Field {
  readonly log = new RecordedLogger();
  /** The names of the domains, or the problems when one is an error. */
  last = "";
  close = () => Promise.resolve();

  constructor(readonly top: string) {}

  /** Starts a provider, of `root/config` below the top unless something else is given. */
  start(options: Partial<FileProviderOptions> = {}): void {
    const provider = createFileProvider({
      root: `${this.top}/root`,
      subdirectory: "",
      appDirectory: "config",
      ignoreDotFiles: false,
      watchRoot: false,
      bell: systemBell,
      clock: systemClock,
      logger: this.log,
      ...options,
    });
    this.close = () => provider.close();
    provider.start(({ sources = [], problems }) => {
      const errors = problems.filter(({ severity }) => severity === "error").map(problemText);
      const texts = errors.length > 0 ? errors : sources.map((source) => source.domain);
      this.last = texts.join(" ").replaceAll(this.top, "TOP");
      return Promise.resolve(problems);
    });
  }

  async expect(load: string): Promise<void> {
    await eventually(load, () => this.last);
  }

  /** Writes a rule file with one domain, and makes its folders. */
  async write(path: string, domain: string): Promise<void> {
    await Deno.mkdir(dirname(join(this.top, path)), { recursive: true });
    await Deno.writeTextFile(join(this.top, path), `domain: ${domain}\ndescriptors: []\n`);
  }

  /** Points a symbolic link elsewhere in one step, as a deployment does. */
  async swap(link: string, target: string): Promise<void> {
    await Deno.symlink(target, `${this.top}/${link}.new`);
    await this.rename(`${link}.new`, link);
  }

  async remove(path: string): Promise<void> {
    await Deno.remove(`${this.top}/${path}`, { recursive: true });
  }

  async rename(from: string, to: string): Promise<void> {
    await Deno.rename(`${this.top}/${from}`, `${this.top}/${to}`);
  }
}

function test(name: string, run: (field: Field) => Promise<void>): void {
  Deno.test(`rule files on disk: ${name}`, async () => {
    const field = new Field(await Deno.realPath(await Deno.makeTempDir()));
    try {
      await run(field);
    } finally {
      await field.close();
      await Deno.remove(field.top, { recursive: true });
    }
  });
}

test("written in two halves, saved by rename, added and removed", async (field) => {
  await field.write("root/config/b.yaml", "b1");
  field.start();
  await field.expect("b1");
  using file = await Deno.open(`${field.top}/root/config/b.yaml`, { write: true, truncate: true });
  await file.write(new TextEncoder().encode("domain: b2\ndescr"));
  await field.expect(
    "TOP/root/config/b.yaml:2:1: not valid YAML: Implicit map keys need to be followed by map values",
  );
  await file.write(new TextEncoder().encode("iptors: []\n"));
  await field.expect("b2");
  await field.write("root/config/.b.swp", "b3");
  await field.rename("root/config/b.yaml", "root/config/b.yaml~");
  await field.rename("root/config/.b.swp", "root/config/b.yaml");
  await field.expect("b3");
  await field.write("elsewhere", "b4");
  await field.rename("elsewhere", "root/config/b.yaml");
  await field.expect("b4");
  await field.write("root/config/a.yml", "a");
  await field.expect("a b4");
  await field.remove("root/config/b.yaml");
  await field.expect("a");
});

test("a burst of changes", async (field) => {
  await field.write("root/config/0.yaml", "d0");
  field.start();
  await field.expect("d0");
  for (let i = 1; i < 20; i++) await field.write(`root/config/${i}.yaml`, `d${i}`);
  await eventually(20, () => field.last.split(" ").length);
});

test("the folder, and then the root, is removed and made again", async (field) => {
  field.start();
  const missing = `TOP/root/config${MISSING}`;
  for (const [round, path] of ["root/config", "root", "root"].entries()) {
    await field.expect(missing);
    await field.write("root/config/a.yaml", `made${round}`);
    await field.expect(`made${round}`);
    await field.write("root/config/a.yaml", `changed${round}`);
    await field.expect(`changed${round}`);
    await field.rename(path, `old${round}`);
  }
  await field.expect(missing);
});

for (const watchRoot of [true, false]) {
  const mode = watchRoot ? "root" : "content";

  test(`the kubelet swaps ..data, ${mode} mode`, async (field) => {
    await field.write("mount/..2026_1/config/rules.yaml", "v1");
    await Deno.symlink("..2026_1", `${field.top}/mount/..data`);
    await Deno.symlink("..data/config", `${field.top}/mount/config`);
    field.start({ watchRoot, root: `${field.top}/mount${watchRoot ? "/..data" : ""}` });
    await field.expect("v1");
    for (const [version, from, to] of [[2, 1, 2], [3, 2, 1]]) {
      await field.write(`mount/..2026_${to}/config/rules.yaml`, `v${version}`);
      await field.swap("mount/..data", `..2026_${to}`);
      await field.remove(`mount/..2026_${from}`);
      await field.expect(`v${version}`);
    }
  });

  test(`the root link is made, swapped, and the folder above it is removed, ${mode} mode`, async (field) => {
    for (const version of ["v1", "v2", "v3"]) await field.write(`releases/${version}/config/a.yaml`, version);
    await Deno.mkdir(`${field.top}/above/current`, { recursive: true });
    field.start({ watchRoot, root: `${field.top}/above/current/root` });
    const missing = `TOP/above/current/root/config${MISSING}`;
    await field.expect(missing);
    await Deno.symlink("../../releases/v1", `${field.top}/above/current/root`);
    await field.expect("v1");
    await field.swap("above/current/root", "../../releases/v2");
    await field.expect("v2");
    // In two steps, as `ln -s` after `rm` does it, and back to a folder that was watched before.
    await field.remove("above/current/root");
    await Deno.symlink("../../releases/v1", `${field.top}/above/current/root`);
    await field.expect("v1");
    await field.swap("above/current/root", "../../releases/v3");
    await field.expect("v3");
    assertEquals(field.log.lines, []);
    await field.remove("above");
    await field.expect(missing);
    await Deno.mkdir(`${field.top}/above/current`, { recursive: true });
    await field.swap("above/current/root", "../../releases/v1");
    await field.expect("v1");
  });
}

test("files of a flat mount are swapped by ..data", async (field) => {
  await field.write("root/config/..v1/a.yaml", "v1");
  await field.swap("root/config/..data", "..v1");
  await Deno.symlink("..data/a.yaml", `${field.top}/root/config/a.yaml`);
  field.start();
  await field.expect("v1");
  await field.write("root/config/..v2/a.yaml", "v2");
  await field.swap("root/config/..data", "..v2");
  await field.expect("v2");
});

/** Makes an empty file whose name is not UTF-8; `bytes` are written as in the shell's printf. */
async function touch(folder: string, bytes: string): Promise<void> {
  const args = ["-c", 'f=$(printf "$2") && : > "$1/$f"', "sh", folder, bytes];
  const { success } = await new Deno.Command("sh", { args }).output();
  assertEquals(success, true);
}

test("a name that is not UTF-8 ends the watch, and a change is found nevertheless", async (field) => {
  await field.write("root/config/a.yaml", "a1");
  field.start();
  await field.expect("a1");
  for (const version of ["a2", "a3"]) {
    await touch(`${field.top}/root/config`, `\\37${version === "a2" ? 6 : 7}`);
    await field.write("root/config/a.yaml", version);
    await field.expect(version);
  }
});

test("a file that may not be read, and then may", async (field) => {
  await field.write("root/config/a.yaml", "a1");
  field.start();
  await field.expect("a1");
  // A loop of links is unreadable for every user.
  await field.rename("root/config/a.yaml", "a");
  await field.swap("root/config/a.yaml", "a.yaml");
  await until("an error", () => field.last.startsWith("TOP/root/config/a.yaml: Cannot read the file"));
  await field.rename("a", "root/config/a.yaml");
  await field.expect("a1");
});

test("a rule file whose name is not UTF-8 is an error, and the others are read", async (field) => {
  await touch(field.top, "a\\377.yaml");
  await field.write("b.yaml", "b");
  const load = await loadRuleFiles(field.top, { ignoreDotFiles: false, whenMissing: "make it" });
  const problems = load.problems.map((one) =>
    `${one.severity} ${problemText(one)}`.replace(field.top, "DIR")
  );
  assertEquals([load.sources?.map(({ domain }) => domain), problems], [["b"], [
    "error DIR/a\uFFFD.yaml: Cannot read the file: its name is not UTF-8; rename it",
  ]]);
});

Deno.test("rule files on disk: the service warns of files that are none by name, and an Emacs lock stops nothing", async () => {
  const limit = "{ key: k, rate_limit: { unit: day, requests_per_unit: 1 } }";
  const rule = (domain: string) => `domain: ${domain}\ndescriptors: [${limit}]\n`;
  const rules = { "a.yaml": rule("a"), "b.json": '{ "domain": "b" }', "../config.more.yaml": rule("more") };
  await using weir = await ServeFixture.start({ rules, env: { RUNTIME_WATCH_ROOT: "true" } });
  const warned = (name: string) =>
    weir.log.filter((line) => line.includes("ignored") && line.includes(name)).length;
  assertEquals(["a.yaml", "b.json", "config.more.yaml"].map(warned), [0, 1, 1]);
  await Deno.symlink("me@host.1:2", join(weir.rulesFolder, ".#a.yaml"));
  await Deno.writeTextFile(join(weir.rulesFolder, "a.yaml"), rule("changed"));
  weir.reload();
  await eventually(true, async () => (await weir.page("/rlconfig")).startsWith("changed.k: "));
});
