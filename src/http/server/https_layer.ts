import type { Duplex } from "node:stream";
import tls from "node:tls";

/** The certificate chain and its private key, as PEM texts. */
export interface HttpTls {
  readonly cert: string;
  readonly key: string;
}

/** TLS over accepted connections, with a pair that can be replaced. */
export class HttpsLayer {
  #context: tls.SecureContext;

  constructor(pair: HttpTls) {
    this.#context = contextOf(pair);
  }

  /** Replaces the pair for new connections by another one that was checked. */
  renew(pair: HttpTls): void {
    this.#context = contextOf(pair);
  }

  /** The stream over a connection; its handshake has no timeout. */
  secure(stream: Duplex): Duplex {
    const socket = new tls.TLSSocket(stream, {
      isServer: true,
      secureContext: this.#context,
      ALPNProtocols: ["http/1.1"],
    });
    socket.on("close", () => stream.destroy());
    return socket;
  }
}

function contextOf({ cert, key }: HttpTls): tls.SecureContext {
  return tls.createSecureContext({ cert, key, minVersion: "TLSv1.2", maxVersion: "TLSv1.3" });
}
