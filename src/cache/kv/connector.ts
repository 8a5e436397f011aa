import { AbstractConnector } from "ioredis";
import net from "node:net";
import tls from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { answeredWithin } from "../../base/wait.ts";
import type { KvTarget } from "./address.ts";
import { readTlsFiles, type TlsConnectOptions, type TlsFiles } from "../tls_files.ts";

/** Where one stream leads. */
export interface KvRoute {
  readonly target: KvTarget;
  /** Told of the stream, once it is being made. */
  readonly onStream?: (stream: net.Socket) => void;
}

/** How one stream is made. */
export interface KvConnectorOptions {
  /** Where to; asked at each attempt. The signal says that nobody waits for the answer any more. */
  readonly locate: (signal: AbortSignal) => Promise<KvRoute>;
  /** Speak TLS with these files, which are read at each attempt; no TLS when absent. */
  readonly tls: TlsFiles | undefined;
  /** Bounds reading the files, and then connecting with the handshake. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Take no server that says it is a replica. */
  readonly primaryOnly: boolean;
}

/** The class that the client makes its connector of; the client knows no other way. */
export function connectorClass(options: KvConnectorOptions): new () => KvConnector {
  return class extends KvConnector {
    constructor() {
      super(options);
    }
  };
}

/**
 * Makes the streams of a client. An attempt that fails before there is a stream answers one that is
 * closed already, with its error: the client would never try again if it were told so by a rejection.
 */
export class KvConnector extends AbstractConnector {
  readonly #options: KvConnectorOptions;
  #emit: (type: string, error: Error) => void = () => {};
  #attempt = new AbortController();

  constructor(options: KvConnectorOptions) {
    super(0);
    this.#options = options;
  }

  override async connect(emit: (type: string, error: Error) => void): Promise<net.Socket> {
    this.#emit = emit;
    this.#attempt = new AbortController();
    const { signal } = this.#attempt;
    delete this.firstError;
    try {
      const [route, secure] = await Promise.all([this.#options.locate(signal), this.#readFiles()]);
      signal.throwIfAborted();
      return this.stream = this.#open(route, secure);
    } catch (error) {
      this.firstError = error instanceof Error ? error : new Error(String(error));
      return this.stream = closedStream();
    }
  }

  /** At once: a peer that does not answer would otherwise keep the stream, and the program, for a while. */
  override disconnect(): void {
    this.#attempt.abort(new Error("it was closed"));
    (this.stream as net.Socket | undefined)?.destroy();
  }

  /** Called with what the server says of itself before the stream is used. */
  override check(server: { readonly role?: string }): boolean {
    if (!this.#options.primaryOnly || server.role === undefined || server.role === "master") return true;
    this.#emit("error", new Error(`the server is no primary but a ${server.role}`));
    return false;
  }

  async #readFiles(): Promise<TlsConnectOptions | undefined> {
    const { tls: files, timeoutMs, clock } = this.#options;
    if (files === undefined) return undefined;
    return await answeredWithin(readTlsFiles(files), timeoutMs, clock, () => {
      return new Error(`the files of ${files.settings}_* were not read within ${timeoutMs} ms`);
    });
  }

  #open({ target, onStream }: KvRoute, secure: TlsConnectOptions | undefined): net.Socket {
    const { timeoutMs, clock } = this.#options;
    const stream = secure === undefined ? net.connect({ ...target }) : tls.connect({ ...target, ...secure });
    // The client listens for one error only: a second one, such as EPIPE on a connection that was refused,
    // would end the process.
    stream.on("error", (error) => this.firstError ??= error);
    guardReading(stream);
    const cancel = clock.after(
      timeoutMs,
      () => stream.destroy(new Error(`no connection within ${timeoutMs} ms`)),
    );
    stream.once(secure === undefined ? "connect" : "secureConnect", cancel);
    stream.once("close", cancel);
    onStream?.(stream);
    return stream;
  }
}

type Prepend = (event: string, listener: (chunk: Uint8Array) => void) => net.Socket;

/** What the client throws at octets of a peer ends the connection, and not the process. */
function guardReading(stream: net.Socket): void {
  const prepend: Prepend = stream.prependListener.bind(stream);
  const guarded: Prepend = (event, listener) => {
    if (event !== "data") return prepend(event, listener);
    return prepend(event, (chunk) => {
      try {
        listener(chunk);
      } catch (cause) {
        stream.destroy(new Error("it answered what cannot be read", { cause }));
      }
    });
  };
  stream.prependListener = guarded;
}

function closedStream(): net.Socket {
  const stream = new net.Socket();
  stream.on("error", () => {});
  return stream.destroy();
}
