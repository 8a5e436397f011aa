import { createHash } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { fileState } from "../base/file_state.ts";
import type { Logger } from "../base/log.ts";
import { settledWithin } from "../base/wait.ts";
import { WakeLoop } from "../base/wake_loop.ts";
import { type NamedToken, namedTokensProblem, parseNamedToken } from "../settings/administrator_tokens.ts";

interface TokensFileOptions {
  readonly path: string;
  /** The tokens of the settings, which those of the file are added to. */
  readonly configured: readonly NamedToken[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called with all tokens, at first and after each change. */
  readonly onTokens: (tokens: readonly NamedToken[]) => void;
}

const MAX_BYTES = 1024 * 1024;
/** Polled instead of watched: a store in a watched folder loses its locks. */
const POLL_MS = 2_000;
/** How long `close` waits for a file system that hangs. */
const CLOSE_MS = 1_000;
/** The permissions of others than the owner and the group. */
const OTHERS = 0o007;

/**
 * `ADMIN_TOKENS_FILE`, read again and again. An unusable file is logged once, and the previous tokens stay. A file without
 * tokens revokes those that it had, once it was seen twice without a change in between: an editor may truncate a file
 * before it writes it.
 */
export class TokensFile {
  readonly #options: TokensFileOptions;
  readonly #loop: WakeLoop;
  #looking = Promise.resolve();
  #isOpenToOthers = false;
  /** What the last look saw. */
  #seen = "";
  /** The content, or the error, that was applied or logged. */
  #concluded = "";

  /** Reads the first tokens; throws when the file is unusable. */
  static async open(options: TokensFileOptions): Promise<TokensFile> {
    const file = new TokensFile(options);
    const { tokens, content } = await file.#read();
    file.#apply(tokens);
    file.#concluded = content;
    file.#loop.start();
    return file;
  }

  private constructor(options: TokensFileOptions) {
    this.#options = options;
    const round = () => this.look().then(() => false);
    this.#loop = new WakeLoop({ clock: options.clock, pollMs: POLL_MS, round });
  }

  /** Looks at the file, after a look that is under way. Never rejects. */
  look(): Promise<void> {
    return this.#looking = this.#looking.then(() => this.#look());
  }

  async close(): Promise<void> {
    await settledWithin(this.#loop.stop(), CLOSE_MS, this.#options.clock);
  }

  /** Compares contents, because a change may keep the size and the time of a file. */
  async #look(): Promise<void> {
    const { path, logger } = this.#options;
    const state = await fileState(path);
    const { tokens, content, error } = await this.#read().catch((error: unknown) => {
      return { tokens: undefined, content: `unusable: ${errorText(error)}`, error };
    });
    if (!this.#loop.isRunning) return;
    const before = this.#seen;
    this.#seen = `${state} ${content}`;
    if (content === this.#concluded) return;
    if (tokens?.length === 0 && before !== this.#seen) return;
    this.#concluded = content;
    if (tokens === undefined) {
      logger.error("Reload of ADMIN_TOKENS_FILE rejected; keeping the previous tokens", { error });
      return;
    }
    this.#apply(tokens);
    logger.info("Administration tokens reloaded", { file: path, tokens: tokens.length });
  }

  #apply(tokens: readonly NamedToken[]): void {
    const { path, configured, logger, onTokens } = this.#options;
    if (tokens.length === 0) {
      logger.warning("ADMIN_TOKENS_FILE has no tokens; those that it had are revoked", { file: path });
    }
    onTokens([...configured, ...tokens]);
  }

  /** The tokens of the file, and a digest of its content. The error names the file and the line, never a token. */
  async #read(): Promise<{ tokens: readonly NamedToken[]; content: string; error?: undefined }> {
    const { path, configured } = this.#options;
    try {
      const { isFile, size, mode } = await Deno.stat(path);
      // Reading a named pipe may never end.
      if (!isFile) throw new Error("it is no file");
      if (size > MAX_BYTES) throw new Error("it has more than 1 MiB");
      const text = await Deno.readTextFile(path);
      const content = createHash("sha256").update(text).digest("hex");
      const tokens = tokensOf(text);
      const problem = namedTokensProblem([...configured, ...tokens]);
      if (problem !== undefined) throw new Error(problem);
      this.#warnOfMode(mode);
      return { tokens, content };
    } catch (error) {
      const text = `Invalid ADMIN_TOKENS_FILE ${JSON.stringify(path)}: ${errorText(error)}`;
      throw new Error(text, { cause: error });
    }
  }

  #warnOfMode(mode: number | null): void {
    const isOpen = mode !== null && (mode & OTHERS) !== 0;
    if (isOpen && !this.#isOpenToOthers) {
      const found = (mode & 0o777).toString(8);
      this.#options.logger.warning(
        `ADMIN_TOKENS_FILE is open to others, mode ${found}, expected 640 or 600`,
        { file: this.#options.path },
      );
    }
    this.#isOpenToOthers = isOpen;
  }
}

/** One token a line; empty lines and those that begin with `#` are skipped. */
function tokensOf(text: string): readonly NamedToken[] {
  const tokens: NamedToken[] = [];
  for (const [index, raw] of text.split("\n").entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) continue;
    const parsed = parseNamedToken(line);
    if ("expected" in parsed) throw new Error(`line ${index + 1}: expected ${parsed.expected}`);
    tokens.push(parsed.value);
  }
  return tokens;
}
