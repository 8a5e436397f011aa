import { assertEquals, assertRejects } from "@std/assert";
import { join } from "node:path";
import { TokensFile } from "../../../src/serve/tokens_file.ts";
import type { NamedToken } from "../../../src/settings/administrator_tokens.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { KeptLog } from "../../harness/http_fixture.ts";
import { until } from "../../harness/until.ts";

const CONFIGURED: NamedToken = { name: "admin", role: "admin", token: "the-token-of-the-setting" };
const SECRET = "d5f1c0c2b7a94e6f8d3b";

/** A file of tokens; closed and removed at the end of its block. */
class Bed implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly log = new KeptLog();
  readonly path: string;
  /** The names that were applied, at first and after each change. */
  readonly applied: string[] = [];
  readonly #folder: string;
  #file: TokensFile | undefined;

  constructor(text: string) {
    this.#folder = Deno.makeTempDirSync({ prefix: "weir_tokens_" });
    this.path = join(this.#folder, "tokens");
    Deno.writeTextFileSync(this.path, text, { mode: 0o600 });
  }

  async open(): Promise<void> {
    const { clock, log: logger, path, applied } = this;
    const onTokens = (tokens: readonly NamedToken[]) =>
      void applied.push(tokens.map(({ name, role }) => `${name}:${role}`).join(" "));
    this.#file = await TokensFile.open({ path, configured: [CONFIGURED], clock, logger, onTokens });
  }

  /** Replaces the file and waits until it was read. */
  async replace(text: string): Promise<void> {
    const { length } = this.applied;
    const lines = this.log.lines.length;
    Deno.writeTextFileSync(`${this.path}.new`, text, { mode: 0o600 });
    Deno.renameSync(`${this.path}.new`, this.path);
    await until("a look at the file", () => {
      this.clock.advance(2_000);
      return this.applied.length > length || this.log.lines.length > lines;
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
  await bed.replace("");
  await bed.replace(`ci:owner:${SECRET}\n`);
  assertEquals(bed.applied, ["admin:admin ci:read"]);
  const texts = bed.log.lines.map(({ message }) => message);
  assertEquals(texts, Array(2).fill("Reload of ADMIN_TOKENS_FILE rejected; keeping the previous tokens"));
  assertEquals(Deno.inspect(bed.log.lines, { depth: 9 }).includes(SECRET), false);
  await bed.replace(`ci:admin:${SECRET}\n`);
  assertEquals(bed.applied.at(-1), "admin:admin ci:admin");
});

const UNUSABLE: readonly (readonly [title: string, text: string, reason: string])[] = [
  ["no token", "# nothing yet\n", "it holds no token; expected one a line"],
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
