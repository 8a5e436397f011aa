import { assertEquals } from "#assert";
import { createFileProvider, type FileProviderOptions } from "../../../src/config/file_provider.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { FakeFolderEvents } from "../../harness/fake_folder_events.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { eventually, settledTurns } from "../../harness/until.ts";

/** A provider of the files in `top/root/config`, whose events and time come from the test. */
class Bed implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly events = new FakeFolderEvents();
  readonly log = new RecordedLogger();
  /** Each load as the names of its domains. */
  readonly loads: string[] = [];
  /** Why no load can be applied, if so. */
  failure: Error | undefined;
  readonly provider;

  private constructor(readonly top: string, options: Partial<FileProviderOptions>) {
    this.provider = createFileProvider({
      ...{ root: `${top}/root`, subdirectory: "", appDirectory: "config", ignoreDotFiles: false },
      ...{ watchRoot: false, clock: this.clock, logger: this.log, openEvents: this.events.open, ...options },
    });
    this.provider.start(({ sources = [], problems }) => {
      this.loads.push(sources.map(({ domain }) => domain).join(" "));
      return this.failure === undefined ? problems : Promise.reject(this.failure);
    });
  }

  /** Waits for the first load, and for the check that follows the beginning of the watch. */
  static async open(options: Partial<FileProviderOptions> = {}): Promise<Bed> {
    const top = await Deno.realPath(await Deno.makeTempDir());
    await Deno.mkdir(`${top}/root/config`, { recursive: true });
    const bed = new Bed(top, options);
    await bed.write("a1");
    await eventually([1, 2], () => [bed.loads.length, bed.clock.waiting]);
    await bed.passes(50);
    await bed.expect("a1", "a1");
    bed.loads.length = 0;
    return bed;
  }

  async write(domain: string): Promise<void> {
    await Deno.writeTextFile(`${this.top}/root/config/a.yaml`, `domain: ${domain}\ndescriptors: []\n`);
  }

  /** Lets time pass, after which the round that is due has begun. */
  async passes(ms: number): Promise<void> {
    this.clock.advance(ms);
    await settledTurns();
  }

  /** Asks for a load, which follows all that were due, and compares what was loaded. */
  async expect(...loads: readonly string[]): Promise<void> {
    this.provider.reload();
    await eventually([...loads], () => this.loads);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.provider.close();
    await Deno.remove(this.top, { recursive: true });
    assertEquals([this.clock.waiting, this.events.isClosed], [0, true]);
  }
}

Deno.test("file provider: an event in the folder loads 50 ms later, one around it only if files differ", async () => {
  await using bed = await Bed.open();
  bed.events.change(bed.top);
  await bed.passes(50);
  bed.events.change(`${bed.top}/root/config/a.yaml`);
  await bed.passes(49);
  assertEquals(bed.loads, []);
  await bed.passes(1);
  await eventually(["a1"], () => bed.loads);
  await bed.write("a2");
  bed.events.change(bed.top);
  await bed.passes(50);
  await bed.expect("a1", "a2", "a2");
});

Deno.test("file provider: events that go on are one load a second", async () => {
  await using bed = await Bed.open();
  for (let ms = 0; ms < 1_000; ms += 40) {
    bed.events.change(`${bed.top}/root/config/${ms}`);
    await bed.passes(ms < 960 ? 40 : 39);
  }
  assertEquals(bed.loads, []);
  await bed.passes(1);
  await bed.expect("a1", "a1");
});

Deno.test("file provider: in root mode the re-scan finds changes inside of a plain folder, which is warned of", async () => {
  await using bed = await Bed.open({ watchRoot: true });
  assertEquals([bed.events.watches, bed.log.lines], [[[bed.top, "/"]], [{
    level: "warning",
    message:
      `RUNTIME_ROOT "${bed.top}/root" is not a symbolic link: only the re-scan every 30 s finds changes inside it; ` +
      "set RUNTIME_WATCH_ROOT=false to watch its files",
    fields: {},
  }]]);
  await bed.write("a2-longer");
  await bed.passes(29_949);
  assertEquals(bed.loads, []);
  await bed.passes(1);
  await eventually(1, () => bed.loads.length);
  await bed.passes(30_000);
  await bed.expect("a2-longer", "a2-longer");
  // The next worker, which knows what was loaded, does not warn again.
  await using next = await Bed.open({ watchRoot: true, known: () => '{"files":{}}' });
  assertEquals(next.log.lines, []);
});

Deno.test("file provider: a folder that was made anew is watched anew", async () => {
  await using bed = await Bed.open();
  const folder = `${bed.top}/root/config`;
  const watched = [folder, bed.top, `${bed.top}/root`, "/"];
  assertEquals(bed.events.watches, [watched]);
  bed.events.send({ type: "event", kind: "remove", paths: [folder] });
  await bed.passes(50);
  await eventually([watched, watched], () => bed.events.watches);
});

Deno.test("file provider: a watch that ends is opened again immediately, five times", async () => {
  await using bed = await Bed.open();
  for (let time = 0; time < 6; time++) bed.events.send({ type: "ended", state: "not UTF-8" });
  const line = (when: string) => ({
    level: "warning",
    message: `The watch of the rule files ended; reopening it ${when}`,
    fields: { error: "not UTF-8" },
  });
  assertEquals(bed.log.lines, [...Array(5).fill(line("immediately")), line("at the next re-scan")]);
  assertEquals(bed.events.watches.length, 6);
  await bed.passes(50);
  await eventually(1, () => bed.loads.length);
  await bed.passes(30_000);
  await eventually(7, () => bed.events.watches.length);
});

Deno.test("file provider: a watch that cannot be opened is logged once, and tried again at each re-scan", async () => {
  await using bed = await Bed.open();
  bed.events.answer = { type: "unwatched", state: "no descriptors" };
  bed.events.send(bed.events.answer);
  for (const watches of [2, 3]) {
    await bed.passes(30_000);
    await eventually(watches, () => bed.events.watches.length);
  }
  const message = "Cannot watch the rule files; relying on the re-scan";
  assertEquals(bed.log.lines, [{ level: "warning", message, fields: { error: "no descriptors" } }]);
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
  await bed.expect("a1");
  bed.provider.reload();
  await bed.provider.close();
  const { length } = bed.loads;
  bed.provider.reload();
  bed.events.change(`${bed.top}/root/config/a.yaml`);
  bed.clock.advance(60_000);
  await bed.provider.close();
  assertEquals(bed.loads.length, length);
});
