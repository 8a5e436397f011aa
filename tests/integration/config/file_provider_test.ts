import { assertEquals, assertMatch } from "@std/assert";
import { join } from "node:path";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { createFileProvider, type FileProviderOptions } from "../../../src/config/file_provider.ts";
import { loadRuleFiles } from "../../../src/config/rule_files.ts";
import type { RulesProvider } from "../../../src/config/provider.ts";
import { problemText } from "../../../src/base/problem.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { ServeFixture } from "../../harness/serve_fixture.ts";
import { until } from "../../harness/until.ts";

/** A provider on a folder of its own, and everything it told so far. */
class Field {
  /** A new folder; what a test makes is in it. */
  readonly top: string;
  /** Each load as the names of its domains, or as its problems when one is an error. */
  readonly loads: string[] = [];
  readonly log: string[] = [];
  /** Why no load can be applied, if so. */
  failure: Error | undefined;
  provider: RulesProvider | undefined;

  constructor(top: string) {
    this.top = top;
  }

  get last(): string | undefined {
    return this.loads.at(-1);
  }

  /** Starts a provider for `top/root/config`, and waits for its first load. */
  async start(options: Partial<FileProviderOptions> & { clock?: Clock } = {}): Promise<RulesProvider> {
    const clock = options.clock ?? systemClock;
    const write = (line: string) => void this.log.push(line.replaceAll(this.top, "TOP"));
    const provider = createFileProvider({
      root: `${this.top}/root`,
      subdirectory: "",
      appDirectory: "config",
      ignoreDotFiles: false,
      watchRoot: false,
      logger: createLogger({ level: "info", format: "text", clock, write }),
      ...options,
      clock,
    });
    this.provider = provider;
    provider.start((load) => {
      const errors = load.problems.filter(({ severity }) => severity === "error").map(problemText);
      const domains = (load.sources ?? []).map((source) => source.domain);
      this.loads.push((errors.length > 0 ? errors : domains).join(" ").replaceAll(this.top, "TOP"));
      return this.failure === undefined ? load.problems : Promise.reject(this.failure);
    });
    await until("the first load", () => this.loads.length > 0);
    return provider;
  }

  /** Waits until the last load is this one. */
  async expect(load: string): Promise<void> {
    await until(`the load ${load}, seen ${JSON.stringify(this.loads)}`, () => this.last === load);
  }

  /** Writes a rule file with one domain. */
  async write(path: string, domain: string): Promise<void> {
    await Deno.writeTextFile(`${this.top}/${path}`, `domain: ${domain}\ndescriptors: []\n`);
  }

  async mkdir(path: string): Promise<void> {
    await Deno.mkdir(`${this.top}/${path}`, { recursive: true });
  }

  /** Points a symbolic link elsewhere at once, as a deployment does. */
  async swap(link: string, target: string): Promise<void> {
    await Deno.symlink(target, `${this.top}/${link}.new`);
    await Deno.rename(`${this.top}/${link}.new`, `${this.top}/${link}`);
  }

  async remove(path: string): Promise<void> {
    await Deno.remove(`${this.top}/${path}`, { recursive: true });
  }

  async rename(from: string, to: string): Promise<void> {
    await Deno.rename(`${this.top}/${from}`, `${this.top}/${to}`);
  }
}

function test(name: string, run: (field: Field) => Promise<void>): void {
  Deno.test(`file provider: ${name}`, async () => {
    const field = new Field(await Deno.realPath(await Deno.makeTempDir()));
    try {
      await run(field);
    } finally {
      await field.provider?.close();
      await Deno.remove(field.top, { recursive: true });
    }
  });
}

test("a file is written, written again, added and removed", async (field) => {
  await field.mkdir("root/config");
  await field.write("root/config/b.yaml", "b1");
  await field.start();
  assertEquals(field.last, "b1");
  await field.write("root/config/b.yaml", "b2");
  await field.expect("b2");
  await field.write("root/config/a.yml", "a");
  await field.expect("a b2");
  await field.remove("root/config/b.yaml");
  await field.expect("a");
  await field.remove("root/config/a.yml");
  await field.expect("");
});

test("a load that cannot be applied is logged", async (field) => {
  await field.mkdir("root/config");
  field.failure = new Error("no room");
  await field.start();
  await until("the log line", () => field.log.length > 0);
  assertMatch(field.log.join(), /Cannot load the rule files; keeping the previous rules.*no room/);
});

test("an editor saves by rename", async (field) => {
  await field.mkdir("root/config");
  await field.write("root/config/a.yaml", "a1");
  await field.start();
  await field.write("root/config/.a.swp", "a2");
  await field.rename("root/config/a.yaml", "root/config/a.yaml~");
  await field.rename("root/config/.a.swp", "root/config/a.yaml");
  await field.expect("a2");
  await field.write("elsewhere", "a3");
  await field.rename("elsewhere", "root/config/a.yaml");
  await field.expect("a3");
});

test("a change of permissions alone loads again", async (field) => {
  await field.mkdir("root/config");
  await field.write("root/config/a.yaml", "a");
  await field.start();
  await Deno.chmod(`${field.top}/root/config/a.yaml`, 0o600);
  await until("a second load", () => field.loads.length > 1);
  assertEquals(field.loads.slice(0, 2), ["a", "a"]);
});

test("a file is written in two halves", async (field) => {
  await field.mkdir("root/config");
  await field.write("root/config/a.yaml", "a1");
  await field.start();
  const file = await Deno.open(`${field.top}/root/config/a.yaml`, { write: true, truncate: true });
  try {
    await file.write(new TextEncoder().encode("domain: a2\ndescr"));
    await field.expect(
      "TOP/root/config/a.yaml:2:1: not valid YAML: Implicit map keys need to be followed by map values",
    );
    await file.write(new TextEncoder().encode("iptors: []\n"));
    await field.expect("a2");
  } finally {
    file.close();
  }
});

/** Makes a folder as the kubelet mounts it: files are links through `..data` to a dated folder. */
async function mount(field: Field, domain: string): Promise<void> {
  await field.mkdir("mount/..2026_01/config");
  await field.write("mount/..2026_01/config/rules.yaml", domain);
  await Deno.symlink("..2026_01", `${field.top}/mount/..data`);
  await Deno.symlink("..data/config", `${field.top}/mount/config`);
}

/** Changes it as the kubelet does. */
async function remount(field: Field, from: string, to: string, domain: string): Promise<void> {
  await field.mkdir(`mount/${to}/config`);
  await field.write(`mount/${to}/config/rules.yaml`, domain);
  await field.swap("mount/..data", to);
  await field.remove(`mount/${from}`);
}

for (const watchRoot of [true, false]) {
  test(`the kubelet swaps ..data, ${watchRoot ? "root" : "content"} mode`, async (field) => {
    await mount(field, "v1");
    await field.start({ watchRoot, root: `${field.top}/mount${watchRoot ? "/..data" : ""}` });
    assertEquals(field.last, "v1");
    await remount(field, "..2026_01", "..2026_02", "v2");
    await field.expect("v2");
    await remount(field, "..2026_02", "..2026_01", "v3");
    await field.expect("v3");
  });

  test(`the root link is swapped, ${watchRoot ? "root" : "content"} mode`, async (field) => {
    for (const version of ["v1", "v2", "v3"]) {
      await field.mkdir(`releases/${version}/config`);
      await field.write(`releases/${version}/config/a.yaml`, version);
    }
    await field.mkdir("current");
    await field.swap("current/root", "../releases/v1");
    await field.start({ watchRoot, root: `${field.top}/current/root` });
    await field.swap("current/root", "../releases/v2");
    await field.expect("v2");
    // Not at once, as `ln -s` after `rm` does it, and back to a folder that was watched before.
    await field.remove("current/root");
    await Deno.symlink("../releases/v1", `${field.top}/current/root`);
    await field.expect("v1");
    await field.swap("current/root", "../releases/v3");
    await field.expect("v3");
    assertEquals(field.log, []);
  });

  test(`the folder above the root link is removed and made again, ${watchRoot ? "root" : "content"} mode`, async (field) => {
    await field.mkdir("v1/config");
    await field.write("v1/config/a.yaml", "v1");
    await field.mkdir("above/current");
    await field.swap("above/current/root", "../../v1");
    await field.start({ watchRoot, root: `${field.top}/above/current/root` });
    await field.remove("above");
    const missing =
      "TOP/above/current/root/config: Cannot read the folder of rule files: it does not exist; " +
      "create it, or correct RUNTIME_ROOT, RUNTIME_SUBDIRECTORY and RUNTIME_APPDIRECTORY";
    await field.expect(missing);
    await field.mkdir("above/current");
    await field.swap("above/current/root", "../../v1");
    await field.expect("v1");
  });
}

test("the root link is made after the start, and leads out of the folder that is watched", async (field) => {
  await field.mkdir("current");
  await field.mkdir("releases/v1/config");
  await field.write("releases/v1/config/a.yaml", "v1");
  await field.start({ watchRoot: true, root: `${field.top}/current/root` });
  await Deno.symlink("../releases/v1", `${field.top}/current/root`);
  await field.expect("v1");
});

test("files of a flat mount are swapped by ..data", async (field) => {
  await field.mkdir("root/config/..v1");
  await field.write("root/config/..v1/a.yaml", "v1");
  await field.swap("root/config/..data", "..v1");
  await Deno.symlink("..data/a.yaml", `${field.top}/root/config/a.yaml`);
  await field.start();
  await field.mkdir("root/config/..v2");
  await field.write("root/config/..v2/a.yaml", "v2");
  await field.swap("root/config/..data", "..v2");
  await field.expect("v2");
});

test("the folder, and then the root, is removed and made again", async (field) => {
  const missing = "TOP/root/config: Cannot read the folder of rule files: it does not exist; " +
    "create it, or correct RUNTIME_ROOT, RUNTIME_SUBDIRECTORY and RUNTIME_APPDIRECTORY";
  await field.start();
  assertEquals(field.last, missing);
  await field.mkdir("root/config");
  await field.write("root/config/a.yaml", "a1");
  await field.expect("a1");
  await field.remove("root/config");
  await field.expect(missing);
  await field.mkdir("root/config");
  await field.write("root/config/a.yaml", "a2");
  await field.expect("a2");
  await field.write("root/config/a.yaml", "a3");
  await field.expect("a3");
  await field.rename("root", "old");
  await field.expect(missing);
  await field.mkdir("root/config");
  await field.write("root/config/a.yaml", "a4");
  await field.expect("a4");
  await field.write("root/config/a.yaml", "a5");
  await field.expect("a5");
});

test("a rejected file is told with its line, and corrected", async (field) => {
  await field.mkdir("root/config");
  await field.write("root/config/a.yaml", "a1");
  await field.start();
  await Deno.writeTextFile(
    `${field.top}/root/config/a.yaml`,
    "domain: a2\ndescriptors:\n- key: k\n  vale: 1\n",
  );
  await field.expect("TOP/root/config/a.yaml:4:3: descriptors[0]: unknown key 'vale'; did you mean 'value'?");
  await field.write("root/config/a.yaml", "a3");
  await field.expect("a3");
});

test("in root mode changes inside a plain folder are warned of and found by the re-scan", async (field) => {
  const clock = new FakeClock(0);
  await field.mkdir("root/sub/config");
  await field.write("root/sub/config/a.yaml", "a1");
  const provider = await field.start({ clock, watchRoot: true, subdirectory: "sub" });
  assertEquals(field.log, [
    'time="1970-01-01T00:00:00Z" level=warning msg="RUNTIME_ROOT \\"TOP/root\\" is not a symbolic link: only the re-scan ' +
    'every 30 s finds changes inside it; set RUNTIME_WATCH_ROOT=false to watch its files"',
  ]);
  await field.write("root/sub/config/a.yaml", "a2-longer");
  clock.advance(29_000);
  assertEquals(field.loads, ["a1"]);
  clock.advance(1_000);
  await field.expect("a2-longer");
  // Nothing changed since: the next re-scan only looks, and the load after it was asked for.
  clock.advance(30_000);
  provider.reload();
  await until("the load that was asked for", () => field.loads.length > 2);
  assertEquals(field.loads, ["a1", "a2-longer", "a2-longer"]);
  assertEquals(field.log.length, 1);
  await provider.close();
  assertEquals(clock.waiting, 0);
});

test("a burst of changes is one load", async (field) => {
  const clock = new FakeClock(0);
  await field.mkdir("root/config");
  await field.start({ clock });
  for (let i = 0; i < 20; i++) await field.write(`root/config/${i}.yaml`, `d${i}`);
  // The periodic check and, once events arrived, the end of the burst.
  await until("the events", () => clock.waiting === 2);
  clock.advance(49);
  assertEquals(field.loads.length, 1);
  // Events may still come in, and then the longest wait ends the burst.
  await until("the load", () => {
    clock.advance(50);
    return field.loads.length > 1;
  });
  assertEquals(field.last?.split(" ").length, 20);
});

test("loads that are asked for never overlap, and none comes after closing", async (field) => {
  await field.mkdir("root/config");
  await field.write("root/config/a.yaml", "a");
  const provider = await field.start();
  for (let i = 0; i < 10; i++) provider.reload();
  await until("two loads", () => field.loads.length >= 2);
  provider.reload();
  await provider.close();
  const seen = field.loads.length;
  await field.write("root/config/a.yaml", "b");
  provider.reload();
  await provider.close();
  assertEquals(field.loads.length, seen);
});

/** Makes an empty file whose name is not UTF-8; `bytes` are written as in the shell's printf. */
async function touch(folder: string, bytes: string): Promise<void> {
  const args = ["-c", 'f=$(printf "$2") && : > "$1/$f"', "sh", folder, bytes];
  const { success } = await new Deno.Command("sh", { args }).output();
  assertEquals(success, true);
}

test("a name that is not UTF-8 ends the watch, which is opened again at once, five times", async (field) => {
  const clock = new FakeClock(0);
  const line = (when: string) =>
    'time="1970-01-01T00:00:00Z" level=warning msg="The watch of the rule files ended; reopening it ' +
    `${when}" error="path contains invalid UTF-8 characters"`;
  await field.mkdir("root/config");
  await field.write("root/config/a.yaml", "a1");
  await field.start({ clock });
  let names = 0;
  await until("six outages", async () => {
    // Some fall into the moment before the watch is open again, and one may be more than one event.
    await touch(`${field.top}/root/config`, `\\377${names++}`);
    return field.log.length > 5;
  });
  assertEquals(field.log.slice(0, 6), [
    ...Array<string>(5).fill(line("immediately")),
    line("at the next re-scan"),
  ]);
  clock.advance(1_000);
  await until("the load of what may have changed", () => field.loads.length === 2);
  await field.write("root/config/a.yaml", "a2");
  clock.advance(29_000);
  await field.expect("a2");
  await field.write("root/config/a.yaml", "a3");
  await until("the watch to work again", () => {
    clock.advance(50);
    return field.last === "a3";
  });
});

test("a rule file whose name is not UTF-8 is an error, and the others are read", async (field) => {
  await touch(field.top, "a\\377.yaml");
  await field.write("b.yaml", "b");
  const { load } = await loadRuleFiles(field.top, { ignoreDotFiles: false, whenMissing: "make it" });
  const problems = load.problems.map((one) =>
    `${one.severity} ${problemText(one)}`.replace(field.top, "DIR")
  );
  assertEquals([load.sources?.map(({ domain }) => domain), problems], [["b"], [
    "error DIR/a\uFFFD.yaml: Cannot read the file: its name is not UTF-8; rename it",
  ]]);
});

Deno.test("file provider: the service warns of files that are none by name, and an Emacs lock stops nothing", async () => {
  const rule = (domain: string) => `domain: ${domain}\ndescriptors: []\n`;
  const rules = { "a.yaml": rule("a"), "b.json": '{ "domain": "b" }', "../config.more.yaml": rule("more") };
  await using weir = await ServeFixture.start({ rules, env: { RUNTIME_WATCH_ROOT: "true" } });
  const warned = (name: string) =>
    weir.log.filter((line) => line.includes("ignored") && line.includes(name)).length;
  assertEquals(["a.yaml", "b.json", "config.more.yaml"].map(warned), [0, 1, 1]);
  await Deno.symlink("me@host.1:2", join(weir.rulesFolder, ".#a.yaml"));
  await Deno.writeTextFile(join(weir.rulesFolder, "a.yaml"), rule("changed"));
  weir.reload();
  await until("the reload", () => weir.running.domains().join() === "changed");
});
