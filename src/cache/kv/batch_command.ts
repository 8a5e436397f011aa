import type { Redis } from "ioredis";

/** What becomes of a write: every answer in the order of the commands, errors among them. */
export interface WriteResult {
  answered(replies: unknown[]): void;
}

/**
 * Writes commands that are already in the form of the protocol, as one piece. The client is given one
 * command object for all of them, queued once for each answer: an object for each command would cost
 * more than everything else of a decision. This leans on the form of the client's own commands, which
 * is why its version is pinned.
 */
export function writeBatch(
  client: Redis,
  batch: { text: string; replies: number },
  result: WriteResult,
): void {
  const command = new BatchCommand(batch, result);
  const stream = {
    isPipeline: true,
    destination: { redis: client },
    write: (text: string) => {
      if (text !== "") (client as unknown as ClientInternals).stream.write(text, "latin1");
    },
  };
  const { sendCommand } = client as unknown as ClientInternals;
  for (let reply = 0; reply < batch.replies && !command.settled; reply++) {
    sendCommand.call(client, command, stream);
  }
}

interface ClientInternals {
  readonly stream: { write(text: string, encoding: "latin1"): void };
  sendCommand(command: BatchCommand, stream: unknown): unknown;
}

class BatchCommand {
  readonly name = "incrby";
  readonly args: readonly string[] = [];
  readonly isTraced = true;
  readonly inTransaction = false;
  readonly promise = undefined;
  settled = false;
  #text: string;
  readonly #wanted: number;
  readonly #replies: unknown[] = [];
  readonly #result: WriteResult;

  constructor({ text, replies }: { text: string; replies: number }, result: WriteResult) {
    this.#text = text;
    this.#wanted = replies;
    this.#result = result;
  }

  /** Everything goes out with the first of the queued entries. */
  toWritable(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }

  resolve(reply: unknown): void {
    if (this.#replies.push(reply) < this.#wanted) return;
    this.settled = true;
    this.#result.answered(this.#replies);
  }

  reject(error: unknown): void {
    this.resolve(error instanceof Error ? error : new Error(String(error)));
  }

  setTimeout(): void {}
  setBlockingTimeout(): void {}
  extractBlockingTimeout(): undefined {
    return undefined;
  }
  getKeys(): readonly string[] {
    return [];
  }
}
