import { createHash } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import type { Logger } from "../base/log.ts";
import { fileState, WatchedFiles } from "../threads/watched_files.ts";
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
/** An editor may truncate a file before it writes it: a file that changes is applied this long after the last change. */
const SETTLE_MS = 1_000;
/** The permissions of others than the owner and the group. */
const OTHERS = 0o007;

/** The content of a file. */
interface TokensReading {
  readonly tokens: readonly NamedToken[];
  /** Of the content. */
  readonly digest: string;
}

/**
 * `ADMIN_TOKENS_FILE`, without a bell: a store in a watched folder loses its locks. An unusable file is logged once, and
 * the previous tokens stay. A file without tokens revokes those that it had.
 */
export class TokensFile {
  readonly #options: TokensFileOptions;
  readonly #watched: WatchedFiles;
  /** The content at the last look. */
  #reading: TokensReading | Error = new Error("it was not read");
  /** The digest, or the error, that was applied or logged. */
  #concluded = "";
  #isOpenToOthers = false;

  /** Reads the first tokens; throws when the file is unusable. */
  static async open(options: TokensFileOptions): Promise<TokensFile> {
    const file = new TokensFile(options);
    const reading = await file.#read();
    if (reading instanceof Error) throw reading;
    file.#apply(reading.tokens);
    file.#concluded = reading.digest;
    await file.#watched.start();
    return file;
  }

  private constructor(options: TokensFileOptions) {
    this.#options = options;
    this.#watched = new WatchedFiles({
      look: () => this.#look(),
      onChange: () => Promise.resolve(this.#conclude()),
      clock: options.clock,
      lookMs: SETTLE_MS,
      settleMs: SETTLE_MS,
    });
  }

  async close(): Promise<void> {
    await this.#watched.close();
  }

  /** Includes the content, because a change may keep the size and the time of a file. */
  async #look(): Promise<string> {
    const state = await fileState(this.#options.path);
    this.#reading = await this.#read();
    return `${state} ${digestOf(this.#reading)}`;
  }

  #conclude(): false {
    const { path, logger } = this.#options;
    const reading = this.#reading;
    const digest = digestOf(reading);
    if (digest === this.#concluded) return false;
    this.#concluded = digest;
    if (reading instanceof Error) {
      logger.error("Reload of ADMIN_TOKENS_FILE rejected; keeping the previous tokens", { error: reading });
      return false;
    }
    this.#apply(reading.tokens);
    logger.info("Administration tokens reloaded", { file: path, tokens: reading.tokens.length });
    return false;
  }

  #apply(tokens: readonly NamedToken[]): void {
    const { path, configured, logger, onTokens } = this.#options;
    if (tokens.length === 0) {
      logger.warning("ADMIN_TOKENS_FILE has no tokens; those that it had are revoked", { file: path });
    }
    onTokens([...configured, ...tokens]);
  }

  /** The tokens of the file, or an error that names the file and the line, never a token. */
  async #read(): Promise<TokensReading | Error> {
    const { path, configured } = this.#options;
    try {
      const { isFile, size, mode } = await Deno.stat(path);
      // Reading a named pipe may never end.
      if (!isFile) throw new Error("it is no file");
      if (size > MAX_BYTES) throw new Error("it has more than 1 MiB");
      const text = await Deno.readTextFile(path);
      const tokens = tokensOf(text);
      const problem = namedTokensProblem([...configured, ...tokens]);
      if (problem !== undefined) throw new Error(problem);
      this.#warnOfMode(mode);
      return { tokens, digest: createHash("sha256").update(text).digest("hex") };
    } catch (error) {
      const text = `Invalid ADMIN_TOKENS_FILE ${JSON.stringify(path)}: ${errorText(error)}`;
      return new Error(text, { cause: error });
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

function digestOf(reading: TokensReading | Error): string {
  return reading instanceof Error ? reading.message : reading.digest;
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
