import net from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import { systemClock } from "../base/clock.ts";
import type { TlsPair } from "../net/tls_files.ts";
import { ClientCertificates } from "./client_certificates.ts";

/** The TLS of a listener; with `ca`, every client must have a certificate. */
export interface ListenTls extends TlsPair {
  /** A DNS name that the certificate of every client must have; any when absent. */
  readonly clientName?: string | undefined;
  /** Handshake timeout in milliseconds; 10 seconds when absent. */
  readonly handshakeMs?: number | undefined;
  /** Milliseconds since the Unix epoch; the system clock when absent. */
  readonly now?: (() => number) | undefined;
  /** Called for every refused client. */
  readonly onRefused?: ((refusal: TlsRefusal) => void) | undefined;
}

/** Why a client was refused. */
export interface TlsRefusal {
  readonly kind: "certificate" | "handshake" | "protocol";
  readonly cause: string;
  /** The peer's address; absent on a unix socket. */
  readonly peer: string | undefined;
}

/** Default handshake timeout. */
const HANDSHAKE_MS = 10_000;
/** Errors of peers that disconnected, such as port probes. */
const GONE = ["ECONNRESET", "ECONNABORTED", "EPIPE"];

/**
 * Hands on the sockets of accepted clients that negotiated HTTP/2 and closes the others. `accept` begins the handshake
 * of a connection, `renew` sets the pair of later ones.
 */
export function createTlsServer(options: ListenTls, onSocket: (socket: tls.TLSSocket) => void): {
  readonly accept: (stream: Duplex) => void;
  readonly renew: (pair: TlsPair) => void;
} {
  const { ca, clientName, handshakeMs = HANDSHAKE_MS, onRefused, now = systemClock.now } = options;
  const clients = ca === undefined ? undefined : new ClientCertificates({ ca, clientName, now });
  // The platform refuses without a cause, so certificates are checked here.
  const asked = clients === undefined ? {} : { requestCert: true, rejectUnauthorized: false };
  const server = tls.createServer({
    ...contextOf(options),
    ...asked,
    ALPNProtocols: ["h2"],
    handshakeTimeout: handshakeMs,
  }, (socket) => {
    socket.on("error", () => {});
    const refusal = refusalOf(socket, clients);
    if (refusal === undefined) return onSocket(socket);
    onRefused?.({ ...refusal, peer: socket.remoteAddress });
    socket.destroy();
  });
  server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
    const peer = addressOf(socket);
    // The platform reports a handshake timeout, but does not close the socket.
    socket.destroy();
    if (GONE.includes(error.code ?? "")) return;
    onRefused?.({ kind: "handshake", cause: causeOf(error), peer });
  });
  const renew = (pair: TlsPair) => {
    server.setSecureContext(contextOf(pair));
    if (pair.ca !== undefined) clients?.renew(pair.ca);
  };
  return { accept: (stream) => void server.emit("connection", stream), renew };
}

/** The socket has already released its address; the plain socket below it, where visible, has not. */
function addressOf(socket: tls.TLSSocket): string | undefined {
  const below = "_parent" in socket ? socket._parent : undefined;
  return socket.remoteAddress ?? (below instanceof net.Socket ? below.remoteAddress : undefined);
}

function causeOf({ message }: Error): string {
  return /\bInvalidContentType\b/.test(message) ? `the client does not speak TLS (${message})` : message;
}

/** Complete options: omitted ones would fall back to the defaults. */
function contextOf({ key, cert, ca }: TlsPair): tls.SecureContextOptions {
  return { key, cert, ...(ca === undefined ? {} : { ca }), minVersion: "TLSv1.2", maxVersion: "TLSv1.3" };
}

function refusalOf(
  socket: tls.TLSSocket,
  clients: ClientCertificates | undefined,
): Pick<TlsRefusal, "kind" | "cause"> | undefined {
  const cause = clients?.problemOf(socket);
  if (cause !== undefined) return { kind: "certificate", cause };
  if (socket.alpnProtocol === "h2") return undefined;
  return { kind: "protocol", cause: "the client does not offer h2, HTTP/2 over TLS" };
}
