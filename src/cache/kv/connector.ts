import { AbstractConnector } from "ioredis";
import net from "node:net";
import tls from "node:tls";
import { unlessAborted, withTimeout } from "../../base/wait.ts";
import type { SharedCacheOptions } from "../shared_cache_options.ts";
import { readTlsFiles, type TlsConnectOptions, type TlsFiles } from "../tls_files.ts";
import type { KvTarget } from "./address.ts";

/** Where one stream leads. */
export interface KvRoute {
  readonly target: KvTarget;
  /** Called with the stream once it is being opened. */
  readonly onStream?: (stream: net.Socket) => void;
}

/** How streams are opened. */
export interface KvConnectorOptions extends Pick<SharedCacheOptions, "timeoutMs" | "clock"> {
  /** Where to connect; called at each attempt. The signal aborts when the attempt is cancelled. */
  readonly locate: (signal: AbortSignal) => Promise<KvRoute>;
  /** Files for TLS, read at each attempt; no TLS when absent. */
  readonly tls: TlsFiles | undefined;
}

/** Opens streams for ioredis. A failed attempt returns a closed stream: after a rejection it would never retry. */
export class KvConnector extends AbstractConnector {
  readonly #options: KvConnectorOptions;
  #attempt = new AbortController();
  #stream: net.Socket | undefined;

  constructor(options: KvConnectorOptions) {
    super(0);
    this.#options = options;
  }

  override async connect(): Promise<net.Socket> {
    this.#attempt = new AbortController();
    const { signal } = this.#attempt;
    delete this.firstError;
    try {
      const found = Promise.all([this.#options.locate(signal), this.#readFiles(signal)]);
      const [route, secure] = await unlessAborted(found, signal);
      signal.throwIfAborted();
      return this.#stream = this.#open(route, secure);
    } catch (error) {
      this.firstError = error instanceof Error ? error : new Error(String(error));
      return this.#stream = closedStream();
    }
  }

  /** Destroys the stream: a peer that does not answer would keep it, and the program, for a while. */
  override disconnect(): void {
    this.#attempt.abort(new Error("it was closed"));
    this.#stream?.destroy();
  }

  async #readFiles(signal: AbortSignal): Promise<TlsConnectOptions | undefined> {
    const { tls: files, timeoutMs, clock } = this.#options;
    if (files === undefined) return undefined;
    return await withTimeout(unlessAborted(readTlsFiles(files), signal), timeoutMs, clock, () => {
      return new Error(`the files of ${files.settings}_* were not read within ${timeoutMs} ms`);
    });
  }

  #open({ target, onStream }: KvRoute, secure: TlsConnectOptions | undefined): net.Socket {
    const { timeoutMs, clock } = this.#options;
    const stream = secure === undefined ? net.connect({ ...target }) : tls.connect({ ...target, ...secure });
    // The client listens for one error only; a second one, such as EPIPE, would end the process.
    stream.on("error", (error) => this.firstError ??= error);
    const timedOut = () => void stream.destroy(new Error(`no connection within ${timeoutMs} ms`));
    const cancel = clock.after(timeoutMs, timedOut);
    stream.once(secure === undefined ? "connect" : "secureConnect", cancel);
    stream.once("close", cancel);
    onStream?.(stream);
    return stream;
  }
}

function closedStream(): net.Socket {
  const stream = new net.Socket();
  stream.on("error", () => {});
  return stream.destroy();
}
