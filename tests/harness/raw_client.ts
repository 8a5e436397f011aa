import net from "node:net";
import tls from "node:tls";
import { FLAG, FRAME } from "../../src/grpc/native/frames.ts";
import { call, frame, greeting, H2Lines } from "./h2_peer.ts";
import { until } from "./until.ts";
import { answer } from "./connection_bed.ts";
import { probePath } from "./probe.ts";

/** Options of a raw client. */
export interface RawClientOptions {
  /** Settings of the greeting; none is sent when this is absent. */
  readonly settings?: readonly (readonly [identifier: number, value: number])[];
  /** Answers PING, as a client must. */
  readonly pong?: boolean;
  readonly tls?: boolean;
}

/** A peer on a real socket that sends the bytes that a test names, and takes note of the frames that come. */
export class RawClient implements AsyncDisposable {
  /** The frames that came, without window updates. */
  readonly lines: string[] = [];
  readonly #socket: net.Socket;
  readonly #closed: Promise<void>;
  readonly #frames = new H2Lines();
  #isClosed = false;
  #calls = 0;

  /** Connects to `host:port`. */
  static async connect(address: string, options: RawClientOptions = {}): Promise<RawClient> {
    const [host = "", port = ""] = address.split(":");
    const target = { host, port: Number(port) };
    const socket = options.tls === true
      ? tls.connect({ ...target, rejectUnauthorized: false, ALPNProtocols: ["h2"] })
      : net.connect(target);
    const client = new RawClient(socket, options.pong ?? false);
    await new Promise<void>((resolve, reject) => {
      socket.once(options.tls === true ? "secureConnect" : "connect", resolve);
      socket.once("error", reject);
    });
    if (options.settings !== undefined) client.send(greeting(options.settings));
    return client;
  }

  private constructor(socket: net.Socket, pong: boolean) {
    this.#socket = socket;
    socket.on("error", () => {});
    socket.on("data", (chunk: Uint8Array) => {
      for (const line of this.#frames.read(chunk)) {
        if (pong && line.startsWith("PING ") && !line.startsWith("PING ack")) this.#pong(line.slice(5));
        if (!line.startsWith("WINDOW_UPDATE")) this.lines.push(line);
      }
    });
    this.#closed = new Promise((resolve) =>
      socket.on("close", () => {
        this.#isClosed = true;
        resolve();
      })
    );
  }

  /** The connection is closed. */
  get closed(): boolean {
    return this.#isClosed;
  }

  /** Sends bytes, as far as the server still takes them. */
  send(...parts: readonly Uint8Array[]): void {
    for (const part of parts) if (!this.#socket.destroyed) this.#socket.write(part);
  }

  /** Reads nothing more, or goes on. */
  reading(on: boolean): void {
    if (on) this.#socket.resume();
    else this.#socket.pause();
  }

  /** Waits for a frame. */
  async line(expected: string): Promise<void> {
    await until(
      `"${expected}" after ${JSON.stringify(this.lines.slice(-5))}`,
      () => this.lines.includes(expected),
    );
  }

  /** Waits until the server has closed the connection. */
  async end(): Promise<void> {
    await until(`the end after ${JSON.stringify(this.lines.slice(-5))}`, () => this.#isClosed);
  }

  /** Makes a call that must be answered, on a connection where it is the only one that makes calls. */
  async echo(): Promise<void> {
    const id = 2 * this.#calls++ + 1;
    this.send(call(id, probePath("Echo"), `call ${id}`));
    for (const line of answer(id, `call ${id}`)) await this.line(line);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.destroy();
    await this.#closed;
  }

  #pong(mark: string): void {
    this.send(frame(FRAME.PING, 0, Uint8Array.fromHex(mark), FLAG.ACK));
  }
}
