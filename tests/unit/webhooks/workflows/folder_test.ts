import { assert, assertEquals, assertNotEquals, assertThrows } from "#assert";
import { WorkflowFiles } from "../../../../src/webhooks/workflows/files.ts";
import { FakeClock } from "../../../harness/fake_clock.ts";
import { FakeBell } from "../../../harness/fake_bell.ts";
import { RecordedLogger } from "../../../harness/recorded_logger.ts";
import { until } from "../../../harness/until.ts";

/** A workflow whose one step tells its texts apart. */
const text = (id: string, mark: string) => `workflow: ${id}\nsteps:\n- {name: ${mark}, set: {}}\n`;

/** A folder whose workflows are read when the test says that something happened. */
class Bed implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly bell = new FakeBell();
  readonly log = new RecordedLogger();
  readonly files: WorkflowFiles;

  constructor(readonly folder: string) {
    const { bell, clock, log: logger } = this;
    this.files = new WorkflowFiles({ folder, envNames: ["OK"], bell, clock, logger });
  }

  static async open(files: Readonly<Record<string, string>>): Promise<Bed> {
    const folder = await Deno.realPath(await Deno.makeTempDir());
    const bed = new Bed(folder);
    for (const [name, content] of Object.entries(files)) await bed.write(name, content);
    await bed.files.start();
    return bed;
  }

  /** The workflows in force: the id of each workflow and the name of its first step. */
  get state(): string {
    return this.files.names().map((name) => `${name}:${this.files.current(name)?.workflow.steps[0]?.name}`)
      .join(" ");
  }

  /** The lines of the log since the last call, without the folder. */
  lines(): readonly string[] {
    return this.log.lines.splice(0).map(({ level, message, fields }) => {
      const { version: _, ...told } = fields;
      return [level, message, ...Object.values(told)].join(" ").replaceAll(this.folder, "F");
    });
  }

  async write(name: string, content: string): Promise<void> {
    // In one step, because a read may be under way.
    await Deno.writeTextFile(`${this.folder}/.new`, content);
    await Deno.rename(`${this.folder}/.new`, `${this.folder}/${name}`);
  }

  /** Compares what is in force once a change was read, at a ring of the bell. */
  async expect(state: string): Promise<void> {
    await this.until(() => assertEquals(this.state, state));
  }

  /** The same of the lines of the log since the last call. */
  async told(...lines: readonly string[]): Promise<void> {
    const told: string[] = [];
    await this.until(() => {
      told.push(...this.lines());
      assertEquals(told, lines);
    });
  }

  /** Rings and lets time pass until nothing is thrown. */
  async until(check: () => void): Promise<void> {
    await until("the files to be read", () => {
      this.bell.ring();
      this.clock.advance(50);
      check();
      return true;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.files.close();
    await Deno.remove(this.folder, { recursive: true }).catch(() => {});
    assertEquals(this.clock.waiting, 0);
  }
}

Deno.test("workflow files: read, edited, broken, mended, renamed, deleted", async () => {
  await using bed = await Bed.open({
    "a.yaml": text("a", "one"),
    "b.yml": text("b", "one"),
    ".c.yaml": text("c", "hidden"),
    "d.txt": text("d", "other"),
  });
  assertEquals(bed.state, "a:one b:one");
  assertEquals(bed.lines(), [
    "info Workflow loaded a",
    "info Workflow loaded b",
  ]);

  await bed.write("a.yaml", text("a", "two"));
  await bed.expect("a:two b:one");
  assertEquals(bed.lines(), ["info Workflow loaded a"]);

  await bed.write("a.yaml", "workflow: a\nsteps:\n- {name: x, set: {a: '{{ env.HOME }}'}}\n");
  await bed.told(
    "error F/a.yaml:3:22: steps[0].set.a: the template 'env.HOME' reads an environment variable " +
      "that is not in WORKFLOW_ENV; add HOME to it",
  );
  assertEquals(bed.state, "a:two b:one");
  await bed.write("new.yaml", text("new", "one"));
  await bed.expect("a:two b:one new:one");
  assertEquals(bed.lines(), ["info Workflow loaded new"], "the same problem is reported once");

  await bed.write("a.yaml", text("a", "three"));
  await bed.expect("a:three b:one new:one");
  bed.lines();
  await Deno.remove(`${bed.folder}/new.yaml`);
  await Deno.rename(`${bed.folder}/b.yml`, `${bed.folder}/b2.yaml`);
  await bed.expect("a:three b:one");
  bed.lines();
  await Deno.remove(`${bed.folder}/a.yaml`);
  await bed.expect("b:one");
  assertEquals(bed.lines(), ["warning Workflow removed; its triggers are refused a"]);
  assertEquals(bed.files.current("a"), undefined);
});

Deno.test("workflow files: of two files with one id neither is taken, and what was in force stays", async () => {
  await using bed = await Bed.open({ "a.yaml": text("x", "one"), "b.yaml": text("x", "two") });
  assertEquals(bed.state, "");
  const told = "error F/b.yaml:1:1: the workflow 'x' is also in F/a.yaml; rename one of them";
  assertEquals(bed.lines(), [told]);
  await Deno.remove(`${bed.folder}/b.yaml`);
  await bed.expect("x:one");
  bed.lines();
  await bed.write("b.yaml", text("x", "two"));
  await bed.told(told);
  assertEquals(bed.state, "x:one");
  await Deno.remove(`${bed.folder}/a.yaml`);
  await bed.expect("x:two");
});

Deno.test("workflow files: a folder that is missing, made, moved away and made again", async () => {
  const top = await Deno.realPath(await Deno.makeTempDir());
  const folder = `${top}/workflows`;
  await using bed = new Bed(folder);
  await bed.files.start();
  const missing =
    'error Cannot read the folder of workflows "F": it does not exist; make it, or correct WORKFLOW_DIRECTORY';
  assertEquals(bed.lines(), [missing]);
  await Deno.mkdir(folder);
  await bed.write("a.yaml", text("a", "one"));
  await bed.expect("a:one");
  bed.lines();
  await Deno.rename(folder, `${top}/away`);
  await bed.told(missing);
  assertEquals(bed.state, "a:one", "a folder that is gone takes nothing away");
  await Deno.mkdir(folder);
  await bed.write("a.yaml", text("a", "two"));
  await bed.expect("a:two");
  await Deno.remove(top, { recursive: true });
});

Deno.test("workflow files: files that change together are one update, and none follows the closing", async () => {
  const bed = await Bed.open({ "a.yaml": text("a", "one"), "b.yaml": text("b", "one") });
  bed.lines();
  for (const name of ["a", "b"]) await bed.write(`${name}.yaml`, text(name, "two"));
  await bed.until(() => assertNotEquals(bed.state, "a:one b:one"));
  assertEquals(bed.state, "a:two b:two");
  await bed.write("a.yaml", text("a", "three"));
  bed.bell.ring();
  await bed[Symbol.asyncDispose]();
  assertEquals(bed.state, "a:two b:two");
});

Deno.test("workflow files: a file that cannot be read is tried again at every look", async () => {
  await using bed = await Bed.open({ "a.yaml": text("a", "one") });
  bed.lines();
  await Deno.remove(`${bed.folder}/a.yaml`);
  await Deno.symlink("a.yaml", `${bed.folder}/a.yaml`);
  await bed.until(() => assertEquals(bed.log.lines.length, 1));
  await Deno.remove(`${bed.folder}/a.yaml`);
  await bed.write("a.yaml", text("a", "two"));
  await bed.expect("a:two");
  assertEquals(bed.lines().length, 2, "it is reported once");
});

Deno.test("workflow files: files beyond the bound, and bytes that are no text", async () => {
  await using bed = await Bed.open({ "a.yaml": `# ${"x".repeat(262_144)}\n${text("a", "one")}` });
  await Deno.writeFile(`${bed.folder}/b.yaml`, new Uint8Array([0xff, 0xfe]));
  await bed.told(
    "error F/a.yaml: the file has more than 262144 bytes; split it into several workflows",
    "error F/b.yaml: the file is not UTF-8; save it as such",
  );
});

Deno.test("workflow files: a text that was in force is read again, and one that is none throws", async () => {
  await using bed = await Bed.open({ "a.yaml": text("a", "one") });
  const before = bed.files.current("a");
  assert(before !== undefined);
  assertEquals(bed.files.parse(before.version), before.workflow);
  await bed.write("a.yaml", text("a", "two"));
  await bed.expect("a:two");
  assertEquals(bed.files.parse(before.version).steps[0]?.name, "one");
  const error = assertThrows(() => bed.files.parse({ id: "x", workflow: "a", text: "workflow: a" }));
  assertEquals(
    error.message,
    `workflow "a":1:1: there are no steps; add a list of at least one under 'steps'`,
  );
});

/** The listing: problems of the folder, and of each entry its id, file, first step in use and problems. */
function listed({ files, folder }: Bed): unknown[] {
  const { problems, entries } = files.listing();
  const shown = (text: string) => text.replaceAll(folder, "F");
  return [
    ...problems.map(({ text }) => shown(text)),
    ...entries.map(({ id, name, file, current, problems }) => [
      name === undefined ? `(${id})` : id,
      shown(file),
      current?.workflow.steps[0]?.name,
      ...problems.map(({ at, text }) => shown(`${at}: ${text}`)),
    ]),
  ];
}

const UNKNOWN_KEY = (file: string) => `F/${file}:1:1: unknown key 'step'; did you mean 'steps'?`;
const NO_STEPS = (file: string) =>
  `F/${file}:1:1: there are no steps; add a list of at least one under 'steps'`;

Deno.test("workflow files: the listing has what is in use, and the errors of every file", async () => {
  const broken = (id: string) => `step: []\nworkflow: ${id}\n`;
  const wrong = (file: string) => [UNKNOWN_KEY(file), NO_STEPS(file)];
  await using bed = await Bed.open({
    "a.yaml": text("a", "one"),
    "b.yaml": broken("b"),
    "c.yaml": "- x\n",
    "d.yaml": text("d", "one"),
  });
  const rest = [
    ["b", "F/b.yaml", undefined, ...wrong("b.yaml")],
    [
      "(c.yaml)",
      "F/c.yaml",
      undefined,
      "F/c.yaml:1:1: expected a mapping with workflow and steps, got a list",
    ],
    ["d", "F/d.yaml", "one"],
  ];
  assertEquals(listed(bed), [["a", "F/a.yaml", "one"], ...rest]);
  const { current } = bed.files.listing().entries[0] ?? {};
  assertEquals([current?.at, current?.stepPositions, current?.loadedAt], [
    `${bed.folder}/a.yaml:1:1`,
    [`${bed.folder}/a.yaml:3:3`],
    bed.clock.now(),
  ]);

  await bed.write("a.yaml", broken("renamed"));
  const outdated = [["a", "F/a.yaml", "one", ...wrong("a.yaml")], ...rest];
  await bed.until(() => assertEquals(listed(bed), outdated));

  // The text that is in use comes back: it was loaded when it was read first.
  await bed.write("a.yaml", text("a", "one"));
  await bed.write("e.yaml", text("d", "two"));
  const duplicate = "F/e.yaml:1:1: the workflow 'd' is also in F/d.yaml; rename one of them";
  const repaired = [["a", "F/a.yaml", "one"], ...rest.slice(0, 2), ["d", "F/d.yaml", "one", duplicate]];
  await bed.until(() => assertEquals(listed(bed).slice(0, 4), repaired));
  assertEquals(bed.files.listing().entries[0]?.current?.loadedAt, current?.loadedAt);

  await Deno.remove(bed.folder, { recursive: true });
  const missing = [
    'Cannot read the folder of workflows "F": it does not exist; make it, or correct WORKFLOW_DIRECTORY',
    ["a", "F/a.yaml", "one"],
  ];
  await bed.until(() => assertEquals(listed(bed).slice(0, 2), missing));
});

Deno.test("workflow files: without a folder there are none", async () => {
  const files = new WorkflowFiles({
    envNames: [],
    bell: new FakeBell(),
    clock: new FakeClock(),
    logger: new RecordedLogger(),
  });
  await files.start();
  assertEquals([files.names(), files.current("a")], [[], undefined]);
  assertEquals(files.listing(), { folder: undefined, problems: [], entries: [] });
  await files.close();
});
