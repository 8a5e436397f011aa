import { errorText } from "../../base/error_text.ts";
import { hostPort } from "../../base/host_port.ts";
import { withTimeout } from "../../base/wait.ts";
import type { ServerChecks } from "../server_checks.ts";
import type { KvLogin } from "./address.ts";
import { KvClient } from "./client.ts";
import type { KvConnectorOptions, KvRoute } from "./connector.ts";
import { ReplyError, shortened } from "./resp.ts";

/** How a connection is made usable. */
export interface KvConnectionOptions extends KvLogin {
  readonly connector: KvConnectorOptions;
  readonly database: number;
  /** Refuse a server that reports that it is a replica. */
  readonly primaryOnly: boolean;
  /** Shared by the connections to one cache. */
  readonly checks: ServerChecks;
  /** As `KvConnections.retryDelayMs`. */
  readonly retryDelayMs: (attempt: number, reason: string) => number | null;
}

/** What the owner of a connection is notified of. */
export interface KvConnectionEvents {
  /** It is usable, in the right database. */
  ready(): void;
  /** It is gone, or an attempt failed; it is made again unless it was closed. What was written was answered. */
  lost(reason: string): void;
}

/** How a server refuses a login that it does not require. */
const LOGIN_NOT_REQUIRED =
  /no password is set|without any password configured|wrong number of arguments for 'auth'/;

/** Errors that say that the server cannot count now, whatever the command. */
const CANNOT_COUNT = /^(?:NOAUTH|LOADING|MASTERDOWN|READONLY|DENIED)\b|max number of clients/;
/** The wait before a server is checked in another way. */
const SOON_MS = 10;
/** No counter has this key: every counter ends with the start of its window. */
const PROBE = ["EXPIRE", "weir:connection_check", "1"];

/** One connection to a node, made again whenever it is lost. */
export class KvConnection {
  readonly #options: KvConnectionOptions;
  readonly #events: KvConnectionEvents;
  readonly #client: KvClient;
  /** Where the latest attempt leads. */
  #address = "";
  #attempts = 0;
  /** The server was asked for its state and has not answered: the next attempt asks another way. */
  #isAsking = false;
  #isReady = false;
  #isClosed = false;

  constructor(options: KvConnectionOptions, events: KvConnectionEvents) {
    const { connector, retryDelayMs } = options;
    this.#options = options;
    this.#events = events;
    this.#client = new KvClient({
      connector: { ...connector, locate: (signal) => this.#locate(signal) },
      retryDelayMs: (reason) => this.#isAsking ? SOON_MS : retryDelayMs(++this.#attempts, reason),
      onConnected: () => void this.#prepare(),
      onClosed: (reason) => {
        this.#isReady = false;
        // A server that does not know the command is asked another way first.
        if (!this.#isClosed && !this.#isAsking) events.lost(reason);
      },
    });
  }

  get reason(): string {
    return this.#client.reason;
  }

  get isUsable(): boolean {
    return this.#isReady && this.#client.isConnected;
  }

  /** Writes commands; `answered` is called with their replies, or with errors for those that did not come. */
  write(...commands: Parameters<KvClient["write"]>): void {
    this.#client.write(...commands);
  }

  /** Sends one command, behind whatever is in flight. */
  command(...command: Parameters<KvClient["command"]>): Promise<unknown> {
    return this.#client.command(...command);
  }

  /** Makes it again, which resolves its name again. */
  renew(reason: string): void {
    if (this.#isReady) this.#client.drop(reason);
  }

  close(): void {
    this.#isClosed = true;
    this.#isReady = false;
    this.#client.close();
  }

  async #prepare(): Promise<void> {
    const { timeoutMs, clock } = this.#options.connector;
    try {
      await withTimeout(this.#logInAndSelect(), timeoutMs, clock, () => {
        // A server that hangs is asked again: it may know the command.
        this.#isAsking = false;
        return new Error(noAnswer(timeoutMs));
      });
    } catch (error) {
      this.#client.drop(shortened(errorText(error)));
      return;
    }
    if (this.#isClosed || !this.#client.isConnected) return;
    this.#attempts = 0;
    this.#isReady = true;
    this.#events.ready();
  }

  async #logInAndSelect(): Promise<void> {
    const { database } = this.#options;
    await logIn(this.#client, this.#options);
    await this.#checkServer();
    if (database === 0) return;
    await this.#client.command(["SELECT", String(database)]).catch((error: unknown) => {
      throw new Error(`database ${database} was refused: ${errorText(error)}`);
    });
  }

  async #locate(signal: AbortSignal): Promise<KvRoute> {
    this.#isAsking = false;
    const route = await this.#options.connector.locate(signal);
    this.#address = "path" in route.target ? route.target.path : hostPort(route.target);
    return route;
  }

  /** A server that does not report its state, such as a proxy, is checked by a command that counting requires. */
  async #checkServer(): Promise<void> {
    const { checks } = this.#options;
    const address = this.#address;
    const skipped = checks.skipped(address);
    const state = skipped === undefined ? await this.#askState(address) : { unknown: skipped };
    if (typeof state === "string") return this.#checkState(state);
    await this.#client.command(PROBE).catch((error: unknown) => {
      if (!(error instanceof ReplyError)) checks.ask(address);
      throwUnlessUnknown(error);
    });
    checks.passed(address, state.unknown);
  }

  async #askState(address: string): Promise<string | { readonly unknown: string }> {
    try {
      this.#isAsking = true;
      const state = String(await this.#client.command(["INFO"]));
      this.#isAsking = false;
      this.#options.checks.answered(address);
      return state;
    } catch (error) {
      const unknown = `INFO: ${shortened(errorText(error))}`;
      if (error instanceof ReplyError) this.#isAsking = false;
      else if (this.#isAsking) this.#options.checks.skip(address, unknown);
      throwUnlessUnknown(error);
      return { unknown };
    }
  }

  #checkState(text: string): void {
    const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, "m").exec(text)?.[1];
    const role = field("role") ?? "master";
    // Another connection, because the name may resolve to another server by now.
    if ((field("loading") ?? "0") !== "0") throw new Error("the server is loading its data");
    if (this.#options.primaryOnly && role !== "master") {
      throw new Error(`the server is no primary but a ${role}`);
    }
  }
}

/** A server that does not know a command, or does not allow it, can still count. */
function throwUnlessUnknown(error: unknown): void {
  if (!(error instanceof ReplyError) || CANNOT_COUNT.test(error.message)) throw error;
}

/** Logs in where a password is given; a server that requires none is fine. */
export async function logIn(client: KvClient, { username, password }: KvLogin): Promise<void> {
  if (password === undefined) return;
  try {
    await client.command(["AUTH", ...(username === undefined ? [] : [username]), password]);
  } catch (error) {
    const text = errorText(error);
    if (!LOGIN_NOT_REQUIRED.test(text)) throw new Error(withoutPassword(text, password));
  }
}

/** The error of a server that does not know the command repeats its arguments, of a long one only the begin. */
function withoutPassword(text: string, password: string): string {
  const shown = text.replace(/, with args beginning with.*$/s, "");
  return password === "" ? shown : shown.replaceAll(password, "(value not shown)");
}

/** The text of a timeout. */
export function noAnswer(timeoutMs: number): string {
  return `no answer within ${timeoutMs} ms`;
}
