import { assert, assertEquals } from "#assert";
import { createFileProvider, type FileProviderOptions } from "../../../src/config/file_provider.ts";
import { FakeBell } from "../../harness/fake_bell.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { eventually } from "../../harness/until.ts";

/** A provider of the files in `top/root/config`, whose bell and time come from the test. */
class Bed implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly bell = new FakeBell();
  readonly log = new RecordedLogger();
  /** Each load as the names of its domains. */
  readonly loads: string[] = [];
  /** Why no load can be applied, if so. */
  failure: Error | undefined;
  readonly provider;

  private constructor(readonly top: string, options: Partial<FileProviderOptions>) {
    this.provider = createFileProvider({
      root: `${top}/root`,
      subdirectory: "",
      appDirectory: "config",
      ignoreDotFiles: false,
      watchRoot: false,
      bell: this.bell,
      clock: this.clock,
      logger: this.log,
      ...options,
    });
  }

  static async open(options: Partial<FileProviderOptions> = {}): Promise<Bed> {
    const top = await Deno.realPath(await Deno.makeTempDir());
    await Deno.mkdir(`${top}/root/config`, { recursive: true });
    const bed = new Bed(top, options);
    await bed.write("a1");
    bed.provider.start(({ sources = [], problems }) => {
      bed.loads.push(sources.map(({ domain }) => domain).join(" "));
      return bed.failure === undefined ? Promise.resolve(problems) : Promise.reject(bed.failure);
    });
    await eventually(["a1"], () => bed.loads);
    return bed;
  }

  async write(domain: string): Promise<void> {
    // In one step, because a read may be under way.
    await Deno.writeTextFile(`${this.top}/new`, `domain: ${domain}\ndescriptors: []\n`);
    await Deno.rename(`${this.top}/new`, `${this.top}/root/config/a.yaml`);
  }

  /** Rings and lets time pass until the last load is this one. */
  async expect(load: string): Promise<void> {
    await eventually(load, () => {
      this.bell.ring();
      this.clock.advance(50);
      return this.loads.at(-1);
    });
  }

  /** Lets time pass until the bell was given these folders. */
  async expectWatches(watches: readonly (readonly string[])[]): Promise<void> {
    await eventually(watches, () => {
      this.clock.advance(50);
      return this.bell.watches;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.provider.close();
    await Deno.remove(this.top, { recursive: true });
    assertEquals(this.clock.waiting, 0);
  }
}

Deno.test("file provider: the bell rings for the folder and those above it, and a change is loaded once", async () => {
  await using bed = await Bed.open();
  const folder = `${bed.top}/root/config`;
  const watched = [bed.top, `${bed.top}/root`, folder];
  await bed.expectWatches([watched]);
  await bed.write("a2");
  await bed.expect("a2");
  await Deno.rename(folder, `${bed.top}/away`);
  await Deno.mkdir(folder);
  await bed.write("a3");
  await bed.expect("a3");
  // A look between the two steps may have found the folder gone, and watched those above it alone.
  assertEquals([bed.loads, bed.bell.watches.at(-1)], [["a1", "a2", "a3"], watched]);
  assert(bed.bell.watches.length > 1);
});

Deno.test("file provider: in root mode the bell rings for the folder above the root, and a plain folder is warned of", async () => {
  await using bed = await Bed.open({ watchRoot: true });
  const message =
    `RUNTIME_ROOT "${bed.top}/root" is not a symbolic link: changes inside it are found every 2 s only; ` +
    "set RUNTIME_WATCH_ROOT=false to watch its files";
  await eventually([{ level: "warning", message, fields: {} }], () => bed.log.lines);
  await bed.expectWatches([[bed.top]]);
  await bed.write("a2");
  await bed.expect("a2");
  // The next worker, which knows what was loaded, does not warn again.
  await using next = await Bed.open({ watchRoot: true, known: () => '{"files":{}}' });
  assertEquals(next.log.lines, []);
});

Deno.test("file provider: a load that cannot be applied is logged", async () => {
  await using bed = await Bed.open();
  const error = bed.failure = new Error("no room");
  bed.provider.reload();
  const message = "Cannot load the rule files; keeping the previous rules";
  await eventually([{ level: "error", message, fields: { error } }], () => bed.log.lines);
});

Deno.test("file provider: loads never overlap, and none comes after closing", async () => {
  await using bed = await Bed.open();
  for (let time = 0; time < 10; time++) bed.provider.reload();
  await eventually(["a1", "a1"], () => bed.loads);
  bed.provider.reload();
  await bed.provider.close();
  const { length } = bed.loads;
  bed.provider.reload();
  bed.bell.ring();
  bed.clock.advance(60_000);
  await bed.provider.close();
  assertEquals(bed.loads.length, length);
});
