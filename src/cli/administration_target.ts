import { join } from "node:path";
import { errorText } from "../base/error_text.ts";
import { parseHttpUrl } from "../settings/address_parsers.ts";
import { WEBHOOK_TABLE } from "../settings/webhook_table.ts";
import type { CommandFlag, GivenFlags } from "./command.ts";
import { CommandError, type CommandOptions, readText } from "./command_input.ts";
import { FlagError } from "./flags.ts";
import { readTimeout } from "./timeout_flag.ts";

/** The flags by which commands over the administration find the service. */
export const TARGET_FLAGS: Readonly<Record<string, CommandFlag>> = {
  url: { value: "URL", doc: `the service (default $WEIR_URL, else ${WEBHOOK_TABLE.WEIR_URL.default})` },
  "token-file": {
    value: "FILE",
    doc: "file of the token (default $ADMIN_TOKEN, else data/admin-token for a service of this machine)",
  },
  timeout: { value: "DURATION", doc: "how long to wait for an answer (default 30s)" },
};

/** Where `deno task start` keeps its token. */
const START_TOKEN_FILE = "data/admin-token";
const DEFAULT_TIMEOUT = "30s";
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
/** What a header can carry. */
const TOKEN = /^[\x21-\x7e]+$/;

/** A service to call. */
export interface Target {
  /** Without a slash at its end. */
  readonly url: string;
  readonly token: string;
  readonly timeoutMs: number;
}

/** Finds the service and the token. Throws a `FlagError` for what is wrong, and never shows a token. */
export async function findTarget(flags: GivenFlags, options: CommandOptions): Promise<Target> {
  const url = urlOf(flags, options);
  return {
    url: url.href.replace(/\/+$/, ""),
    token: await tokenOf(flags, url, options),
    timeoutMs: readTimeout(flags.text("timeout") ?? DEFAULT_TIMEOUT),
  };
}

function urlOf(flags: GivenFlags, { environment }: CommandOptions): URL {
  const given = flags.text("url");
  const name = given === undefined ? "WEIR_URL" : "-url";
  const text = given ?? (environment["WEIR_URL"] || WEBHOOK_TABLE.WEIR_URL.default);
  const parsed = parseHttpUrl(text);
  // What is refused may hold a password, so it is not shown.
  if ("expected" in parsed) throw new FlagError(`Invalid ${name}: expected ${parsed.expected}`);
  const url = new URL(parsed.value);
  if (url.username !== "" || url.password !== "") {
    throw new FlagError(
      `Cannot use ${name}: it holds a user name or password, and a token is what is wanted`,
    );
  }
  if (url.search !== "" || url.hash !== "") {
    throw new FlagError(`Cannot use ${name}: a URL without ? and # would be right`);
  }
  return url;
}

async function tokenOf(flags: GivenFlags, url: URL, options: CommandOptions): Promise<string> {
  const file = flags.text("token-file");
  if (file !== undefined) return checked((await readText(file, options)).trim(), `"${file}"`);
  const token = options.environment["ADMIN_TOKEN"] ?? "";
  if (token !== "") return checked(token, "ADMIN_TOKEN");
  const kept = LOOPBACK.test(url.hostname) ? await startToken(options.folder ?? ".") : undefined;
  if (kept !== undefined) return checked(kept, `"${START_TOKEN_FILE}"`);
  throw new FlagError("Cannot call the administration: ADMIN_TOKEN is not set, and no -token-file is named");
}

async function startToken(folder: string): Promise<string | undefined> {
  try {
    return (await Deno.readTextFile(join(folder, START_TOKEN_FILE))).trim();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw new CommandError(`Cannot read "${START_TOKEN_FILE}": ${errorText(error)}`, { cause: error });
  }
}

function checked(token: string, source: string): string {
  if (TOKEN.test(token)) return token;
  const state = token === "" ? "it is empty" : "it holds a character that no token has";
  throw new FlagError(`Cannot use the token of ${source}: ${state}`);
}
