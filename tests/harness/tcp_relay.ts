import net from "node:net";

/** A relay's treatment of bytes and connections. */
export type RelayMode = "relay" | "stall" | "refuse" | "garbage";

/** Starts a relay on a free port of the loopback address to a server on another port of it. */
export async function startTcpRelay(targetPort: number): Promise<TcpRelay> {
  const relay = new TcpRelay(targetPort);
  await relay.listen();
  return relay;
}

/**
 * Stands between a client and a server. Everything can be changed while connections stay open; closed at
 * the end of an `await using`.
 */
export class TcpRelay implements AsyncDisposable {
  /** Port for new connections; open ones stay with their server. */
  targetPort: number;
  readonly #server = net.createServer({ pauseOnConnect: true });
  /** Each open connection of a client with that to the server, which garbage and refusal do without. */
  readonly #pairs = new Map<net.Socket, net.Socket | undefined>();
  #mode: RelayMode = "relay";
  #port = 0;
  #accepted = 0;

  constructor(targetPort: number) {
    this.targetPort = targetPort;
    this.#server.on("connection", (socket) => this.#take(socket));
  }

  /** Its own port on 127.0.0.1. */
  get port(): number {
    return this.#port;
  }

  /** `127.0.0.1:port`, as `KV_URL` takes it. */
  get url(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Number of connections that are open. */
  get open(): number {
    return this.#pairs.size;
  }

  /** Number of connections that clients have made in all, refused ones included. */
  get accepted(): number {
    return this.#accepted;
  }

  get mode(): RelayMode {
    return this.#mode;
  }

  /**
   * `stall` takes connections and passes nothing on, in either direction, until `relay` lets everything
   * go on; `refuse` closes new connections immediately, `garbage` answers them with bytes of no protocol.
   */
  setMode(mode: RelayMode): void {
    this.#mode = mode;
    for (const [client, server] of this.#pairs) {
      for (const socket of [client, server]) {
        if (mode === "stall") socket?.pause();
        else socket?.resume();
      }
    }
  }

  /** Closes every open connection, abruptly when `reset`. */
  dropAll(options: { readonly reset?: boolean } = {}): void {
    for (const [client, server] of this.#pairs) {
      if (options.reset === true) client.resetAndDestroy();
      else client.destroy();
      server?.destroy();
    }
  }

  /** Begins to listen. */
  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(0, "127.0.0.1", () => resolve());
    });
    const bound = this.#server.address();
    if (typeof bound === "object" && bound !== null) this.#port = bound.port;
  }

  /** Closes everything and waits until it is closed. */
  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    const gone = [...this.#pairs].flat().filter((socket) => socket !== undefined).map(ended);
    this.dropAll();
    await Promise.all([closed, ...gone]);
  }

  #take(client: net.Socket): void {
    this.#accepted++;
    client.on("error", () => {});
    if (this.#mode === "refuse") return void client.resetAndDestroy();
    if (this.#mode === "garbage") return this.#answerGarbage(client);
    const server = net.connect({ host: "127.0.0.1", port: this.targetPort });
    server.on("error", () => {});
    this.#pairs.set(client, server);
    this.#forward(client, server);
    this.#forward(server, client);
    if (this.#mode === "stall") server.pause();
    else client.resume();
  }

  #answerGarbage(client: net.Socket): void {
    this.#pairs.set(client, undefined);
    client.on("close", () => this.#pairs.delete(client));
    client.on("data", () => client.write("\x16garbage\r\n?no protocol\r\n"));
    client.resume();
  }

  #forward(from: net.Socket, to: net.Socket): void {
    // No backpressure: the servers of tests send little, and pausing is what `stall` is for.
    from.on("data", (bytes) => void to.write(bytes));
    from.on("end", () => void to.end());
    from.on("close", () => {
      to.destroy();
      this.#pairs.delete(from);
    });
  }
}

function ended(socket: net.Socket): Promise<void> {
  if (socket.closed) return Promise.resolve();
  return new Promise((resolve) => socket.once("close", () => resolve()));
}
