import type { Buffer } from "node:buffer";
import type net from "node:net";
import { errorText } from "../../base/error_text.ts";
import type { PooledConnection } from "../../base/pool.ts";
import { ReplyQueue } from "../reply_queue.ts";
import { respArgument, respCommand, RespReader, shortened } from "./resp.ts";

/** Commands in the form of the protocol. */
export interface KvCommands {
  readonly data: Uint8Array;
  /** How many replies they bring. */
  readonly replies: number;
  /** Called when the data may be used for something else. */
  readonly written?: (data: Uint8Array) => void;
}

/** An open connection to a server. Writes do not wait for one another; replies come in their order. */
export class KvConnection implements PooledConnection {
  readonly #stream: net.Socket;
  readonly #lost: (reason: string) => void;
  readonly #queue = new ReplyQueue<unknown>();
  #reason: string | undefined;

  /** `lost` is called once when the connection ends, after everything that was written was answered. */
  constructor(stream: net.Socket, lost: (reason: string) => void) {
    this.#stream = stream;
    this.#lost = lost;
    const reader = new RespReader();
    stream.on("data", (bytes: Buffer) => this.#read(reader, bytes));
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

  /**
   * Writes commands. `answered` gets their replies in order, errors among them; where the connection ends before,
   * errors that are no `ReplyError` are in place of the missing ones.
   */
  write({ data, replies, written }: KvCommands, answered: (replies: readonly unknown[]) => void): void {
    if (!this.isUsable) return answered(new Array<Error>(replies).fill(new Error(this.reason)));
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

  close(reason: string): void {
    if (!this.isUsable) return;
    this.#reason = reason;
    // A peer that does not answer would keep it, and the program, for a while.
    this.#stream.destroy();
    this.#queue.fill(new Error(reason));
    this.#lost(reason);
  }

  #read(reader: RespReader, bytes: Buffer): void {
    try {
      reader.read(bytes, (reply) => {
        if (!this.isUsable || this.#queue.take(reply)) return;
        throw new Error(`it sent ${JSON.stringify(shortened(errorText(reply)))} without a command`);
      });
    } catch (error) {
      this.close(errorText(error));
    }
  }
}

/** The text of a timeout. */
export function noAnswer(timeoutMs: number): string {
  return `no answer within ${timeoutMs} ms`;
}
