import { join } from "node:path";
import { errorText } from "../base/error_text.ts";
import { isJsonObject, type JsonObject, type JsonValue, parseJson } from "../base/exact_json.ts";
import type { AdministrationCall } from "./administration_call.ts";
import {
  CommandError,
  type CommandFlag,
  type CommandOptions,
  environmentSecret,
  type GivenFlags,
  readText,
} from "./command.ts";
import { parseHttpUrl } from "../settings/address_parsers.ts";
import { WEBHOOK_TABLE } from "../settings/webhook_table.ts";
import { FlagError, parseTimeout } from "./flags.ts";
import { plainText, shortened } from "./plain_text.ts";

/** The flags of every command over the administration. */
export const TARGET_FLAGS: Readonly<Record<string, CommandFlag>> = {
  url: {
    value: "URL",
    doc: `URL of the service (default $WEIR_URL, else ${WEBHOOK_TABLE.WEIR_URL.default})`,
  },
  "token-file": {
    value: "FILE",
    doc: "file with the token (default $ADMIN_TOKEN, else data/admin-token for a service on this machine)",
  },
  timeout: { value: "DURATION", doc: "timeout of each request (default 30s)" },
};

/** The file in which `deno task start` keeps its token. */
const START_TOKEN_FILE = "data/admin-token";
const TIMEOUT_MS = 30_000;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;
const TOKEN = /^[\x21-\x7e]+$/;

/** A service to call. */
interface Target {
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
    timeoutMs: flags.value("timeout", parseTimeout) ?? TIMEOUT_MS,
  };
}

function urlOf(flags: GivenFlags, { environment }: CommandOptions): URL {
  const given = flags.text("url");
  const name = given === undefined ? "WEIR_URL" : "--url";
  const text = given ?? (environmentSecret(environment, "WEIR_URL") ?? WEBHOOK_TABLE.WEIR_URL.default);
  const parsed = parseHttpUrl(text);
  // The text may hold a password, so it is not shown.
  if ("expected" in parsed) throw new FlagError(`Invalid ${name}: expected ${parsed.expected}`);
  const url = new URL(parsed.value);
  if (url.username !== "" || url.password !== "") {
    throw new FlagError(`Invalid ${name}: expected no user name and password`);
  }
  if (url.search !== "" || url.hash !== "") {
    throw new FlagError(`Invalid ${name}: expected a URL without ? and #`);
  }
  return url;
}

async function tokenOf(flags: GivenFlags, url: URL, options: CommandOptions): Promise<string> {
  const file = flags.text("token-file");
  if (file !== undefined) return checked((await readText(file, options)).trim(), `"${file}"`);
  const token = environmentSecret(options.environment, "ADMIN_TOKEN");
  if (token !== undefined) return checked(token, "ADMIN_TOKEN");
  const isLocal = LOOPBACK.test(url.hostname);
  const kept = isLocal ? await startToken(options.folder ?? ".") : undefined;
  if (kept !== undefined) return checked(kept, `"${START_TOKEN_FILE}"`);
  const missing = isLocal ? `; this folder has no ${START_TOKEN_FILE}` : "";
  throw new FlagError(`Cannot call the administration API: set ADMIN_TOKEN or --token-file${missing}`);
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
  const state = token === "" ? "it is empty" : "it holds a character that no token may have";
  throw new FlagError(`Invalid token of ${source}: ${state}`);
}

/** An answer of the administration. */
export interface AdministrationAnswer {
  /** As it came; empty for none. */
  readonly text: string;
  /** The object that the text is; an empty one for none. */
  readonly record: JsonObject;
}

const MAX_ANSWER_BYTES = 256 * 1_024 * 1_024;
const MAX_DETAIL = 1_000;

/**
 * Makes a call of the administration. Throws a `CommandError` of one line when there is no answer, or one that is not
 * 2xx; the line holds neither token nor body.
 */
export async function callAdministration(
  words: string,
  target: Target,
  call: AdministrationCall,
): Promise<AdministrationAnswer> {
  // Loaded here, so that the service starts without it.
  const { RestError, send } = await import("../rest/mod.ts");
  const { url, token, timeoutMs } = target;
  const request = {
    method: call.method,
    baseURL: `${url}/api/v1${call.path}`,
    headers: { ...call.headers, authorization: `Bearer ${token}`, accept: "application/json" },
    queryParams: call.query,
    body: call.body,
  };
  // A redirect would send the token elsewhere.
  const options = {
    totalTimeoutMs: timeoutMs,
    redirect: "manual",
    maxResponseBytes: MAX_ANSWER_BYTES,
  } as const;
  const response = await send(request, options).catch((error: unknown) => {
    // A header that cannot be sent is a flag.
    const isUsage = error instanceof RestError && error.code === "invalid_header";
    throw new CommandError(plainText(errorText(error)), { cause: error, isUsage });
  });
  const { statusCode, body } = response;
  const record = objectOf(body);
  if (statusCode < 200 || statusCode > 299) {
    // The service checks the values of arguments and flags.
    const isUsage = statusCode === 400 || statusCode === 422;
    throw new CommandError(refusalLine(words, statusCode, record), { isUsage });
  }
  if (record === undefined && body !== "") {
    throw new CommandError(`Cannot run "${words}": the answer of ${url} is not an object of JSON`);
  }
  return { text: body, record: record ?? {} };
}

function refusalLine(words: string, status: number, problem: JsonObject | undefined): string {
  const text = (name: string) => {
    const value = problem?.[name];
    return typeof value === "string" && value !== "" ? shortened(plainText(value), MAX_DETAIL) : undefined;
  };
  const code = text("code");
  const detail = text("detail") ?? text("title") ?? "not an answer of Weir";
  const field = text("field");
  const facts = [
    ...(field === undefined || detail.includes(`"${field}"`) ? [] : [`field "${field}"`]),
    ...(text("requestId") === undefined ? [] : [`request ${text("requestId")}`]),
  ];
  const tail = facts.length === 0 ? "" : ` (${facts.join(", ")})`;
  const name = [status, ...(code === undefined ? [] : [code])].join(" ");
  return `Cannot run "${words}": ${name}: ${detail}${tail}${hint(status, code, detail)}`;
}

/** The answer of the service for each path while the API is disabled there. */
const UNKNOWN_PATH = "Cannot find this path";

/** The likely cause, where the answer does not name it. */
function hint(status: number, code: string | undefined, detail: string): string {
  if (status === 401) return "; ADMIN_TOKEN or --token-file differs from the token of the service";
  if (status === 404 && (code !== "not_found" || detail === UNKNOWN_PATH)) {
    return "; set ADMIN_TOKEN for the service, and --url to its ADMIN_ADDR if that is set";
  }
  return "";
}

function objectOf(text: string): JsonObject | undefined {
  try {
    const value: JsonValue = parseJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
