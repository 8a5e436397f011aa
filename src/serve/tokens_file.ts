import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
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

/** `ADMIN_TOKENS_FILE`, read again after each change. An unusable file is logged once, and the previous tokens stay. */
export class TokensFile {
  readonly #options: TokensFileOptions;
  readonly #loop: WakeLoop;
  /** The state of the file that was read last. */
  #state = "";

  /** Reads the first tokens; throws when the file is unusable. */
  static async open(options: TokensFileOptions): Promise<TokensFile> {
    const file = new TokensFile(options);
    file.#state = await stateOf(options.path);
    options.onTokens(await file.#read());
    file.#loop.start();
    return file;
  }

  private constructor(options: TokensFileOptions) {
    this.#options = options;
    this.#loop = new WakeLoop({ clock: options.clock, pollMs: POLL_MS, round: () => this.#look() });
  }

  async close(): Promise<void> {
    await settledWithin(this.#loop.stop(), CLOSE_MS, this.#options.clock);
  }

  async #look(): Promise<boolean> {
    const { path, logger, onTokens } = this.#options;
    const state = await stateOf(path);
    if (state === this.#state) return false;
    this.#state = state;
    try {
      const tokens = await this.#read();
      if (!this.#loop.isRunning) return false;
      onTokens(tokens);
      logger.info("Administration tokens reloaded", { file: path, tokens: tokens.length });
    } catch (error) {
      logger.error("Reload of ADMIN_TOKENS_FILE rejected; keeping the previous tokens", { error });
    }
    return false;
  }

  /** All tokens. The error names the file and the line, never a token. */
  async #read(): Promise<readonly NamedToken[]> {
    const { path, configured, logger } = this.#options;
    try {
      const { isFile, size, mode } = await Deno.stat(path);
      // Reading a named pipe may never end.
      if (!isFile) throw new Error("it is no file");
      if (size > MAX_BYTES) throw new Error("it has more than 1 MiB");
      const tokens = tokensOf(await Deno.readTextFile(path));
      const problem = namedTokensProblem([...configured, ...tokens]);
      if (problem !== undefined) throw new Error(problem);
      if (mode !== null && (mode & OTHERS) !== 0) {
        const found = (mode & 0o777).toString(8);
        logger.warning(`ADMIN_TOKENS_FILE is open to others, mode ${found}, expected 640 or 600`, {
          file: path,
        });
      }
      return [...configured, ...tokens];
    } catch (error) {
      const text = `Invalid ADMIN_TOKENS_FILE ${JSON.stringify(path)}: ${errorText(error)}`;
      throw new Error(text, { cause: error });
    }
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
  // A file that is being written may be empty.
  if (tokens.length === 0) throw new Error("it holds no token; expected one a line");
  return tokens;
}

/** A text that changes whenever the file is replaced or written to. */
async function stateOf(path: string): Promise<string> {
  try {
    const { ino, size, mtime } = await Deno.stat(path);
    return `${ino} ${size} ${mtime?.getTime()}`;
  } catch {
    return "missing";
  }
}
