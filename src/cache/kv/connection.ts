import { errorText } from "../../base/error_text.ts";
import { withTimeout } from "../../base/wait.ts";
import type { KvLogin } from "./address.ts";
import { KvClient } from "./client.ts";
import type { KvConnectorOptions } from "./connector.ts";
import { shortened } from "./resp.ts";

/** How a connection is made usable. */
export interface KvConnectionOptions extends KvLogin {
  readonly connector: KvConnectorOptions;
  readonly database: number;
  /** Refuse a server that reports that it is a replica. */
  readonly primaryOnly: boolean;
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

/** One connection to a node, made again whenever it is lost. */
export class KvConnection {
  readonly #options: KvConnectionOptions;
  readonly #events: KvConnectionEvents;
  readonly #client: KvClient;
  #attempts = 0;
  #isReady = false;
  #isClosed = false;

  constructor(options: KvConnectionOptions, events: KvConnectionEvents) {
    const { connector, retryDelayMs } = options;
    this.#options = options;
    this.#events = events;
    this.#client = new KvClient({
      connector,
      retryDelayMs: (reason) => retryDelayMs(++this.#attempts, reason),
      onConnected: () => void this.#prepare(),
      onClosed: (reason) => {
        this.#isReady = false;
        if (!this.#isClosed) events.lost(reason);
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
      await withTimeout(this.#logInAndSelect(), timeoutMs, clock, () => new Error(noAnswer(timeoutMs)));
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

  async #checkServer(): Promise<void> {
    const text = await this.#client.command(["INFO"]).catch((error: Error) => {
      // A user that may count need not be allowed to read the state.
      if (error.message.startsWith("NOPERM")) return "";
      throw error;
    });
    const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, "m").exec(String(text))?.[1];
    const role = field("role") ?? "master";
    // Another connection, because the name may resolve to another server by now.
    if ((field("loading") ?? "0") !== "0") throw new Error("the server is loading its data");
    if (this.#options.primaryOnly && role !== "master") {
      throw new Error(`the server is no primary but a ${role}`);
    }
  }
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
