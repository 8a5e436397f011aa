import type { Redis } from "ioredis";
import { errorText } from "../../base/error_text.ts";
import { writeBatch } from "./batch_command.ts";
import { shortened } from "./resp.ts";

/** What a connection tells its owner. */
export interface KvConnectionEvents {
  /** It can be used, in the right database. */
  ready(connection: KvConnection): void;
  /** It is gone; it is made anew unless it was closed. Whatever was written on it gets no answer. */
  lost(connection: KvConnection, reason: string): void;
}

/** One connection to a node. It carries one batch at a time, and is made anew whenever it is lost. */
export class KvConnection {
  readonly #client: Redis;
  readonly #database: number;
  readonly #events: KvConnectionEvents;
  #usable = false;
  #closed = false;
  /** It was told already, before the end of the stream was. */
  #isLossTold = false;
  #reason = "";

  /** `client` is not connected yet, and is owned from now on. */
  constructor(client: Redis, options: { readonly database: number; readonly events: KvConnectionEvents }) {
    this.#client = client;
    this.#database = options.database;
    this.#events = options.events;
    client.on("ready", () => this.#select());
    client.on("error", (error: Error) => this.#failed(error));
    client.on("close", () => this.#ended());
    // Why an attempt failed is told by the event; attempts go on.
    client.connect().catch(() => {});
  }

  /** Why it is not there, as far as that is known. */
  get reason(): string {
    return this.#reason === "" ? "the connection was closed" : this.#reason;
  }

  /** Whether something can be written now. */
  get usable(): boolean {
    return this.#usable && this.#client.status === "ready";
  }

  /** Writes commands; `answered` is called with all answers in their order, or never when it is lost. */
  write(batch: { text: string; replies: number }, answered: (replies: readonly unknown[]) => void): void {
    writeBatch(this.#client, batch, { answered });
  }

  /** Sends one command, behind whatever is under way. */
  command(args: readonly string[]): Promise<unknown> {
    const [name = "", ...rest] = args;
    return this.#client.call(name, ...rest);
  }

  /** Makes it anew: its name is resolved again, and nobody waits for a peer that does not answer. */
  renew(reason: string): void {
    if (!this.#usable) return;
    this.#reason = reason;
    this.#isLossTold = true;
    const { stream } = this.#client as unknown as { readonly stream: { destroy(): void } };
    stream.destroy();
    this.#lost();
  }

  /** A connection that says something is wrong while it is used may be out of step with its answers. */
  #failed(error: Error): void {
    this.#reason = shortened(error.message);
    this.renew(this.#reason);
  }

  #ended(): void {
    if (this.#isLossTold) this.#isLossTold = false;
    else this.#lost();
  }

  /** Ends it for good. */
  close(): void {
    this.#closed = true;
    this.#usable = false;
    this.#client.disconnect();
  }

  /** The client itself would go on in database 0 when the server refuses the right one. */
  #select(): void {
    if (this.#database === 0) return this.#ready();
    this.#client.select(this.#database).then(() => this.#ready(), (error: unknown) => {
      this.#reason = shortened(`database ${this.#database} was refused: ${errorText(error)}`);
      this.#client.disconnect(true);
    });
  }

  #ready(): void {
    if (this.#closed) return;
    this.#usable = true;
    this.#reason = "";
    this.#events.ready(this);
  }

  #lost(): void {
    this.#usable = false;
    if (this.#closed) return;
    this.#events.lost(this, this.reason);
  }
}
