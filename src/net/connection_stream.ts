import { Buffer } from "node:buffer";
import { Duplex } from "node:stream";
import { FairReads } from "./fair_reads.ts";

/** Size of one read, and of the read buffer. */
const READ_BYTES = 65_536;

/** The order of reads among all streams of the thread. */
const reads = new FairReads();

type Done = (error?: Error | null) => void;

/**
 * A connection of the runtime as a stream like `net.Socket`. In Deno 2.9.3, a listener of `node:net` stops accepting
 * without an event when no file descriptor is left, and `node:net` closes the descriptor of a unix socket twice. HTTP/2,
 * TLS and HTTP servers of `node:` accept this stream by `server.emit("connection", …)`.
 */
export class ConnectionStream extends Duplex {
  readonly #connection: Deno.Conn;
  readonly #bytes = new Uint8Array(READ_BYTES);
  #isReading = false;
  #bytesRead = 0;

  constructor(connection: Deno.TcpConn | Deno.UnixConn) {
    super({ allowHalfOpen: false, readableHighWaterMark: READ_BYTES });
    this.#connection = connection;
    if ("setNoDelay" in connection) setNoDelay(connection);
  }

  /** The peer's address; absent on a unix socket. */
  get remoteAddress(): string | undefined {
    const { remoteAddr } = this.#connection;
    return "hostname" in remoteAddr ? remoteAddr.hostname : undefined;
  }

  get bytesRead(): number {
    return this.#bytesRead;
  }

  override _read(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    reads.begin();
    this.#readNext();
  }

  override _write(chunk: Uint8Array, _encoding: string, done: Done): void {
    this.#connection.write(chunk).then(
      (count) => count === chunk.length ? done() : this._write(chunk.subarray(count), "", done),
      done,
    );
  }

  override _writev(chunks: readonly { readonly chunk: Uint8Array }[], done: Done): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), "", done);
  }

  override _final(done: Done): void {
    this.#connection.closeWrite().then(() => done(), done);
  }

  override _destroy(error: Error | null, done: Done): void {
    try {
      this.#connection.close();
    } catch {
      // The platform has already closed it.
    }
    done(error);
  }

  /** Reads until the buffer is full or the stream ends. Callbacks, because an `async` function costs more per read. */
  #readNext(): void {
    this.#connection.read(this.#bytes).then(this.#onRead, this.#onReadError);
  }

  readonly #onRead = (count: number | null): void => {
    if (count === null) {
      this.#endReading();
      this.push(null);
      return;
    }
    this.#bytesRead += count;
    const chunk = Buffer.allocUnsafe(count);
    chunk.set(this.#bytes.subarray(0, count));
    if (this.push(chunk)) reads.next(this.#next);
    else this.#endReading();
  };

  readonly #next = (): void => {
    if (this.destroyed) this.#endReading();
    else this.#readNext();
  };

  #endReading(): void {
    this.#isReading = false;
    reads.end();
  }

  readonly #onReadError = (error: unknown): void => {
    this.#endReading();
    if (!this.destroyed) this.destroy(error instanceof Error ? error : new Error(String(error)));
  };
}

function setNoDelay(connection: Deno.TcpConn): void {
  try {
    connection.setNoDelay(true);
  } catch {
    // A peer that has disconnected is noticed by the next read.
  }
}
