import { Buffer } from "node:buffer";
import { Duplex } from "node:stream";

/** How much is read at once, and kept before reading pauses. */
const READ_OCTETS = 65_536;

type Done = (error?: Error | null) => void;

/**
 * A connection over a unix socket, as the stream that `net.Socket` would be. That one closes its descriptor twice in
 * Deno 2.9.3 (uv_compat/pipe.rs: once as a number and once with its owner), and the second time it may be somebody
 * else's, opened by another thread in between.
 */
export class UnixStream extends Duplex {
  readonly #connection: Deno.UnixConn;
  readonly #octets = new Uint8Array(READ_OCTETS);
  #isReading = false;

  constructor(connection: Deno.UnixConn) {
    super({ allowHalfOpen: false, readableHighWaterMark: READ_OCTETS });
    this.#connection = connection;
  }

  override _read(): void {
    if (!this.#isReading) void this.#readOn();
  }

  override _write(chunk: Uint8Array, _encoding: string, done: Done): void {
    void this.#writeAll([chunk], done);
  }

  override _writev(chunks: readonly { readonly chunk: Uint8Array }[], done: Done): void {
    void this.#writeAll(chunks.map(({ chunk }) => chunk), done);
  }

  override _final(done: Done): void {
    this.#connection.closeWrite().then(() => done(), done);
  }

  override _destroy(error: Error | null, done: Done): void {
    try {
      this.#connection.close();
    } catch {
      // The platform has closed it already.
    }
    done(error);
  }

  /** Until as much waits as may, or the end. */
  async #readOn(): Promise<void> {
    this.#isReading = true;
    try {
      for (let isWanted = true; isWanted;) {
        const count = await this.#connection.read(this.#octets);
        isWanted = this.push(count === null ? null : Buffer.copyBytesFrom(this.#octets, 0, count)) &&
          count !== null;
      }
    } catch (error) {
      // What is closed here is no error.
      if (!this.destroyed) this.destroy(error instanceof Error ? error : new Error(String(error)));
    } finally {
      this.#isReading = false;
    }
  }

  async #writeAll(chunks: readonly Uint8Array[], done: Done): Promise<void> {
    try {
      for (const chunk of chunks) {
        for (let from = 0; from < chunk.length;) from += await this.#connection.write(chunk.subarray(from));
      }
      done();
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)));
    }
  }
}
