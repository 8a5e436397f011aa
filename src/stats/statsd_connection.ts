import type { Duplex } from "node:stream";
import type { Clock } from "../base/clock.ts";
import { settledWithin } from "../base/wait.ts";
import { dial } from "../net/dial.ts";

/** Timeouts; that of connecting includes the lookup of the name. */
const CONNECT_MS = 5_000;
const WRITE_MS = 30_000;
const CLOSE_MS = 500;

/** The receiver of a connection. */
interface StatsdConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
}

/** One connection to a receiver of statistics, which sends nothing. */
export class StatsdConnection {
  readonly #clock: Clock;
  readonly #socket: Duplex;
  /** Called once, with the reason. */
  readonly #lost: (reason: string) => void;
  readonly #closed = Promise.withResolvers<void>();
  #isEnded = false;

  /** Connects with a timeout; `lost` is called once when the connection ends after that. */
  static async open(
    { host, port, clock }: StatsdConnectionOptions,
    lost: (reason: string) => void,
    signal: AbortSignal,
  ): Promise<StatsdConnection> {
    const socket = await dial({ host, port }, { signal, clock, timeoutMs: CONNECT_MS }).catch((error) => {
      throw new Error(reasonOf(error), { cause: error });
    });
    return new StatsdConnection(socket, clock, lost);
  }

  private constructor(socket: Duplex, clock: Clock, lost: (reason: string) => void) {
    this.#socket = socket;
    this.#clock = clock;
    this.#lost = lost;
    // A socket may fail more than once.
    socket.on("error", (error) => this.close(reasonOf(error)));
    socket.on("end", () => this.close("it closed the connection"));
    socket.on("close", () => {
      this.close("it closed the connection");
      this.#closed.resolve();
    });
    socket.resume(); // unread bytes would hide the end of the connection
  }

  /** Writes a text, one at a time; returns whether the system accepted it, waiting for a slow receiver. */
  async write(text: string): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#socket.write(text, () => resolve()); // also called for a failure
    const isWritten = await settledWithin(
      Promise.race([promise, this.#closed.promise]),
      WRITE_MS,
      this.#clock,
    );
    if (!isWritten) this.close(`it took nothing for ${WRITE_MS} ms`);
    return !this.#isEnded;
  }

  /** Ends it once the receiver has what was written, with a timeout. */
  async finish(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#socket.end(resolve); // also called when it is closed before
    await settledWithin(promise, CLOSE_MS, this.#clock);
  }

  close(reason: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#socket.destroy();
    this.#lost(reason);
  }
}

/** The error of a name with several addresses has no message. */
function reasonOf(error: unknown): string {
  const { message = "", code, name } = Object(error);
  return message === "" ? String(code ?? name) : message;
}
