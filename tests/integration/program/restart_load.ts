import { encodeRateLimitRequest } from "../../../src/wire/rls.ts";
import { RestartConnection } from "../../harness/restart_connection.ts";

/** Pause of a caller after each answer, so that the load leaves the machine room to start processes. */
const PAUSE_MS = 5;
const ANSWERS_DEADLINE_MS = 120_000;

/** Callers of one service that never stop asking, until the end of an `await using`. */
export abstract class RestartLoad implements AsyncDisposable {
  /** Calls with the expected answer. */
  answered = 0;
  /** Calls that the server said it had not begun, and that were sent again. */
  retried = 0;
  /** Connections that ended before the server said a word: no call had been sent on them. */
  resets = 0;
  /** Calls that came to anything else, each with what it came to. */
  readonly failures: string[] = [];
  protected isGoing = true;
  #callers: Promise<unknown> = Promise.resolve();

  /** Starts so many callers, or as many as there are options for. */
  protected start(callers: readonly (() => Promise<void>)[]): this {
    this.#callers = Promise.all(callers.map((call) => call()));
    return this;
  }

  /** Waits a moment after an answer. */
  protected async pause(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }

  /** Waits for that many more answers. */
  async answers(more: number): Promise<void> {
    const goal = this.answered + more;
    const end = performance.now() + ANSWERS_DEADLINE_MS;
    while (this.answered < goal) {
      if (performance.now() > end) throw new Error(`Cannot wait for ${more} answers: ${this.toString()}`);
      await this.pause();
    }
  }

  toString(): string {
    const { answered, retried, resets, failures } = this;
    const counts = { answered, retried, resets, failed: failures.length };
    return `${JSON.stringify(counts)} ${failures.slice(0, 3).join(" | ")}`;
  }

  /** Ends the load; every call that was begun is counted. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.isGoing = false;
    await this.#callers;
  }
}

/** Calls in flight on each connection. */
const CALLS_AT_ONCE = 3;
/** Calls after which a connection that is renewed is given up. */
const CALLS_PER_RENEWAL = 10;
/** Number of times that one call is sent, and a connection for it is opened, before it counts as failed. */
const MAX_SENDS = 5;

/** Callers of a gRPC port that leave when they are asked to: some keep their connection, some renew it. */
export class FrameLoad extends RestartLoad {
  readonly #address: string;

  constructor(address: string) {
    super();
    this.#address = address;
    const calls = [...Array<number>(4).fill(Infinity), ...Array<number>(2).fill(CALLS_PER_RENEWAL)];
    this.start(calls.map((each) => () => this.#keep(each)));
  }

  /** One connection after the other, each for that many calls or as long as the server keeps it. */
  async #keep(callsEach: number): Promise<void> {
    while (this.isGoing) {
      const connection = await RestartConnection.open(this.#address);
      if (connection === undefined) {
        this.resets++;
        continue;
      }
      const left = { calls: callsEach };
      await Promise.all(Array.from({ length: CALLS_AT_ONCE }, () => this.#ask(connection, left)));
      connection.close();
    }
  }

  async #ask(connection: RestartConnection, left: { calls: number }): Promise<void> {
    while (this.isGoing && connection.usable && left.calls-- > 0) {
      await this.#call(connection);
      await this.pause();
    }
  }

  async #call(first: RestartConnection): Promise<void> {
    let connection: RestartConnection | undefined = first;
    for (let sends = 1; connection !== undefined && sends <= MAX_SENDS; sends++) {
      const outcome = await connection.call(REQUEST);
      if (connection !== first) connection.close();
      if (outcome.kind === "answer") return void this.answered++;
      if (outcome.kind === "broken") return void this.failures.push(outcome.why);
      this.retried++;
      connection = await this.#reopened();
    }
    this.failures.push("refused, and never accepted after that");
  }

  async #reopened(): Promise<RestartConnection | undefined> {
    let connection: RestartConnection | undefined;
    for (let attempts = 1; connection === undefined && attempts <= MAX_SENDS; attempts++) {
      connection = await RestartConnection.open(this.#address);
      if (connection === undefined) this.resets++;
    }
    return connection;
  }
}

const REQUEST = encodeRateLimitRequest({
  domain: "shop",
  hitsAddend: 0,
  descriptors: [{ entries: [{ key: "user", value: "bob" }] }],
});
