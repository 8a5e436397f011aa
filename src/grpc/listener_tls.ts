import net from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { ThrottledLog } from "../base/throttled_log.ts";
import { serverContext, type TlsPair } from "../net/tls_files.ts";
import { ClientCertificates } from "./client_certificates.ts";

/** Options of `ListenerTls`. */
interface ListenerTlsOptions {
  /** A DNS name that the certificate of every client must have; any when absent. */
  readonly clientName?: string | undefined;
  /** Handshake timeout in milliseconds; 10 seconds when absent. */
  readonly handshakeMs?: number | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The reason for which a client was refused. */
interface TlsRefusal {
  readonly kind: "certificate" | "handshake" | "protocol";
  readonly cause: string;
}

/** Default handshake timeout. */
const HANDSHAKE_MS = 10_000;
/** Errors of peers that disconnected, such as port probes. */
const GONE = ["ECONNRESET", "ECONNABORTED", "EPIPE"];

/**
 * TLS of one gRPC listener, with a pair that can be replaced. With authorities in the first pair, every client must have
 * a certificate. Refused clients are closed, counted and logged.
 */
export class ListenerTls {
  /** Only a server of the platform reports whether the certificate of a client is valid. */
  readonly #server: tls.Server;
  readonly #clients: ClientCertificates | undefined;
  readonly #log: ThrottledLog;
  #refused = 0;

  constructor(pair: TlsPair, { clientName, handshakeMs = HANDSHAKE_MS, clock, logger }: ListenerTlsOptions) {
    const { ca } = pair;
    this.#clients = ca === undefined
      ? undefined
      : new ClientCertificates({ ca, clientName, now: () => clock.now() });
    this.#log = new ThrottledLog(logger, { clock });
    this.#server = tls.createServer({
      ...serverContext(pair),
      // The platform refuses without a cause, so certificates are checked here.
      requestCert: ca !== undefined,
      rejectUnauthorized: false,
      ALPNProtocols: ["h2"],
      handshakeTimeout: handshakeMs,
    });
    this.#server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      const peer = addressOf(socket);
      // The platform reports a handshake timeout, but does not close the socket.
      socket.destroy();
      if (!GONE.includes(error.code ?? "")) this.#refuse({ kind: "handshake", cause: causeOf(error) }, peer);
    });
  }

  /** Number of refused clients. */
  get refused(): number {
    return this.#refused;
  }

  /** Replaces the pair for new connections by another one that was checked. */
  renew(pair: TlsPair): void {
    this.#server.setSecureContext(serverContext(pair));
    if (pair.ca !== undefined) this.#clients?.renew(pair.ca);
  }

  /** Hands on the sockets of accepted clients that negotiated HTTP/2. */
  listen(onSocket: (socket: tls.TLSSocket) => void): void {
    this.#server.on("secureConnection", (socket) => {
      socket.on("error", () => {});
      const refusal = this.#refusalOf(socket);
      if (refusal === undefined) return onSocket(socket);
      this.#refuse(refusal, socket.remoteAddress);
      socket.destroy();
    });
  }

  /** Begins the handshake of a connection. */
  accept(stream: Duplex): void {
    this.#server.emit("connection", stream);
  }

  #refusalOf(socket: tls.TLSSocket): TlsRefusal | undefined {
    const cause = this.#clients?.problemOf(socket);
    if (cause !== undefined) return { kind: "certificate", cause };
    if (socket.alpnProtocol === "h2") return undefined;
    return { kind: "protocol", cause: "the client does not offer h2, HTTP/2 over TLS" };
  }

  /** The address is absent on a unix socket. */
  #refuse({ kind, cause }: TlsRefusal, peer: string | undefined): void {
    this.#refused++;
    this.#log.warning(kind, "gRPC client refused", { cause, peer });
  }
}

/** The socket has already released its address; the plain socket below it, where visible, has not. */
function addressOf(socket: tls.TLSSocket): string | undefined {
  const below = "_parent" in socket ? socket._parent : undefined;
  return socket.remoteAddress ?? (below instanceof net.Socket ? below.remoteAddress : undefined);
}

function causeOf({ message }: Error): string {
  return /\bInvalidContentType\b/.test(message) ? `the client does not speak TLS (${message})` : message;
}
