import { assertEquals, assertRejects } from "#assert";
import { join } from "node:path";
import { TokensFile } from "../../../src/serve/tokens_file.ts";
import type { NamedToken } from "../../../src/settings/administrator_tokens.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";
import { eventually, until } from "../../harness/until.ts";

const CONFIGURED: NamedToken = { name: "admin", role: "admin", token: "the-token-of-the-setting" };
const SECRET = "d5f1c0c2b7a94e6f8d3b";

/** A file of tokens; closed and removed at the end of its block. */
class Bed implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly log = new RecordedLogger();
  readonly path: string;
  /** The names that were applied, at first and after each change. */
  readonly applied: string[] = [];
  /** The last token of each of them. */
  readonly tokens: string[] = [];
  readonly #folder: string;
  #file: TokensFile | undefined;

  constructor(text: string) {
    this.#folder = Deno.makeTempDirSync({ prefix: "weir_tokens_" });
    this.path = join(this.#folder, "tokens");
    Deno.writeTextFileSync(this.path, text, { mode: 0o600 });
  }

  async open(): Promise<void> {
    const { clock, log: logger, path, applied } = this;
    const onTokens = (tokens: readonly NamedToken[]) => {
      applied.push(tokens.map(({ name, role }) => `${name}:${role}`).join(" "));
      this.tokens.push(tokens.at(-1)?.token ?? "");
    };
    this.#file = await TokensFile.open({ path, configured: [CONFIGURED], clock, logger, onTokens });
  }

  /** Replaces the file and waits until it was read. */
  async replace(text: string): Promise<void> {
    const { length } = this.applied;
    const lines = this.log.lines.length;
    Deno.writeTextFileSync(`${this.path}.new`, text, { mode: 0o600 });
    Deno.renameSync(`${this.path}.new`, this.path);
    await this.until(() => this.applied.length > length || this.log.lines.length > lines);
  }

  /** Lets time pass until the condition holds. */
  async until(condition: () => boolean): Promise<void> {
    await until("a look at the file", () => {
      this.clock.advance(1_000);
      return condition();
    }, { intervalMs: 5 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file?.close();
    await Deno.remove(this.#folder, { recursive: true });
  }
}

Deno.test("ADMIN_TOKENS_FILE: comments and empty lines are skipped; a change is applied", async () => {
  await using bed = new Bed(`# people\n\n  alice:admin:${SECRET}1  \r\n# machines\nci:read:${SECRET}2\n`);
  await bed.open();
  await bed.replace(`ci:admin:${SECRET}2\n`);
  assertEquals(bed.applied, ["admin:admin alice:admin ci:read", "admin:admin ci:admin"]);
});

Deno.test("ADMIN_TOKENS_FILE: an unusable change is logged without a token, and the previous tokens stay", async () => {
  await using bed = new Bed(`ci:read:${SECRET}\n`);
  await bed.open();
  await bed.replace(`ci:owner:${SECRET}\n`);
  assertEquals(bed.applied, ["admin:admin ci:read"]);
  const texts = bed.log.lines.map(({ message }) => message);
  assertEquals(texts, Array(1).fill("Reload of ADMIN_TOKENS_FILE rejected; keeping the previous tokens"));
  assertEquals(Deno.inspect(bed.log.lines, { depth: 9 }).includes(SECRET), false);
  await bed.replace(`ci:admin:${SECRET}\n`);
  assertEquals(bed.applied.at(-1), "admin:admin ci:admin");
});

const UNUSABLE: readonly (readonly [title: string, text: string, reason: string])[] = [
  ["a wrong line", `ci:read:${SECRET}\nalice:${SECRET}x\n`, "line 2: expected name:role:token"],
  ["the name of ADMIN_TOKEN", `admin:read:${SECRET}\n`, 'two tokens have the name "admin"'],
  ["a token twice", `a:read:${SECRET}\nb:read:${SECRET}\n`, '"a" and "b" have the same token'],
];

for (const [title, text, reason] of UNUSABLE) {
  Deno.test(`ADMIN_TOKENS_FILE: the service does not start with ${title}`, async () => {
    await using bed = new Bed(text);
    const { message } = await assertRejects(() => bed.open());
    assertEquals(message.startsWith(`Invalid ADMIN_TOKENS_FILE "${bed.path}": ${reason}`), true, message);
    assertEquals(message.includes(SECRET), false);
  });
}

const ONE = `ci:read:${SECRET}\n`;
const OTHER = `ci:read:${SECRET.slice(0, -1)}x\n`;
const HELD = "admin:admin ci:read";
const REVOKED = "admin:admin";
const REJECTED = "Reload of ADMIN_TOKENS_FILE rejected; keeping the previous tokens";

const write = (text: string) => (path: string) => Deno.writeTextFileSync(path, text);

/** Changes of a file with one token, after which it has none. */
const REVOKING: Readonly<Record<string, (path: string) => void>> = {
  "the last token is removed": write(""),
  "only a comment is left": write("# none\n"),
  "a link leads to an empty file": (path) => {
    Deno.removeSync(path);
    write("")(`${path}.target`);
    Deno.symlinkSync(`${path}.target`, path);
  },
};

for (const [what, change] of Object.entries(REVOKING)) {
  Deno.test(`ADMIN_TOKENS_FILE: ${what}`, async () => {
    await using bed = new Bed(ONE);
    await bed.open();
    change(bed.path);
    await bed.until(() => bed.applied.length > 1);
    await bed.replace(ONE);
    assertEquals(bed.applied, [HELD, REVOKED, HELD]);
  });
}

/** Changes of a file with one token that reject it. */
const REJECTING: Readonly<Record<string, (path: string) => void>> = {
  "the file is missing": Deno.removeSync,
  "a folder is in its place": (path) => (Deno.removeSync(path), Deno.mkdirSync(path)),
  "a link that leads nowhere": (path) => (Deno.removeSync(path), Deno.symlinkSync(`${path}.target`, path)),
};

for (const [what, change] of Object.entries(REJECTING)) {
  Deno.test(`ADMIN_TOKENS_FILE: ${what}, and then an empty file`, async () => {
    await using bed = new Bed(ONE);
    await bed.open();
    change(bed.path);
    await bed.until(() => bed.log.lines.length > 0);
    assertEquals([bed.applied, bed.log.lines.map(({ message }) => message)], [[HELD], [REJECTED]]);
    await Deno.remove(bed.path).catch(() => {});
    write("")(bed.path);
    await bed.until(() => bed.applied.length > 1);
    assertEquals(bed.applied, [HELD, REVOKED]);
  });
}

Deno.test("ADMIN_TOKENS_FILE: an editor truncates the file before it writes it", async () => {
  await using bed = new Bed(ONE);
  await bed.open();
  write("")(bed.path);
  // The look that sees it has begun at the latest when the next one is due.
  bed.clock.advance(1_000);
  await eventually(true, () => bed.clock.waiting > 1);
  write(ONE)(bed.path);
  await bed.replace(OTHER);
  assertEquals(bed.applied, [HELD, HELD]);
});

const REPLACED: Readonly<Record<string, (path: string, text: string) => void>> = {
  "the same size, and the time of the file before": (path, text) => {
    const { mtime } = Deno.statSync(path);
    Deno.writeTextFileSync(path, text);
    Deno.utimeSync(path, mtime ?? 0, mtime ?? 0);
  },
  "a file that is moved there": (path, text) => {
    Deno.writeTextFileSync(`${path}.new`, text);
    Deno.renameSync(`${path}.new`, path);
  },
  "a file that was unreadable before with that content": (path, text) => {
    Deno.removeSync(path);
    Deno.writeTextFileSync(`${path}.target`, text);
    Deno.symlinkSync(`${path}.target`, path);
  },
};

for (const [what, replace] of Object.entries(REPLACED)) {
  Deno.test(`ADMIN_TOKENS_FILE: a changed token of ${what}`, async () => {
    await using bed = new Bed(ONE);
    await bed.open();
    replace(bed.path, OTHER);
    await bed.until(() => bed.applied.length > 1);
    assertEquals([bed.applied, bed.tokens.at(-1)], [[HELD, HELD], OTHER.trim().slice("ci:read:".length)]);
  });
}

Deno.test("ADMIN_TOKENS_FILE: the service starts with a file without tokens, and applies the first one", async () => {
  await using bed = new Bed("# none yet\n");
  await bed.open();
  await bed.replace(ONE);
  assertEquals(bed.applied, [REVOKED, HELD]);
  assertEquals(bed.log.lines[0]?.message, "ADMIN_TOKENS_FILE has no tokens; those that it had are revoked");
});

Deno.test("ADMIN_TOKENS_FILE: the service does not start without the file, and warns of one that others can read", async () => {
  await using bed = new Bed(`ci:read:${SECRET}\n`);
  await Deno.chmod(bed.path, 0o644);
  await bed.open();
  assertEquals(bed.log.lines.map(({ message }) => message), [
    "ADMIN_TOKENS_FILE is open to others, mode 644, expected 640 or 600",
  ]);
  await using missing = new Bed("");
  await Deno.remove(missing.path);
  const { message } = await assertRejects(() => missing.open());
  assertEquals(
    message.startsWith(`Invalid ADMIN_TOKENS_FILE "${missing.path}": No such file`),
    true,
    message,
  );
});
