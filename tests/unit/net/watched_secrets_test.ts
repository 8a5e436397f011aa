import { assertEquals } from "#assert";
import { WatchedSecrets } from "../../../src/net/watched_secrets.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { type Replacement, SecretFolder } from "../../harness/secret_folder.ts";
import { eventually } from "../../harness/until.ts";

const OLD = "first-pa55word";
const NEW = "second-pa55word";
const RELOADED = "Credentials of KV_AUTH_FILE reloaded";
const REJECTED = "Reload of KV_AUTH_FILE rejected; keeping the previous credentials";

/** A watched file of one secret, by a clock that goes on while the test waits. */
class Bed implements AsyncDisposable {
  readonly folder = new SecretFolder();
  readonly log = new RecordedLogger();
  readonly applied: (string | undefined)[] = [];
  readonly #clock = new FakeClock();
  readonly watched: WatchedSecrets;

  private constructor(how: Replacement = "rename") {
    this.folder.write("KV_AUTH", OLD, how);
    this.watched = new WatchedSecrets({
      files: [{ name: "KV_AUTH", path: this.folder.file("KV_AUTH"), value: OLD }],
      clock: this.#clock,
      logger: this.log,
      onChange: (values) => {
        const value = values.get("KV_AUTH");
        if (value === "wrong") throw new Error("expected another value");
        this.applied.push(value);
      },
    });
  }

  /** Changes are those after the first reading. */
  static async open(how?: Replacement): Promise<Bed> {
    const bed = new Bed(how);
    await bed.watched.start();
    return bed;
  }

  get lines(): string[] {
    return this.log.lines.map(({ message }) => message);
  }

  /** Lets time pass until all lines are these. */
  async logged(...lines: readonly string[]): Promise<void> {
    await eventually([...lines], () => {
      this.#clock.advance(50);
      return this.lines;
    }, { intervalMs: 5 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.watched.close();
    await this.folder[Symbol.asyncDispose]();
  }
}

for (const how of ["rename", "in place", "links"] as const) {
  Deno.test(`secret files: a file that is replaced by ${how} is read again`, async () => {
    await using bed = await Bed.open(how);
    bed.folder.write("KV_AUTH", `${NEW}\n`, how);
    await bed.logged(RELOADED);
    // With the size of the first one.
    bed.folder.write("KV_AUTH", OLD, how);
    await bed.logged(RELOADED, RELOADED);
    assertEquals([bed.applied, bed.watched.metrics], [[NEW, OLD], { reloaded: 2, rejected: 0 }]);
  });
}

const UNUSABLE: readonly (readonly [what: string, damage: (folder: SecretFolder) => void, reason: RegExp])[] =
  [
    ["is empty", (folder) => folder.write("KV_AUTH", "", "in place"), /^the file is empty$/],
    ["has only a line break", (folder) => folder.write("KV_AUTH", "\n"), /^the file is empty$/],
    ["has two lines", (folder) => folder.write("KV_AUTH", `${NEW}\n${NEW}`), /^the file has several lines/],
    ["is missing", (folder) => Deno.removeSync(folder.file("KV_AUTH")), /^No such file/],
    ["is rejected", (folder) => folder.write("KV_AUTH", "wrong"), /^expected another value$/],
    [
      "cannot be read",
      (folder) => {
        Deno.removeSync(folder.file("KV_AUTH"));
        Deno.mkdirSync(folder.file("KV_AUTH"));
      },
      /^it is not a file$/,
    ],
  ];

for (const [what, damage, reason] of UNUSABLE) {
  Deno.test(`secret files: one that ${what} is logged once, and the value stays until it can be used`, async () => {
    await using bed = await Bed.open();
    damage(bed.folder);
    await bed.logged(REJECTED);
    assertEquals(reason.test(String(bed.log.lines[0]?.fields["reason"])), true, Deno.inspect(bed.log.lines));
    assertEquals([bed.applied, bed.log.lines[0]?.level], [[], "error"]);
    if (what !== "is missing") Deno.removeSync(bed.folder.file("KV_AUTH"), { recursive: true });
    bed.folder.write("KV_AUTH", OLD);
    await bed.logged(REJECTED, "KV_AUTH_FILE can be used again");
    assertEquals(bed.applied, []);
    assertEquals(/pa55word/.test(Deno.inspect(bed.log.lines, { depth: 9 })), false);
  });
}
