import type { Buffer } from "node:buffer";
import net from "node:net";
import tls from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import { McReplyReader } from "./reply_reader.ts";
import { readTlsFiles, type TlsConnectOptions, type TlsFiles } from "../tls_files.ts";

/** A node of a memcached-style cache; the host of an IPv6 address stands without brackets. */
export interface McAddress {
  readonly host: string;
  readonly port: number;
}

/** Commands that go out in one write. */
export interface McExchange {
  /** The commands, one character an octet, and how many replies they bring. */
  commands(): { readonly text: string; readonly replies: number };
  /** Takes all replies, in order; answers what is wrong when they do not fit the commands. */
  answered(replies: readonly string[]): string | undefined;
  /** There will be no replies. */
  failed(reason: string): void;
}

/** What a connection tells its owner. */
export interface McConnectionEvents {
  /** It can be used. */
  ready(connection: McConnection): void;
  /** All replies to the oldest exchange are there. */
  answered(connection: McConnection, exchange: McExchange, replies: readonly string[]): void;
  /** It is gone for good, and whatever was written on it gets no replies. */
  lost(connection: McConnection, reason: string): void;
}

/** How a node is reached. */
export interface McConnectionOptions {
  readonly address: McAddress;
  /** What TLS is spoken with; read anew for each connection. Plain TCP when absent. */
  readonly tls?: TlsFiles | undefined;
  /** Longest time until it can be used, in milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

interface Written {
  readonly exchange: McExchange;
  readonly wanted: number;
  readonly replies: string[];
}

/** One connection to a node. Exchanges follow one another without waiting; replies come in their order. */
export class McConnection {
  readonly #options: McConnectionOptions;
  readonly #events: McConnectionEvents;
  readonly #reader = new McReplyReader();
  readonly #written: Written[] = [];
  readonly #cancelDeadline: () => void;
  #socket: net.Socket | undefined;
  #usable = false;
  #ended = false;

  constructor(options: McConnectionOptions, events: McConnectionEvents) {
    this.#options = options;
    this.#events = events;
    const { clock, timeoutMs } = options;
    this.#cancelDeadline = clock.after(timeoutMs, () => this.end(`no connection within ${timeoutMs} ms`));
    void this.#open();
  }

  /** Whether something can be written now. */
  get usable(): boolean {
    return this.#usable;
  }

  /** Exchanges that wait for their replies. */
  get inFlight(): number {
    return this.#written.length;
  }

  /** Sends an exchange behind those that are under way. */
  write(exchange: McExchange): void {
    const { text, replies } = exchange.commands();
    this.#written.push({ exchange, wanted: replies, replies: [] });
    this.#socket?.write(text, "latin1");
  }

  /** Closes it; `lost` is told of it. */
  end(reason: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#usable = false;
    this.#cancelDeadline();
    this.#written.length = 0;
    this.#socket?.destroy();
    this.#events.lost(this, reason);
  }

  async #open(): Promise<void> {
    try {
      const { tls: files } = this.#options;
      // Not before this turn is over, so that nobody is told of it while it is being made.
      const secure = await (files === undefined ? undefined : readTlsFiles(files));
      if (!this.#ended) this.#socket = this.#connect(secure);
    } catch (error) {
      this.end(errorText(error));
    }
  }

  #connect(secure: TlsConnectOptions | undefined): net.Socket {
    const { host, port } = this.#options.address;
    const socket = secure === undefined
      ? net.connect({ host, port })
      : tls.connect({ ...secure, host, port, ...(net.isIP(host) === 0 ? { servername: host } : {}) });
    // All of them stay until the end: a socket may fail more than once.
    socket.on("error", (error: Error) => this.end(error.message));
    socket.on("end", () => this.end("it closed the connection"));
    socket.on("close", () => this.end("it closed the connection"));
    socket.on("data", (bytes) => this.#read(bytes));
    socket.on(secure === undefined ? "connect" : "secureConnect", () => this.#greet(socket));
    return socket;
  }

  /** Only an answer tells a server that works: others take connections too, and refuse certificates late. */
  #greet(socket: net.Socket): void {
    if (this.#ended) return;
    socket.setNoDelay(true);
    socket.write("version\r\n");
  }

  #read(bytes: Buffer | string): void {
    try {
      for (const reply of this.#reader.read(bytes)) {
        if (!this.#ended) this.#take(reply);
      }
    } catch (error) {
      this.end(errorText(error));
    }
  }

  #take(reply: string): void {
    if (!this.#usable) return this.#greeted(reply);
    const oldest = this.#written[0];
    if (oldest === undefined) return this.end(`it said ${JSON.stringify(reply)} without being asked`);
    oldest.replies.push(reply);
    if (oldest.replies.length < oldest.wanted) return;
    this.#written.shift();
    this.#events.answered(this, oldest.exchange, oldest.replies);
  }

  #greeted(reply: string): void {
    if (!reply.startsWith("VERSION ")) return this.end(`it greets with ${JSON.stringify(reply)}`);
    this.#usable = true;
    this.#cancelDeadline();
    this.#events.ready(this);
  }
}
