import dgram from "node:dgram";
import net from "node:net";
import type { LogFields, Logger } from "../../src/base/log.ts";
import { freePort, untilFree } from "./free_port.ts";
import { until } from "./until.ts";

/** A logger, and its warnings as `message name=value`. */
export function warningLog(): { logger: Logger; warnings: string[] } {
  const warnings: string[] = [];
  const warning = (message: string, fields: LogFields = {}) => {
    const facts = Object.entries(fields).map(([name, value]) => ` ${name}=${value}`);
    warnings.push(message + facts.join(""));
  };
  return { logger: { debug() {}, info() {}, warning, error() {} }, warnings };
}

/** Adds up the counters among lines, by name. */
export function countsOf(lines: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const line of lines) {
    const [, name = "", value] = /^(.*):(-?[\d.]+)\|c/.exec(line) ?? [];
    if (value !== undefined) counts[name] = (counts[name] ?? 0) + Number(value);
  }
  return counts;
}

/** Place where a receiver takes what comes; any free port of 127.0.0.1 when absent. */
interface ReceiverAddress {
  readonly host?: string;
  readonly port?: number;
}

/** Sent by a receiver to itself: when it arrives, what was sent before has arrived as well. */
const MARK = "mark";

/** Receives pushed lines over UDP; closed at the end of an `await using`. */
export class UdpReceiver implements AsyncDisposable {
  /** Every packet so far. */
  readonly packets: string[] = [];
  readonly #socket = dgram.createSocket("udp4");
  readonly #host: string;
  #onMark = () => {};
  #port = 0;

  /** Its port on 127.0.0.1. */
  get port(): number {
    return this.#port;
  }

  /** The lines of all packets. */
  get lines(): readonly string[] {
    return this.packets.flatMap((packet) => packet.split("\n"));
  }

  /** Begins to take packets. */
  static async start({ host = "127.0.0.1", port = 0 }: ReceiverAddress = {}): Promise<UdpReceiver> {
    const receiver = new UdpReceiver(host);
    await new Promise<void>((resolve, reject) => {
      receiver.#socket.once("error", reject);
      receiver.#socket.bind(port, host, () => resolve());
    });
    receiver.#port = receiver.#socket.address().port;
    receiver.#socket.on("message", (bytes) => {
      const packet = bytes.toString();
      if (packet === MARK) receiver.#onMark();
      else receiver.packets.push(packet);
    });
    return receiver;
  }

  private constructor(host: string) {
    this.#host = host;
  }

  /** Waits until everything that was sent to it has arrived. */
  async settle(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onMark = resolve;
      this.#socket.send(MARK, this.#port, this.#host);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => this.#socket.close(() => resolve()));
  }
}

/** Options of a tcp receiver. */
interface TcpReceiverOptions extends ReceiverAddress {
  /** False: it accepts connections and reads nothing until then. */
  readonly isReading?: boolean;
}

/** Receives pushed lines over TCP; closed at the end of an `await using`. */
export class TcpReceiver implements AsyncDisposable {
  /** Every whole line so far, of all connections and over restarts. */
  readonly lines: string[] = [];
  accepted = 0;
  readonly #sockets = new Set<net.Socket>();
  #server: net.Server | undefined;
  readonly #host: string;
  readonly #port: number;
  #isReading: boolean;

  private constructor({ host = "127.0.0.1", port = freePort(), isReading = true }: TcpReceiverOptions) {
    this.#host = host;
    this.#port = port;
    this.#isReading = isReading;
  }

  /** Its port on 127.0.0.1, the same after a restart. */
  get port(): number {
    return this.#port;
  }

  /** Begins to listen. */
  static async start(options: TcpReceiverOptions = {}): Promise<TcpReceiver> {
    const receiver = new TcpReceiver(options);
    await receiver.restart();
    return receiver;
  }

  /** Listens again where it stood. */
  async restart(): Promise<void> {
    const server = net.createServer({ pauseOnConnect: true }, (socket) => this.#take(socket));
    this.#server = server;
    await untilFree(this.#port);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, this.#host, () => resolve());
    });
  }

  /** Reads from now on. */
  read(): void {
    this.#isReading = true;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Waits until everything that was sent over connections which their clients have closed has arrived. */
  async settle(): Promise<void> {
    const before = this.accepted;
    const socket = net.connect({ host: this.#host, port: this.#port });
    await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
    socket.destroy();
    await until("the connections to end", () => this.accepted > before && this.#sockets.size === 0);
  }

  /** Closes its port and every connection. */
  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #take(socket: net.Socket): void {
    this.accepted++;
    this.#sockets.add(socket);
    let open = "";
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("data", (bytes) => {
      const lines = (open + bytes.toString()).split("\n");
      open = lines.pop() ?? "";
      for (const line of lines) this.lines.push(line);
    });
    if (this.#isReading) socket.resume();
  }
}
