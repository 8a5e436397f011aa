import type { Duplex } from "node:stream";
import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import type { DialAddress } from "../../base/host_port.ts";
import { unlessAborted } from "../../base/wait.ts";
import { type ServerChecks, UnreportedState, untilStateIsKnown } from "../server_checks.ts";
import { type Greeted, openServerConnection, shortened } from "../server_connection.ts";
import type { Credential } from "../../net/credential.ts";
import type { TlsFiles } from "../tls_files.ts";
import type { KvLogin } from "./address.ts";
import { KvConnection } from "./connection.ts";
import { ReplyError } from "./resp.ts";

/** The place that one connection leads to. */
export interface KvRoute {
  readonly target: DialAddress;
  /** Called with the stream while it is being opened. */
  readonly onStream?: (stream: Duplex) => void;
}

/** Options of a connection to be opened. */
export interface KvOpening {
  readonly login: Credential<KvLogin>;
  /** Finds the server; called at each attempt. */
  readonly locate: (signal: AbortSignal) => Promise<KvRoute>;
  readonly tls: TlsFiles | undefined;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Requirements of a usable connection. */
interface KvGreeting {
  readonly database: number;
  /** Refuse a server that reports that it is a replica. */
  readonly primaryOnly: boolean;
  /** Shared by the connections to one cache. */
  readonly checks: ServerChecks;
}

/** Errors of a server that requires no login. */
const LOGIN_NOT_REQUIRED =
  /no password is set|without any password configured|wrong number of arguments for 'auth'/;
/** Errors that say that the server cannot count now, whatever the command. */
const CANNOT_COUNT = /^(?:NOAUTH|LOADING|MASTERDOWN|READONLY|DENIED)\b|max number of clients/;
/** No counter has this key: every counter ends with the start of its window. */
const PROBE = ["EXPIRE", "weir:connection_check", "1"];
/**
 * Opens a connection that is logged in, in the right database, to a server that can count. Rejects with the reason;
 * `lost` is called once when it ends after that.
 */
export function openKvConnection(
  options: KvOpening & KvGreeting,
  lost: (reason: string) => void,
  signal: AbortSignal,
): Promise<KvConnection> {
  return untilStateIsKnown(() => openKvSession(options, lost, signal, (greeted) => greet(greeted, options)));
}

/** Opens a connection that is logged in, and greets the server. */
export async function openKvSession(
  options: KvOpening,
  lost: (reason: string) => void,
  signal: AbortSignal,
  greet: (greeted: Greeted<KvConnection>) => Promise<void> = () => Promise.resolve(),
): Promise<KvConnection> {
  const route = await unlessAborted(options.locate(signal), signal);
  const { tls, timeoutMs, clock } = options;
  return await openServerConnection({ ...route, tls, timeoutMs, clock, signal }, {
    create: (stream, ended) => new KvConnection(stream, ended),
    async greet(greeted) {
      await options.login.logIn((login) => logIn(greeted.connection, login), isRefusal);
      await greet(greeted);
    },
  }, lost);
}

/** Logs in where a password is given; a server that requires none is fine. */
async function logIn(connection: KvConnection, { username, password }: KvLogin): Promise<void> {
  if (password === undefined) return;
  try {
    await connection.command(["AUTH", ...(username === undefined ? [] : [username]), password]);
  } catch (error) {
    const text = errorText(error);
    if (LOGIN_NOT_REQUIRED.test(text)) return;
    const shown = withoutPassword(text, password);
    throw error instanceof ReplyError ? new ReplyError(shown) : new Error(shown);
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof ReplyError;
}

/** The error of a server that does not know the command repeats its arguments, of a long one only the begin. */
function withoutPassword(text: string, password: string): string {
  const shown = text.replace(/, with args beginning with.*$/s, "");
  return shortened(password === "" ? shown : shown.replaceAll(password, "(value not shown)"));
}

async function greet(greeted: Greeted<KvConnection>, options: KvGreeting): Promise<void> {
  await checkServer(greeted, options);
  const { database } = options;
  if (database === 0) return;
  await greeted.connection.command(["SELECT", String(database)]).catch((error: unknown) => {
    throw new Error(shortened(`database ${database} was refused: ${errorText(error)}`));
  });
}

/** A server that does not report its state, such as a proxy, is checked by a command that counting requires. */
async function checkServer(
  greeted: Greeted<KvConnection>,
  { checks, primaryOnly }: KvGreeting,
): Promise<void> {
  const { address, connection } = greeted;
  const skipped = checks.skipped(address);
  const state = skipped === undefined ? await askState(greeted, checks) : { unknown: skipped };
  if (typeof state === "string") return checkState(state, primaryOnly);
  await connection.command(PROBE).catch((error: unknown) => {
    if (!(error instanceof ReplyError)) checks.ask(address);
    throwUnlessUnknown(error);
  });
  checks.passed(address, state.unknown);
}

async function askState(
  greeted: Greeted<KvConnection>,
  checks: ServerChecks,
): Promise<string | { readonly unknown: string }> {
  const { address, connection } = greeted;
  try {
    const state = String(await connection.command(["INFO"]));
    checks.answered(address);
    return state;
  } catch (error) {
    const unknown = `INFO: ${shortened(errorText(error))}`;
    // A server that hangs is asked again: it may know the command.
    if (!(error instanceof ReplyError || greeted.isOver || connection.isUnreadable)) {
      checks.skip(address, unknown);
      throw new UnreportedState(errorText(error));
    }
    throwUnlessUnknown(error);
    return { unknown };
  }
}

function checkState(text: string, primaryOnly: boolean): void {
  const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, "m").exec(text)?.[1];
  const role = field("role") ?? "master";
  // Another connection, because the name may resolve to another server by now.
  if ((field("loading") ?? "0") !== "0") throw new Error("the server is loading its data");
  if (primaryOnly && role !== "master") throw new Error(`the server is no primary but a ${role}`);
}

/** A server that does not know a command, or does not allow it, can still count. */
function throwUnlessUnknown(error: unknown): void {
  if (!(error instanceof ReplyError) || CANNOT_COUNT.test(error.message)) throw error;
}
