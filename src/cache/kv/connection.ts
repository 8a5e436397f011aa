import type { Duplex } from "node:stream";
import { ServerConnection } from "../server_connection.ts";
import { respArgument, respCommand, RespReader } from "./resp.ts";

/** Commands in the form of the protocol. */
export interface KvCommands {
  readonly data: Uint8Array;
  /** The number of replies that they bring. */
  readonly replies: number;
  /** Called when the data may be used for something else. */
  readonly written?: (data: Uint8Array) => void;
}

/** A connection to a server of the Redis protocol. Its replies are texts, numbers, `null`, lists and `ReplyError`s. */
export class KvConnection extends ServerConnection<unknown> {
  constructor(stream: Duplex, lost: (reason: string) => void) {
    const reader = new RespReader();
    super(stream, lost, (bytes, onReply) => reader.read(bytes, onReply));
  }

  write({ data, replies, written }: KvCommands, answered: (replies: readonly unknown[]) => void): void {
    this.send(data, replies, answered, written);
  }

  /**
   * Sends one command behind those that were written, with `asking` after an ASKING; rejects with `ReplyError` for an
   * error of the server.
   */
  command([name = "", ...args]: readonly string[], { asking = false } = {}): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const command = respCommand(name, ...args.map(respArgument));
      const data = asking ? new Uint8Array([...respCommand("ASKING"), ...command]) : command;
      this.send(data, asking ? 2 : 1, (replies) => {
        const reply = replies.at(-1);
        if (reply instanceof Error) reject(reply);
        else resolve(reply);
      });
    });
  }
}
