import type { Buffer } from "node:buffer";
import net from "node:net";
import tls from "node:tls";
import { errorText } from "../../base/error_text.ts";
import type { HostAndPort } from "../../base/host_port.ts";
import { ReplyQueue } from "../reply_queue.ts";
import type { SharedCacheOptions } from "../shared_cache_options.ts";
import { readTlsFiles, type TlsConnectOptions, type TlsFiles } from "../tls_files.ts";
import { McReplyReader } from "./reply_reader.ts";

/** What the owner of a connection is notified of. */
export interface McConnectionEvents {
  ready(): void;
  /** It is gone for good; what was written gets no replies. */
  lost(reason: string): void;
}

/** How a node is connected to. */
export interface McConnectionOptions extends Pick<SharedCacheOptions, "timeoutMs" | "clock"> {
  readonly address: HostAndPort;
  readonly tls?: TlsFiles | undefined;
}

/** One connection to a node. Writes do not wait for one another; replies come in their order. */
export class McConnection {
  readonly #options: McConnectionOptions;
  readonly #events: McConnectionEvents;
  readonly #reader = new McReplyReader();
  #queue = new ReplyQueue<string>();
  readonly #cancelDeadline: () => void;
  #socket: net.Socket | undefined;
  #isUsable = false;
  #isEnded = false;

  constructor(options: McConnectionOptions, events: McConnectionEvents) {
    this.#options = options;
    this.#events = events;
    const { clock, timeoutMs } = options;
    this.#cancelDeadline = clock.after(timeoutMs, () => this.end(`no connection within ${timeoutMs} ms`));
    void this.#open();
  }

  get isUsable(): boolean {
    return this.#isUsable;
  }

  get inFlight(): number {
    return this.#queue.size;
  }

  /** Writes commands, one character a byte; `answered` is called with all replies, or never. */
  write(
    { text, replies }: { readonly text: string; readonly replies: number },
    answered: (replies: readonly string[]) => void,
  ): void {
    this.#queue.push(replies, answered);
    this.#socket?.write(text, "latin1");
  }

  end(reason: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#isUsable = false;
    this.#cancelDeadline();
    this.#queue = new ReplyQueue();
    this.#socket?.destroy();
    this.#events.lost(reason);
  }

  async #open(): Promise<void> {
    try {
      const { tls: files } = this.#options;
      // Not in this turn, because its owner does not have it yet.
      const secure = await (files === undefined ? undefined : readTlsFiles(files));
      if (!this.#isEnded) this.#socket = this.#connect(secure);
    } catch (error) {
      this.end(errorText(error));
    }
  }

  #connect(secure: TlsConnectOptions | undefined): net.Socket {
    const { host, port } = this.#options.address;
    const socket = secure === undefined
      ? net.connect({ host, port })
      : tls.connect({ ...secure, host, port, ...(net.isIP(host) === 0 ? { servername: host } : {}) });
    // They are never removed: a socket may fail more than once.
    socket.on("error", (error: Error) => this.end(error.message));
    socket.on("end", () => this.end("it closed the connection"));
    socket.on("close", () => this.end("it closed the connection"));
    socket.on("data", (bytes) => this.#read(bytes));
    socket.on(secure === undefined ? "connect" : "secureConnect", () => this.#greet(socket));
    return socket;
  }

  /** Only an answer proves that the server works: one that hangs accepts connections too. */
  #greet(socket: net.Socket): void {
    if (this.#isEnded) return;
    socket.setNoDelay(true);
    socket.write("version\r\n");
  }

  #read(bytes: Buffer | string): void {
    try {
      for (const reply of this.#reader.read(bytes)) {
        if (!this.#isEnded) this.#take(reply);
      }
    } catch (error) {
      this.end(errorText(error));
    }
  }

  #take(reply: string): void {
    if (this.#isUsable) {
      if (!this.#queue.take(reply)) this.end(`it said ${JSON.stringify(reply)} without being asked`);
    } else if (!reply.startsWith("VERSION ")) this.end(`it greets with ${JSON.stringify(reply)}`);
    else {
      this.#isUsable = true;
      this.#cancelDeadline();
      this.#events.ready();
    }
  }
}
