import net from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import { systemClock } from "../base/clock.ts";
import type { TlsPair } from "../base/tls_files.ts";
import { ClientCertificates } from "./client_certificates.ts";

/** What a listener that speaks TLS presents and asks for; with `ca`, every client needs a certificate. */
export interface ListenTls extends TlsPair {
  /** A DNS name that the certificate of every client must have; any when absent. */
  readonly clientName?: string | undefined;
  /** How long a handshake may take, in milliseconds; 10 seconds when absent. */
  readonly handshakeMs?: number | undefined;
  /** Milliseconds since the Unix epoch; the clock of the machine when absent. */
  readonly now?: (() => number) | undefined;
  /** Told of every client that is sent away. */
  readonly onRefused?: ((refusal: TlsRefusal) => void) | undefined;
}

/** Why a client was sent away. */
export interface TlsRefusal {
  readonly kind: "certificate" | "handshake" | "protocol";
  readonly cause: string;
  /** Its address; absent on a unix socket. */
  readonly peer: string | undefined;
}

/** How long a TLS handshake may take, unless it is said. */
const HANDSHAKE_MS = 10_000;
/** Errors of peers that went away by themselves, such as probes that only look whether a port is open. */
const GONE = ["ECONNRESET", "ECONNABORTED", "EPIPE"];

/** TLS over accepted connections, with another pair from any time on. */
export interface TlsServer {
  /** Begins the handshake of a connection. */
  readonly accept: (stream: Duplex) => void;
  /** Shows another pair to those who connect from now on. */
  renew(pair: TlsPair): void;
}

/** Hands on sockets of clients that may come in and agreed on HTTP/2; others are closed. */
export function createTlsServer(options: ListenTls, onSocket: (socket: tls.TLSSocket) => void): TlsServer {
  const { ca, clientName, handshakeMs = HANDSHAKE_MS, onRefused, now = systemClock.now } = options;
  const clients = ca === undefined ? undefined : new ClientCertificates({ ca, clientName, now });
  // Whoever is refused by the platform is refused without a cause, so certificates are looked at here.
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
    // A handshake that takes too long is told of here, but not ended by the platform.
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

/** The socket has let go of its address by now; the plain one below it, where the platform shows it, has not. */
function addressOf(socket: tls.TLSSocket): string | undefined {
  const below = "_parent" in socket ? socket._parent : undefined;
  return socket.remoteAddress ?? (below instanceof net.Socket ? below.remoteAddress : undefined);
}

function causeOf({ message }: Error): string {
  return /\bInvalidContentType\b/.test(message) ? `the client does not speak TLS (${message})` : message;
}

/** All of it is to be given each time: what is left out falls back to the defaults. */
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
