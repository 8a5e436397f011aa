import { Buffer } from "node:buffer";
import { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { ConnectionOptions } from "node:tls";
import type { Clock } from "../../../base/clock.ts";
import { isSocketFolder, type PostgresHost } from "../../../base/postgres_address.ts";
import { dial } from "../../../net/dial.ts";
import { secureConnected } from "../../../net/tls_problem.ts";
import { startTls } from "./tls.ts";

interface OpeningOptions {
  /** Plain text when absent. */
  readonly tls: ConnectionOptions | undefined;
  readonly clock: Clock;
  /** Ends the connection as long as it is not in use. */
  readonly signal: AbortSignal;
  /** Called when the server has accepted the connection. */
  readonly onReached: () => void;
}

type Done = (error?: Error | null) => void;

const KEEP_ALIVE_MS = 15_000;
/** Kinds of messages, and the size of what is before their content. */
const BACKEND_KEY_DATA = "K".charCodeAt(0);
const READY_FOR_QUERY = "Z".charCodeAt(0);
const HEADER_BYTES = 5;
/** Most bytes of an incomplete message before the server is ready. */
const MAX_STARTUP_BYTES = 65_536;

/** Connects to a server, with TLS where the server agrees. */
export async function openClientStream(
  { host, port }: PostgresHost,
  { tls, clock, signal, onReached }: OpeningOptions,
): Promise<ClientStream> {
  const address = isSocketFolder(host) ? { path: `${host}/.s.PGSQL.${port}` } : { host, port };
  const plain = await dial(address, { clock, signal });
  const end = () => void plain.destroy();
  signal.addEventListener("abort", end, { once: true });
  try {
    signal.throwIfAborted();
    onReached();
    if (plain instanceof Socket) plain.setKeepAlive(true, KEEP_ALIVE_MS);
    if (tls === undefined) return new ClientStream(plain, plain);
    const secured = await startTls(plain, host, tls);
    await secureConnected(secured);
    return new ClientStream(secured, plain);
  } catch (error) {
    end();
    throw error;
  }
}

/** A connected socket as `pg` uses one: it connects the stream itself, and throws on messages that it does not know. */
export class ClientStream extends Duplex {
  readonly #socket: Duplex;
  /** Below TLS; the same without. */
  readonly #plain: Duplex;
  /** The bytes of an incomplete message; undefined when the server is ready. */
  #startup: Buffer | undefined = Buffer.alloc(0);
  #process: number | undefined;

  constructor(socket: Duplex, plain: Duplex) {
    super();
    this.#socket = socket;
    this.#plain = plain;
    // It stays: a socket may fail more than once, and before the client listens.
    this.on("error", () => {});
    for (const each of new Set([socket, plain])) {
      each.on("error", (error) => this.destroy(error));
      each.once("close", () => this.destroy());
    }
    socket.on("data", (bytes: Buffer) => this.#deliver(bytes));
  }

  /** The process that the server, or a pooler, announced. */
  get announcedProcess(): number | undefined {
    return this.#process;
  }

  /** Called by `pg`. */
  connect(): this {
    queueMicrotask(() => this.emit("connect"));
    return this;
  }

  /** Called by `pg`; it is already set. */
  setNoDelay(): this {
    return this;
  }

  override _read(): void {
    // Bytes are delivered as they come.
  }

  override _write(chunk: Uint8Array, _encoding: string, done: Done): void {
    this.#socket.write(chunk, done);
  }

  override _writev(chunks: readonly { readonly chunk: Uint8Array }[], done: Done): void {
    this.#socket.write(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  override _final(done: Done): void {
    this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: Done): void {
    if (this.#plain.closed) done(error);
    else this.#plain.once("close", () => done(error));
    this.#socket.destroy();
    this.#plain.destroy();
  }

  #deliver(bytes: Buffer): void {
    try {
      this.emit("data", bytes);
      if (this.#startup !== undefined) {
        this.#startup = this.#readStartup(Buffer.concat([this.#startup, bytes]));
      }
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Looks for the process of the server; returns the bytes of an incomplete message. */
  #readStartup(bytes: Buffer): Buffer | undefined {
    let start = 0;
    while (bytes.length >= start + HEADER_BYTES) {
      const kind = bytes[start];
      if (kind === READY_FOR_QUERY) return undefined;
      const end = start + 1 + bytes.readUInt32BE(start + 1);
      if (end > bytes.length) break;
      if (kind === BACKEND_KEY_DATA) this.#process = bytes.readInt32BE(start + HEADER_BYTES);
      start = end;
    }
    const rest = bytes.subarray(start);
    return rest.length > MAX_STARTUP_BYTES ? undefined : rest;
  }
}
