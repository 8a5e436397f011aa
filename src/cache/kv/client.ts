import type { Buffer } from "node:buffer";
import { Redis } from "ioredis";
import { errorText } from "../../base/error_text.ts";
import { ReplyQueue } from "../reply_queue.ts";
import { KvConnector, type KvConnectorOptions } from "./connector.ts";
import { respArgument, respCommand, RespReader, shortened } from "./resp.ts";

/** How a client connects, and who is notified of it. */
export interface KvClientOptions {
  readonly connector: KvConnectorOptions;
  /** Wait before the next attempt to connect, or `null` for no more of them; `reason` is why the last one ended. */
  readonly retryDelayMs: (reason: string) => number | null;
  readonly onConnected: () => void;
  /** The connection is gone, or an attempt to connect failed. */
  readonly onClosed: (reason: string) => void;
}

/** Commands in the form of the protocol. */
export interface KvCommands {
  readonly data: Uint8Array;
  /** How many replies they bring. */
  readonly replies: number;
  /** Called when the data may be used for something else. */
  readonly written?: (data: Uint8Array) => void;
}

/**
 * A client of ioredis that connects and reconnects, and whose stream is written and read here: a command
 * object for each command would cost half as much CPU again. What this relies on is in
 * `tests/integration/cache/kv_client_test.ts`.
 */
export class KvClient {
  readonly #client: Redis;
  readonly #options: KvClientOptions;
  readonly #queue = new ReplyQueue<unknown>();
  #stream: Redis["stream"] | undefined;
  #reason = "";
  /** `onClosed` was called before the end of the stream was reported. */
  #isClosureReported = false;

  constructor(options: KvClientOptions) {
    const { connector } = options;
    this.#options = options;
    const client = this.#client = new Redis({
      Connector: class extends KvConnector {
        constructor() {
          super(connector);
        }
      },
      // The connector has the options of TLS; here it only selects the event of the stream to wait for.
      ...(connector.tls === undefined ? {} : { tls: {} }),
      protocol: 2,
      lazyConnect: true,
      enableReadyCheck: false,
      disableClientInfo: true,
      // The connector limits the time to connect.
      connectTimeout: 0,
      retryStrategy: () => options.retryDelayMs(this.reason),
    });
    client.on("connect", () => this.#takeStream());
    client.on("error", (error: Error) => {
      this.#reason = shortened(error.message);
      this.drop(this.#reason);
    });
    client.on("close", () => {
      if (this.#isClosureReported) this.#isClosureReported = false;
      else this.#closed();
      this.#reason = "";
    });
    client.connect().catch(() => {});
  }

  get isConnected(): boolean {
    return this.#stream !== undefined;
  }

  /** Why there is no connection, or why the last one ended. */
  get reason(): string {
    return this.#reason === "" ? "the connection was closed" : this.#reason;
  }

  /**
   * Writes commands. `answered` gets their replies in order, errors among them; where the connection ends before,
   * errors that are no `ReplyError` are in place of the missing ones.
   */
  write({ data, replies, written }: KvCommands, answered: (replies: readonly unknown[]) => void): void {
    if (this.#stream === undefined) return answered(new Array<Error>(replies).fill(new Error(this.reason)));
    this.#queue.push(replies, answered);
    this.#stream.write(data, () => written?.(data));
  }

  /**
   * Sends one command behind those that were written, with `asking` after an ASKING; rejects with `ReplyError` for an
   * error of the server.
   */
  command([name = "", ...args]: readonly string[], { asking = false } = {}): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const command = respCommand(name, ...args.map(respArgument));
      const data = asking ? new Uint8Array([...respCommand("ASKING"), ...command]) : command;
      this.write({ data, replies: asking ? 2 : 1 }, (replies) => {
        const reply = replies.at(-1);
        if (reply instanceof Error) reject(reply);
        else resolve(reply);
      });
    });
  }

  /** Ends the connection; the client connects again. */
  drop(reason: string): void {
    if (this.#stream === undefined) return;
    this.#reason = reason;
    this.#isClosureReported = true;
    this.#stream.destroy();
    this.#closed();
  }

  close(): void {
    this.#client.disconnect();
  }

  /** The client has sent nothing by now, so that each reply from here on belongs to this queue. */
  #takeStream(): void {
    const { stream } = this.#client;
    if (stream.destroyed) return;
    const reader = new RespReader();
    stream.removeAllListeners("data");
    stream.on("data", (bytes: Buffer) => this.#read(stream, reader, bytes));
    this.#stream = stream;
    this.#options.onConnected();
  }

  #read(stream: Redis["stream"], reader: RespReader, bytes: Buffer): void {
    try {
      reader.read(bytes, (reply) => {
        if (this.#stream !== stream || this.#queue.take(reply)) return;
        throw new Error(`it sent ${JSON.stringify(shortened(errorText(reply)))} without a command`);
      });
    } catch (error) {
      if (this.#stream === stream) this.drop(errorText(error));
    }
  }

  #closed(): void {
    this.#stream = undefined;
    this.#queue.fill(new Error(this.reason));
    this.#options.onClosed(this.reason);
  }
}
