/**
 * Passes the connections of a listener on to where `connect` leads. Clients and servers of `node:net` use a unix socket
 * through it: they would close the descriptor of such a connection twice, and with it a file of another test.
 */
export class SocketRelay implements Disposable {
  readonly #listener: Deno.Listener<Deno.TcpConn | Deno.UnixConn>;
  readonly #connect: () => Promise<Deno.Conn>;
  readonly #open = new Set<Deno.Conn>();

  private constructor(
    listener: Deno.Listener<Deno.TcpConn | Deno.UnixConn>,
    connect: () => Promise<Deno.Conn>,
  ) {
    this.#listener = listener;
    this.#connect = connect;
    void this.#accept();
  }

  /** A free port of 127.0.0.1 that leads to a unix socket. */
  static toUnixSocket(path: string): SocketRelay & { readonly port: number } {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const relay = new SocketRelay(listener, () => Deno.connect({ transport: "unix", path }));
    return Object.assign(relay, { port: listener.addr.port });
  }

  /** A unix socket that leads to a port of 127.0.0.1. */
  static fromUnixSocket(path: string, port: number): SocketRelay {
    const listener = Deno.listen({ transport: "unix", path });
    return new SocketRelay(listener, () => Deno.connect({ hostname: "127.0.0.1", port }));
  }

  [Symbol.dispose](): void {
    this.#listener.close();
    for (const connection of this.#open) closeQuietly(connection);
  }

  async #accept(): Promise<void> {
    // Accepting fails once the listener is closed.
    for (;;) {
      const client = await this.#listener.accept().catch(() => undefined);
      if (client === undefined) return;
      void this.#pass(client);
    }
  }

  async #pass(client: Deno.Conn): Promise<void> {
    this.#open.add(client);
    const server = await this.#connect().catch(() => undefined);
    if (server !== undefined && this.#open.has(client)) {
      this.#open.add(server);
      const both = [client.readable.pipeTo(server.writable), server.readable.pipeTo(client.writable)];
      await Promise.any(both).catch(() => {});
      closeQuietly(server);
      this.#open.delete(server);
    }
    closeQuietly(client);
    this.#open.delete(client);
  }
}

function closeQuietly(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch {
    // The end of a pipe has closed it.
  }
}
