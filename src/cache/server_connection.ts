import type { Buffer } from "node:buffer";
import type { Duplex } from "node:stream";
import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { type DialAddress, hostPort } from "../base/host_port.ts";
import { dial } from "../net/dial.ts";
import type { PooledConnection } from "../net/pool.ts";
import { unlessAborted, withTimeout } from "../base/wait.ts";
import { readTlsFiles, type TlsFiles } from "./tls_files.ts";

/** Options of a connection to be opened. */
interface OpeningOptions {
  readonly target: DialAddress;
  /** Files for TLS, read at each attempt; no TLS when absent. */
  readonly tls: TlsFiles | undefined;
  /** Of reading the files, of the connection with its handshake, and of the greeting; for each of them. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called with the stream while it is being opened. */
  readonly onStream?: ((stream: Duplex) => void) | undefined;
}

/** Makes an open stream a usable connection. */
interface Greeting<C> {
  /** `lost` is called once when the connection ends. */
  create(stream: Duplex, lost: (reason: string) => void): C;
  greet(greeted: Greeted<C>): Promise<void>;
}

/** An open connection that is not usable yet. */
export interface Greeted<C> {
  readonly connection: C;
  readonly address: string;
  /** The attempt was given up. */
  isOver: boolean;
}

/** A connection that was open for this long has worked. */
export const SETTLED_MS = 1_000;
/** A write that waits for replies, at least one. */
interface PendingWrite<Reply> {
  readonly expected: number;
  readonly replies: Reply[];
  readonly answered: (replies: readonly Reply[]) => void;
}

/** Longest text of a server that reaches callers and logs, in characters. */
const MAX_TEXT = 200;

/** A text of a server, cut where it is too long to report. */
export function shortened(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`;
}

/** The text of a timeout. */
export function noAnswer(timeoutMs: number): string {
  return `no answer within ${timeoutMs} ms`;
}

/** An open connection to a server. Writes do not wait for one another; replies come in their order. */
export class ServerConnection<Reply> implements PooledConnection {
  readonly #stream: Duplex;
  readonly #lost: (reason: string) => void;
  /** The writes whose replies are not complete, in their order. */
  #pending: PendingWrite<Reply | Error>[] = [];
  #reason: string | undefined;
  #isUnreadable = false;

  /**
   * `read` passes on each complete reply, and throws when the bytes are not the protocol. `lost` is called once when the
   * connection ends, after everything that was written was answered.
   */
  constructor(
    stream: Duplex,
    lost: (reason: string) => void,
    read: (bytes: Buffer, onReply: (reply: Reply) => void) => void,
  ) {
    this.#stream = stream;
    this.#lost = lost;
    const onReply = (reply: Reply) => this.#take(reply);
    stream.on("data", (bytes: Buffer) => {
      try {
        read(bytes, onReply);
      } catch (error) {
        this.#isUnreadable = true;
        this.close(errorText(error));
      }
    });
    stream.on("error", (error) => this.close(shortened(error.message)));
    stream.on("close", () => this.close("the connection was closed"));
    if (stream.destroyed) this.#reason = "the connection was closed";
  }

  get isUsable(): boolean {
    return this.#reason === undefined;
  }

  /** Why it ended; empty before. */
  get reason(): string {
    return this.#reason ?? "";
  }

  /** It ended because the server speaks another protocol. */
  get isUnreadable(): boolean {
    return this.#isUnreadable;
  }

  /**
   * Writes commands, a text with one character a byte. `answered` gets their replies in order; where the connection ends
   * before, errors are in place of the missing ones. `written` is called when the data may be used for something else.
   */
  send(
    data: Uint8Array | string,
    replies: number,
    answered: (replies: readonly (Reply | Error)[]) => void,
    written?: (data: Uint8Array) => void,
  ): void {
    if (!this.isUsable) return answered(new Array<Error>(replies).fill(new Error(this.reason)));
    this.#pending.push({ expected: replies, replies: [], answered });
    if (typeof data === "string") this.#stream.write(data, "latin1");
    else this.#stream.write(data, () => written?.(data));
  }

  close(reason: string): void {
    if (!this.isUsable) return;
    this.#reason = reason;
    // A peer that does not answer would keep it, and the program, for a while.
    this.#stream.destroy();
    const pending = this.#pending;
    this.#pending = [];
    for (const { expected, replies, answered } of pending) {
      const missing = new Array<Error>(expected - replies.length).fill(new Error(reason));
      answered([...replies, ...missing]);
    }
    this.#lost(reason);
  }

  #take(reply: Reply): void {
    const oldest = this.#pending[0];
    if (oldest !== undefined) {
      if (oldest.replies.push(reply) < oldest.expected) return;
      this.#pending.shift();
      oldest.answered(oldest.replies);
    } else if (this.isUsable) {
      throw new Error(`it sent ${JSON.stringify(shortened(errorText(reply)))} without a command`);
    }
  }
}

/**
 * Opens a connection and greets the server, which only proves itself by an answer: one that hangs accepts connections
 * too. Rejects with the reason; `lost` is called once when the connection ends after that.
 */
export async function openServerConnection<
  C extends Pick<ServerConnection<never>, "isUsable" | "reason" | "close">,
>(
  options: OpeningOptions,
  { create, greet }: Greeting<C>,
  lost: (reason: string) => void,
): Promise<C> {
  const { target, timeoutMs, clock, signal } = options;
  const stream = await openStream(options);
  let isOpen = false;
  const connection = create(stream, (reason) => isOpen && lost(reason));
  const address = "path" in target ? target.path : hostPort(target);
  const greeted: Greeted<C> = { connection, address, isOver: false };
  try {
    await withTimeout(unlessAborted(greet(greeted), signal), timeoutMs, clock, () => {
      return new Error(noAnswer(timeoutMs));
    });
    isOpen = connection.isUsable;
    if (isOpen) return connection;
    throw new Error(connection.reason);
  } catch (error) {
    greeted.isOver = true;
    connection.close(errorText(error));
    throw error;
  }
}

/** Opens a stream; rejects with the reason. */
async function openStream(options: OpeningOptions): Promise<Duplex> {
  const { target, tls: files, timeoutMs, clock, signal, onStream } = options;
  const secure = files === undefined ? undefined : await withTimeout(
    unlessAborted(readTlsFiles(files), signal),
    timeoutMs,
    clock,
    () => new Error(`the files of ${files.settings}_* were not read within ${timeoutMs} ms`),
  );
  return await dial(target, { tls: secure, timeoutMs, clock, signal, onStream });
}
