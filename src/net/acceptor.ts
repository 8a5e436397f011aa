import type { Duplex } from "node:stream";
import { AcceptGuard, type AcceptGuardOptions, isOutOfDescriptors } from "./accept_guard.ts";
import { ConnectionStream } from "./connection_stream.ts";
import { EpisodeLog } from "../base/episode_log.ts";

/** The limit on connections, in addition to the options of the guard. */
export interface AcceptorOptions<Stream = unknown> extends AcceptGuardOptions {
  /** Infinity for as many as there are file descriptors. */
  readonly maxConnections: number;
  /** True for a connection between two requests, which may be closed to make room. */
  readonly isIdle?: (stream: Stream) => boolean;
}

/** A listener whose connections are streams. */
export interface StreamListener<Stream> {
  accept(): Promise<Stream>;
  /** Ends the pending `accept`; returns what was accepted and not handed out. */
  close(): readonly Stream[];
}

/** An accepted connection. */
export interface AcceptedStream extends Duplex {
  /** Bytes received from the peer. */
  readonly bytesRead: number;
}

/** A listener of the runtime whose connections are streams. */
export function streamsOf(listener: Deno.TcpListener | Deno.UnixListener): StreamListener<ConnectionStream> {
  return {
    accept: () => acceptFrom(listener),
    close: () => {
      listener.close();
      return [];
    },
  };
}

/** Errors of a peer that disconnects before its connection is accepted. */
const GONE = new Set(["NotConnected", "ConnectionAborted", "ConnectionReset"]);

async function acceptFrom(listener: Deno.TcpListener | Deno.UnixListener): Promise<ConnectionStream> {
  for (;;) {
    try {
      return new ConnectionStream(await listener.accept());
    } catch (error) {
      if (!(error instanceof Error && GONE.has(error.name))) throw error;
    }
  }
}

/** Share of the connections that stay when descriptors run out, its duration, and the minimum. */
const KEPT_SHARE = 7 / 8;
const KEPT_MS = 60_000;
const LEAST_KEPT = 16;
/** Most connections that are checked to find an idle one. */
const LOOKED_AT = 64;
/** The limit is over below this share of it, so that not every connection is logged. */
const OVER_SHARE = 0.9;

/**
 * Accepts the connections of one listener, and continues after a failure. A connection beyond the limit takes the
 * place of an idle one, or is closed. When no file descriptor is left, closes the oldest connections that are idle or
 * have not sent a byte, until an eighth is free for the rest of the process; for a minute that is the limit.
 */
export class Acceptor<Stream extends AcceptedStream = AcceptedStream> {
  readonly #listener: StreamListener<Stream>;
  readonly #options: AcceptorOptions<Stream>;
  readonly #guard: AcceptGuard;
  readonly #open = new Set<Stream>();
  readonly #onConnection: (stream: Stream) => void;
  #limitOfDescriptors = { connections: Infinity, until: -Infinity };
  readonly #limitLog: EpisodeLog;
  readonly #ended: Promise<void>;
  readonly #reserve = new DescriptorReserve();
  #refused = 0;
  /** Number that had been refused when the limit was reached; absent below the limit. */
  #refusedBefore: number | undefined;

  constructor(
    listener: StreamListener<Stream>,
    onConnection: (stream: Stream) => void,
    options: AcceptorOptions<Stream>,
  ) {
    this.#listener = listener;
    this.#onConnection = onConnection;
    this.#options = options;
    this.#guard = new AcceptGuard(options);
    this.#limitLog = new EpisodeLog(options.clock);
    this.#ended = this.#acceptAll();
  }

  get connections(): number {
    return this.#open.size;
  }

  /** Connections closed because of the limit. */
  get refused(): number {
    return this.#refused;
  }

  get failures(): number {
    return this.#guard.failures;
  }

  get isFailing(): boolean {
    return this.#guard.isFailing;
  }

  /** Stops accepting; open connections stay. Settles once no connection accepted before is outstanding. */
  close(): Promise<void> {
    if (!this.#guard.isClosed) {
      this.#guard.close();
      for (const stream of this.#listener.close()) this.#take(stream);
      this.#reserve.release();
    }
    return this.#ended;
  }

  async #acceptAll(): Promise<void> {
    while (!this.#guard.isClosed) {
      const stream = await this.#guard.retry(() => this.#accept());
      if (stream !== undefined) this.#take(stream);
    }
  }

  async #accept(): Promise<Stream> {
    try {
      this.#reserve.hold();
      return await this.#listener.accept();
    } catch (error) {
      if (!isOutOfDescriptors(error)) throw error;
      this.#reserve.release();
      this.#makeRoom();
      throw error;
    }
  }

  #take(stream: Stream): void {
    stream.on("error", () => {});
    if (this.#open.size >= this.#limit() && !this.#closeIdle()) return this.#refuse(stream);
    this.#open.add(stream);
    stream.on("close", () => this.#forget(stream));
    try {
      this.#onConnection(stream);
    } catch (error) {
      const { name, logger } = this.#options;
      logger.error("Cannot serve a connection: unexpected error", { listener: name, error });
      stream.destroy();
    }
  }

  #limit(): number {
    const { clock, maxConnections } = this.#options;
    const { connections, until } = this.#limitOfDescriptors;
    return clock.elapsed() < until ? Math.min(connections, maxConnections) : maxConnections;
  }

  /** Closes the first idle connection; others move to the end, so that the next search starts after them. */
  #closeIdle(): boolean {
    const { isIdle } = this.#options;
    if (isIdle === undefined) return false;
    let left = LOOKED_AT;
    for (const stream of this.#open) {
      if (left-- === 0) break;
      this.#open.delete(stream);
      if (!stream.destroyed && isIdle(stream)) {
        stream.destroy();
        return true;
      }
      this.#open.add(stream);
    }
    return false;
  }

  #refuse(stream: Stream): void {
    stream.destroy();
    const { name, logger } = this.#options;
    const fields = { listener: name, limit: this.#limit() };
    this.#limitLog.begin(() => logger.warning("Connection limit reached; refusing connections", fields));
    this.#refusedBefore ??= this.#refused;
    this.#refused++;
  }

  #forget(stream: Stream): void {
    this.#open.delete(stream);
    if (this.#refusedBefore === undefined || this.#open.size > OVER_SHARE * this.#limit()) return;
    const { name, logger } = this.#options;
    const fields = { listener: name, refused: this.#refused - this.#refusedBefore };
    this.#refusedBefore = undefined;
    this.#limitLog.end(() => logger.warning("Below the connection limit again", fields));
  }

  /** Keeps a small number of connections, and those in use: they did not use up the descriptors. */
  #makeRoom(): void {
    const kept = Math.floor(this.#open.size * KEPT_SHARE);
    const { isIdle = () => false } = this.#options;
    const silent = [...this.#open].filter((stream) => stream.bytesRead === 0 || isIdle(stream));
    if (kept < LEAST_KEPT || silent.length === 0) return;
    const connections = Math.max(kept, this.#open.size - silent.length + 1);
    this.#limitOfDescriptors = { connections, until: this.#options.clock.elapsed() + KEPT_MS };
    for (const stream of silent.slice(0, this.#open.size - kept)) stream.destroy();
  }
}

/** Enough to read files, to log and to start a worker. */
const RESERVED = 16;

/**
 * Reserves file descriptors: without any, Deno 2.9.3 ends the process when a worker starts, or when the stack of an
 * error is read for the first time.
 */
class DescriptorReserve {
  readonly #held: Deno.FsFile[] = [];

  /** Holds the reserve; throws and releases it when not all of it, and one more, can be opened. */
  hold(): void {
    try {
      while (this.#held.length < RESERVED) this.#held.push(Deno.openSync("/dev/null"));
      Deno.openSync("/dev/null").close();
    } catch (error) {
      if (!isOutOfDescriptors(error)) return;
      this.release();
      throw error;
    }
  }

  /** Frees the descriptors for the rest of the process. */
  release(): void {
    for (const file of this.#held.splice(0)) file.close();
  }
}
