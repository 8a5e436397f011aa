import type { Buffer } from "node:buffer";
import net from "node:net";
import tls from "node:tls";
import { errorText } from "../../base/error_text.ts";
import { type HostAndPort, hostPort } from "../../base/host_port.ts";
import { explainedTlsError } from "../../base/tls_problem.ts";
import { ReplyQueue } from "../reply_queue.ts";
import type { ServerChecks } from "../server_checks.ts";
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
  /** Shared by the connections to one node. */
  readonly checks: ServerChecks;
}

/** A server that does not know a command, such as a proxy; with another text it refuses the connection. */
const UNKNOWN_COMMAND = /^(?:ERROR$|CLIENT_ERROR\b)/;
/** No counter has this key: every counter ends with the start of its window. */
const PROBE = "get weir:connection_check\r\n";
/** A proxy reports a node behind it that does not answer as a server error. */
const PROBE_REPLY = /^(?:END$|VALUE |SERVER_ERROR )/;

/** One connection to a node. Writes do not wait for one another; replies come in their order. */
export class McConnection {
  readonly #options: McConnectionOptions;
  readonly #events: McConnectionEvents;
  readonly #reader = new McReplyReader();
  #queue = new ReplyQueue<string>();
  readonly #cancelDeadline: () => void;
  /** Its address as a text. */
  readonly #name: string;
  #socket: net.Socket | undefined;
  /** The command that checks the server, once it was sent. */
  #check: "version" | "get" | undefined;
  /** Why the server did not answer the greeting. */
  #unknown: string | undefined;
  #isUsable = false;
  #isEnded = false;

  constructor(options: McConnectionOptions, events: McConnectionEvents) {
    this.#options = options;
    this.#events = events;
    const { clock, timeoutMs, address } = options;
    this.#name = hostPort(address);
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
    const connectTls = (options: Pick<tls.ConnectionOptions, "rejectUnauthorized">) => {
      const name = net.isIP(host) === 0 ? { servername: host } : {};
      return tls.connect({ ...secure, ...options, host, port, ...name });
    };
    const socket = secure === undefined
      ? net.connect({ host, port })
      : connectTls({ rejectUnauthorized: true });
    let isFailing = false;
    // They are never removed: a socket may fail more than once.
    socket.on("error", (error: Error) => {
      isFailing = true;
      void this.#failed(error, connectTls);
    });
    socket.on("end", () => isFailing || this.#lost("it closed the connection"));
    socket.on("close", () => isFailing || this.#lost("it closed the connection"));
    socket.on("data", (bytes) => this.#read(bytes));
    socket.on(secure === undefined ? "connect" : "secureConnect", () => this.#greet(socket));
    return socket;
  }

  /** An established connection ends immediately, one that is being made when its failure is explained. */
  async #failed(
    error: Error,
    connectTls: (options: Pick<tls.ConnectionOptions, "rejectUnauthorized">) => tls.TLSSocket,
  ): Promise<void> {
    if (this.#isUsable || this.#options.tls === undefined) return this.#lost(error.message);
    const { clock } = this.#options;
    const connect = () => connectTls({ rejectUnauthorized: false });
    this.#lost((await explainedTlsError(error, { connect, clock })).message);
  }

  /** Only an answer proves that the server works: one that hangs accepts connections too. */
  #greet(socket: net.Socket): void {
    if (this.#isEnded) return;
    socket.setNoDelay(true);
    this.#unknown = this.#options.checks.skipped(this.#name);
    if (this.#unknown !== undefined) return this.#probe();
    this.#check = "version";
    socket.write("version\r\n");
  }

  /** Checks a server that does not answer the greeting, such as a proxy, by a command that counting requires. */
  #probe(): void {
    this.#check = "get";
    this.#socket?.write(PROBE);
  }

  #lost(reason: string): void {
    const { checks } = this.#options;
    if (!this.#isEnded && !this.#isUsable) {
      if (this.#check === "version") checks.skip(this.#name, `version: ${reason}`);
      if (this.#check === "get") checks.ask(this.#name);
    }
    this.end(reason);
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
    } else if (this.#check === "version" && UNKNOWN_COMMAND.test(reply)) {
      this.#unknown = `version: ${reply}`;
      this.#probe();
    } else if (this.#check === "get" ? PROBE_REPLY.test(reply) : reply.startsWith("VERSION ")) {
      this.#becameUsable();
    } else this.end(`it greets with ${JSON.stringify(reply)}`);
  }

  #becameUsable(): void {
    const { checks } = this.#options;
    if (this.#unknown === undefined) checks.answered(this.#name);
    else checks.passed(this.#name, this.#unknown);
    this.#isUsable = true;
    this.#cancelDeadline();
    this.#events.ready();
  }
}
