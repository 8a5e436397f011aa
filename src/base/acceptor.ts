import type { Duplex } from "node:stream";
import { AcceptGuard, type AcceptGuardOptions, EpisodeLog, isOutOfDescriptors } from "./accept_guard.ts";
import { ConnectionStream } from "./connection_stream.ts";

/** What accepts connections and how many. */
export interface AcceptorOptions<Stream = unknown> extends AcceptGuardOptions {
  /** Connections that may be open at a time; Infinity for as many as there are file descriptors. */
  readonly maxConnections: number;
  /** Whether a connection is between two requests, so that it may be closed to make room for another one. */
  readonly isIdle?: (stream: Stream) => boolean;
}

/** A listener whose connections are streams. */
export interface StreamListener<Stream> {
  accept(): Promise<Stream>;
  /** Ends the `accept` that waits. Returns what was accepted and not handed out. */
  close(): readonly Stream[];
}

/** An accepted connection. */
export interface AcceptedStream extends Duplex {
  /** Bytes that have come from the peer. */
  readonly bytesRead: number;
}

/** The connections of a listener of the runtime as streams. */
export function streamsOf(listener: Deno.TcpListener | Deno.UnixListener): StreamListener<ConnectionStream> {
  return {
    accept: () => acceptFrom(listener),
    close: () => {
      listener.close();
      return [];
    },
  };
}

/** A peer that is gone before its connection is accepted is no failure of the listener. */
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

/** What of the connections stays when descriptors run out, for how long, and at least how many. */
const KEPT_SHARE = 7 / 8;
const KEPT_MS = 60_000;
const LEAST_KEPT = 16;
/** How many connections are looked at for an idle one when a further one comes. */
const LOOKED_AT = 64;
/** The limit is over when this share of it is open, so that each connection is not a line in the log. */
const OVER_SHARE = 0.9;

/**
 * Accepts the connections of one listener, and goes on when accepting fails. A connection beyond the limit takes the
 * place of an idle one, or is closed. When no file descriptor is left, connections that are idle or have not sent a byte
 * are closed, the oldest first, until
 * an eighth of all is free for other parts of the process; for a minute that is the limit.
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
  /** What had been refused when the limit was reached; absent while it is not. */
  #refusedBefore: number | undefined;

  /** Accepts from now on. */
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

  /** Open connections. */
  get connections(): number {
    return this.#open.size;
  }

  /** Connections that were closed because of the limit. */
  get refused(): number {
    return this.#refused;
  }

  /** Attempts to accept that have failed. */
  get failures(): number {
    return this.#guard.failures;
  }

  /** Whether no connection is accepted now. */
  get isFailing(): boolean {
    return this.#guard.isFailing;
  }

  /**
   * Accepts no further connection; those that are open stay. Settles when none can come any more: the platform may have
   * accepted one just before, whose peer has begun to talk.
   */
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

  /** Closes the first idle connection; those that are not go to the end, so that the next look finds others. */
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

  /** Few connections, or connections in use, are not what used up the descriptors: they stay, and so does the limit. */
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
 * File descriptors that are held so that the process never has none: Deno 2.9.3 ends the process when a worker is
 * started, or the stack of an error is read for the first time, with no descriptor left.
 */
export class DescriptorReserve {
  readonly #held: Deno.FsFile[] = [];

  /** Holds the reserve. Throws when not all of it, and one more, can be had; then it is released. */
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

  /** Gives the descriptors to the rest of the process. */
  release(): void {
    for (const file of this.#held.splice(0)) file.close();
  }
}
