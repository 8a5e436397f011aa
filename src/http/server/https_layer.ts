import type { Duplex } from "node:stream";
import tls from "node:tls";
import { serverContext, type TlsPair } from "../../net/tls_files.ts";

/** TLS over accepted connections, with a pair that can be replaced. The stream below each is known, unlike with a server. */
export class HttpsLayer {
  #context: tls.SecureContext;

  constructor(pair: TlsPair) {
    this.#context = tls.createSecureContext(serverContext(pair));
  }

  /** Replaces the pair for new connections by another one that was checked. */
  renew(pair: TlsPair): void {
    this.#context = tls.createSecureContext(serverContext(pair));
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
