import { type HttpPort, listenHttp } from "../../../src/http/server/http_port.ts";
import { HttpsLayer } from "../../../src/http/server/https_layer.ts";
import type { TlsPair } from "../../../src/net/tls_files.ts";
import { type Certificates, pairOf } from "../../harness/certificates.ts";
import { FakeClock } from "../../harness/fake_clock.ts";
import { Dialed, type HandlerOf, listenOptions } from "../../harness/http_fixture.ts";
import { RecordedLogger } from "../../harness/recorded_logger.ts";

/** A real HTTPS listener on a free loopback port, and clients that trust one authority each. */
export class ServedHttps implements AsyncDisposable {
  readonly log = new RecordedLogger();
  readonly clock = new FakeClock();
  readonly listener: HttpPort;
  readonly #tls: HttpsLayer;
  /** By the authority that issued the first pair. */
  readonly former: HttpsClient;
  /** By the other authority. */
  readonly other: HttpsClient;

  private constructor(handler: HandlerOf, tls: TlsPair, authorities: readonly [string, string]) {
    this.#tls = new HttpsLayer(tls);
    this.listener = listenHttp(handler(this), {
      ...listenOptions({ logger: this.log, clock: this.clock }),
      tls: this.#tls,
      maxConnections: Infinity,
    });
    this.former = new HttpsClient(this.listener.port, authorities[0]);
    this.other = new HttpsClient(this.listener.port, authorities[1]);
  }

  /** Listens with the certificate for `localhost`. */
  static async start(certificates: Certificates, handler: HandlerOf): Promise<ServedHttps> {
    const { authority, otherAuthority, server } = certificates;
    const [tls, own, other] = await Promise.all([
      pairOf(server),
      Deno.readTextFile(authority.certFile),
      Deno.readTextFile(otherAuthority.certFile),
    ]);
    return new ServedHttps(handler, tls, [own, other]);
  }

  /** Serves with another pair. */
  renew(pair: TlsPair): void {
    this.#tls.renew(pair);
    this.listener.replaceConnections();
  }

  /** A plain connection to the port. */
  async dialPlain(): Promise<Dialed> {
    return new Dialed(await Deno.connect({ hostname: "127.0.0.1", port: this.listener.port }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.former.close();
    this.other.close();
    await this.listener.close(0);
  }
}

/** A client of `localhost` that trusts one authority and no other. */
export class HttpsClient implements Disposable {
  readonly #port: number;
  readonly #authority: string;
  readonly #client: Deno.HttpClient;

  constructor(port: number, authority: string) {
    this.#port = port;
    this.#authority = authority;
    this.#client = Deno.createHttpClient({ caCerts: [authority] });
  }

  /** On a connection that is kept. */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    return await fetch(`https://localhost:${this.#port}${path}`, { ...init, client: this.#client });
  }

  /** A new connection, by HTTP/1.1, after its handshake. Throws when the certificate is not trusted. */
  async dial(): Promise<Dialed> {
    const connection = await Deno.connectTls({
      hostname: "localhost",
      port: this.#port,
      caCerts: [this.#authority],
    });
    try {
      await connection.handshake();
      return new Dialed(connection);
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /**
   * True if a new connection meets a certificate that the authority issued. One that the kernel put into the
   * queue of a listener that was just closed is reset; then another one is tried.
   */
  async trusts(): Promise<boolean> {
    try {
      (await this.dial()).close();
      return true;
    } catch (error) {
      if (error instanceof Deno.errors.ConnectionReset) return await this.trusts();
      if (error instanceof Deno.errors.InvalidData) return false;
      throw error;
    }
  }

  /** Lets go of the kept connections. */
  close(): void {
    this.#client.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
