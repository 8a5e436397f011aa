import { assertEquals, assertNotEquals } from "#assert";
import { folderState, WatchedFiles, type WatchedFilesOptions } from "../../../src/threads/watched_files.ts";
import { FakeBell } from "../../harness/fake_bell.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { eventually, settledTurns } from "../../harness/until.ts";

/** Files as a test sets them, and when they are read. */
class Bed implements AsyncDisposable {
  readonly clock = new FakeClock(0);
  readonly bell = new FakeBell();
  readonly watched: WatchedFiles;
  files = "one";
  /** The duration of each look. */
  lookMs = 0;
  looks = 0;
  /** Each read, with its time. */
  readonly reads: string[] = [];
  /** True if files have to be read again, although they did not change. */
  isRepeated = false;

  constructor(options: Partial<WatchedFilesOptions> = {}) {
    this.watched = new WatchedFiles({
      look: () => {
        this.looks++;
        this.clock.elapsedAheadMs += this.lookMs;
        return Promise.resolve(this.files);
      },
      onChange: () => {
        this.reads.push(`${this.files} at ${this.clock.elapsed()}`);
        return Promise.resolve(this.isRepeated);
      },
      bell: this.bell,
      clock: this.clock,
      ...options,
    });
  }

  /** Starts, and forgets what was read then. */
  static async open(options: Partial<WatchedFilesOptions> = {}): Promise<Bed> {
    const bed = new Bed(options);
    await bed.watched.start();
    await settledTurns();
    bed.reads.length = 0;
    bed.looks = 0;
    return bed;
  }

  async passes(ms: number): Promise<void> {
    this.clock.advance(ms);
    await settledTurns();
  }

  /** A bell that is given a folder rings; others have none. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.watched.close();
    assertEquals(this.clock.waiting, 0);
  }
}

const FOLDER = { folders: () => ["/"] };

Deno.test("watched files: they are read at the start, and then only when a look every 2 s differs", async () => {
  await using bed = new Bed();
  await bed.watched.start();
  assertEquals(bed.reads, ["one at 0"]);
  await bed.passes(2_000);
  await bed.passes(2_000);
  bed.files = "two";
  await bed.passes(1_999);
  assertEquals([bed.reads, bed.looks], [["one at 0"], 3]);
  await bed.passes(1);
  await bed.passes(49);
  assertEquals(bed.reads, ["one at 0"]);
  await bed.passes(1);
  assertEquals(bed.reads, ["one at 0", "two at 6050"]);
});

Deno.test("watched files: the bell asks for a look, and a change that goes on is awaited for a second", async () => {
  await using bed = await Bed.open(FOLDER);
  // The first reading does not wait for the bell.
  assertEquals(bed.bell.watches, []);
  await bed.passes(50);
  await eventually([[["/"]], 1], () => [bed.bell.watches, bed.looks]);
  await bed.passes(60);
  bed.bell.ring();
  await eventually(2, () => bed.looks);
  for (let step = 0; step < 30; step++) {
    bed.files = `step ${step}`;
    bed.bell.ring();
    const { looks } = bed;
    await bed.passes(50);
    await eventually(looks + 1, () => bed.looks);
    await settledTurns();
  }
  await bed.passes(50);
  await eventually(2, () => bed.reads.length);
  const [first = "", last = ""] = bed.reads;
  assertEquals([first.startsWith("step 2"), last.startsWith("step 29 at ")], [true, true]);
  const reads = bed.reads.length;
  await bed.passes(2_000);
  assertEquals(bed.reads.length, reads);
});

Deno.test("watched files: a look that takes long rests 50 times as long, half a minute at most", async () => {
  for (const [lookMs, restMs] of [[100, 5_000], [10_000, 30_000]] as const) {
    await using bed = await Bed.open();
    bed.lookMs = lookMs;
    await bed.passes(2_000);
    assertEquals(bed.looks, 1);
    await bed.passes(restMs - 1);
    assertEquals(bed.looks, 1);
    await bed.passes(1);
    assertEquals(bed.looks, 2);
  }
});

Deno.test("watched files: a read that has to be repeated is, at every look", async () => {
  await using bed = await Bed.open();
  bed.files = "two";
  bed.isRepeated = true;
  for (const ms of [2_000, 50, 1_950, 2_000]) await bed.passes(ms);
  bed.isRepeated = false;
  for (const ms of [2_000, 2_000]) await bed.passes(ms);
  assertEquals(bed.reads, ["two at 2050", "two at 4000", "two at 6000", "two at 8000"]);
});

Deno.test("watched files: a read that is asked for comes now, whether they changed or not", async () => {
  await using bed = await Bed.open();
  await bed.passes(10);
  bed.watched.readNow();
  await settledTurns();
  bed.files = "two";
  bed.watched.readNow();
  await settledTurns();
  await bed.passes(2_000);
  assertEquals(bed.reads, ["one at 10", "two at 10"]);
});

Deno.test("watched files: other times for a look and for files to settle", async () => {
  await using bed = await Bed.open({ lookMs: 1_000, settleMs: 1_000 });
  bed.files = "two";
  await bed.passes(1_000);
  bed.files = "three";
  await bed.passes(1_000);
  assertEquals(bed.reads, []);
  await bed.passes(1_000);
  assertEquals(bed.reads, ["three at 3000"]);
});

Deno.test("watched files: closing waits a second for a look that hangs, and nothing is read after it", async () => {
  const look = Promise.withResolvers<string>();
  const bed = new Bed({ look: () => look.promise });
  void bed.watched.start();
  await settledTurns();
  const closed = bed.watched.close();
  await settledTurns();
  bed.clock.advance(1_000);
  await closed;
  look.resolve("late");
  await settledTurns();
  assertEquals([bed.reads, bed.clock.waiting], [[], 0]);
});

Deno.test("watched files: the state of a folder changes with every change of a file that counts, and with nothing else", async () => {
  const folder = await Deno.makeTempDir();
  const state = () => folderState(folder, (name) => name.endsWith(".yaml"));
  const missing = await state();
  try {
    const seen = [await state()];
    const changes: (() => Promise<void>)[] = [
      () => Deno.writeTextFile(`${folder}/a.yaml`, "one"),
      () => Deno.utime(`${folder}/a.yaml`, 1_000, 1_000),
      () => Deno.truncate(`${folder}/a.yaml`, 1),
      () => Deno.chmod(`${folder}/a.yaml`, 0o600),
      () => Deno.rename(`${folder}/a.yaml`, `${folder}/b.yaml`),
      () => Deno.symlink("b.yaml", `${folder}/a.yaml`),
      () => Deno.remove(`${folder}/b.yaml`),
      () => Deno.remove(`${folder}/a.yaml`),
    ];
    for (const change of changes) {
      await change();
      const now = await state();
      assertNotEquals(now, seen.at(-1));
      seen.push(now);
      await Deno.writeTextFile(`${folder}/other`, String(seen.length));
      assertEquals(await state(), now);
    }
    assertEquals(seen.at(-1), seen[0]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
  assertEquals([await state(), missing.startsWith(folder)], ["ENOENT", true]);
});
