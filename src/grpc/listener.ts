import net from "node:net";
import tls from "node:tls";
import { chmod, unlink } from "node:fs/promises";

/** Where a listener is to be found. */
export type ListenTarget =
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string; readonly mode: number | undefined };

/** A listener that hands on plain sockets. */
export interface Listener {
  /** `host:port`, with the real port, or `unix:path`. */
  readonly address: string;
  /** Takes no further connection; those that are open stay. */
  close(): void;
}

/** What a listener that speaks TLS presents and asks for. */
export interface ListenTls {
  readonly key: string;
  readonly cert: string;
  /** Certificates that a client's must be signed by; absent where clients need none. */
  readonly ca?: string | undefined;
  /** How long a handshake may take, in milliseconds; 10 seconds when absent. */
  readonly handshakeMs?: number | undefined;
}

/** How long a TLS handshake may take, unless it is said. */
const HANDSHAKE_MS = 10_000;
/** How long a probe of a socket file may take before the file counts as alive. */
const PROBE_TIMEOUT_MS = 1_000;

/**
 * Listens on a port that other processes may share, or on a unix socket. A socket file that nobody
 * answers on is replaced; one that somebody answers on is left alone, and this throws.
 */
export async function listen(
  target: ListenTarget,
  onSocket: (socket: net.Socket) => void,
  tlsOptions?: ListenTls,
): Promise<Listener> {
  const server = tlsOptions === undefined
    ? net.createServer({ noDelay: true }, onSocket)
    : createTlsServer(tlsOptions, onSocket);
  if (target.kind === "unix") await replaceStaleSocket(target.path);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(listenError(target, error)));
    const options = target.kind === "unix"
      ? { path: target.path }
      : { host: target.host, port: target.port, reusePort: true };
    server.listen(options, resolve);
  });
  server.on("error", () => {});
  if (target.kind === "unix" && target.mode !== undefined) {
    await chmod(target.path, target.mode).catch((error: unknown) => {
      server.close();
      throw error;
    });
  }
  return { address: addressOf(server, target), close: () => void server.close() };
}

/** Hands on sockets of clients that agreed on HTTP/2; others are closed. */
function createTlsServer(tlsOptions: ListenTls, onSocket: (socket: net.Socket) => void): net.Server {
  const { key, cert, ca, handshakeMs = HANDSHAKE_MS } = tlsOptions;
  const client = ca === undefined ? {} : { ca, requestCert: true, rejectUnauthorized: true };
  const options: tls.TlsOptions = {
    key,
    cert,
    ...client,
    ALPNProtocols: ["h2"],
    minVersion: "TLSv1.2",
    handshakeTimeout: handshakeMs,
  };
  const server = tls.createServer(options, (socket) => {
    socket.on("error", () => {});
    socket.setNoDelay(true);
    if (socket.alpnProtocol === "h2") onSocket(socket);
    else socket.destroy();
  });
  // A handshake that takes too long is told of here, but not ended by the platform.
  server.on("tlsClientError", (_error, socket) => socket.destroy());
  return server;
}

function addressOf(server: net.Server, target: ListenTarget): string {
  if (target.kind === "unix") return `unix:${target.path}`;
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : target.port;
  return target.host.includes(":") ? `[${target.host}]:${port}` : `${target.host}:${port}`;
}

function listenError(target: ListenTarget, error: Error): Error {
  const place = target.kind === "unix" ? target.path : `${target.host}:${target.port}`;
  return new Error(`Cannot listen for gRPC on "${place}": ${error.message}`, { cause: error });
}

async function replaceStaleSocket(path: string): Promise<void> {
  const state = await probe(path);
  if (state === "alive") {
    throw new Error(`Cannot listen for gRPC on "${path}": another process answers on this socket`);
  }
  if (state === "stale") await unlink(path);
}

/** Whether somebody answers on the socket file: only connecting tells. */
function probe(path: string): Promise<"alive" | "stale" | "absent"> {
  return new Promise((resolve) => {
    const socket = net.connect({ path });
    socket.setTimeout(PROBE_TIMEOUT_MS, () => done("alive"));
    socket.on("connect", () => done("alive"));
    socket.on("error", (error: NodeJS.ErrnoException) => {
      done(error.code === "ENOENT" ? "absent" : error.code === "ECONNREFUSED" ? "stale" : "alive");
    });
    function done(state: "alive" | "stale" | "absent"): void {
      socket.destroy();
      resolve(state);
    }
  });
}
