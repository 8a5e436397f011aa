import { encodeRateLimitRequest } from "../../src/wire/rls.ts";
import type { CallLog } from "./call_log.ts";
import { RestartConnection } from "./restart_connection.ts";

/** How much a load asks, and over which connections. */
export interface RestartLoadOptions {
  /** Connections that are kept for as long as the server wants them. */
  readonly kept: number;
  /** Connections that are given up and opened again after some calls. */
  readonly renewed: number;
}

/** Calls in flight on each connection. */
const CALLS_AT_ONCE = 3;
/** Calls after which a connection that is renewed is given up. */
const CALLS_PER_RENEWAL = 10;
/** Pause of a caller after each answer, so that the load leaves the machine room to start processes. */
const PAUSE_MS = 5;
/** How often one call is sent, and a connection for it is opened, before it counts as failed. */
const MAX_SENDS = 5;

/** Callers of one address that never stop asking, until the end of an `await using`. */
export class RestartLoad implements AsyncDisposable {
  readonly #address: string;
  readonly #log: CallLog;
  readonly #callers: Promise<void>;
  #going = true;

  constructor(address: string, log: CallLog, { kept, renewed }: RestartLoadOptions) {
    this.#address = address;
    this.#log = log;
    const callers = [
      ...Array.from({ length: kept }, () => this.#keep(Infinity)),
      ...Array.from({ length: renewed }, () => this.#keep(CALLS_PER_RENEWAL)),
    ];
    this.#callers = Promise.all(callers).then(() => {});
  }

  /** Ends the load; every call that was begun is counted. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#going = false;
    await this.#callers;
  }

  /** One connection after the other, each for that many calls or as long as the server wants it. */
  async #keep(callsEach: number): Promise<void> {
    while (this.#going) {
      const connection = await RestartConnection.open(this.#address);
      if (connection === undefined) {
        this.#log.resets++;
        continue;
      }
      const left = { calls: callsEach };
      await Promise.all(Array.from({ length: CALLS_AT_ONCE }, () => this.#ask(connection, left)));
      connection.close();
    }
  }

  async #ask(connection: RestartConnection, left: { calls: number }): Promise<void> {
    while (this.#going && connection.usable && left.calls-- > 0) {
      await this.#call(connection);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  async #call(first: RestartConnection): Promise<void> {
    let connection: RestartConnection | undefined = first;
    for (let sends = 1; connection !== undefined && sends <= MAX_SENDS; sends++) {
      const outcome = await connection.call(REQUEST);
      if (connection !== first) connection.close();
      if (outcome.kind === "answer" && outcome.status === "0") return void this.#log.answered++;
      if (outcome.kind === "answer") return void this.#log.failures.push(`status ${outcome.status}`);
      if (outcome.kind === "broken") return void this.#log.failures.push(outcome.why);
      this.#log.retried++;
      connection = await this.#reopened();
    }
    this.#log.failures.push("refused, and nobody took it after that");
  }

  async #reopened(): Promise<RestartConnection | undefined> {
    let connection: RestartConnection | undefined;
    for (let attempts = 1; connection === undefined && attempts <= MAX_SENDS; attempts++) {
      connection = await RestartConnection.open(this.#address);
      if (connection === undefined) this.#log.resets++;
    }
    return connection;
  }
}

const REQUEST = encodeRateLimitRequest({
  domain: "shop",
  hitsAddend: 0,
  descriptors: [{ entries: [{ key: "user", value: "bob" }] }],
});
