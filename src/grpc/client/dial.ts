import { connect as connectSocket, isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import { type HostAndPort, hostPort } from "../../base/host_port.ts";
import { explainedTlsError } from "../../net/tls_problem.ts";
import { connectUnix } from "../../net/unix_socket.ts";

/** A gRPC server. */
export interface GrpcTarget {
  /** Host and port, or the path of a unix socket. */
  readonly address: HostAndPort | { readonly path: string };
  /** `:authority`; `host:port`, or `localhost` for a unix socket, when absent. */
  readonly authority?: string | undefined;
  /** Plain text when absent. */
  readonly tls?: GrpcTls | undefined;
}

/** TLS of a connection, in PEM. */
export interface GrpcTls {
  /** Authorities to trust instead of those of the runtime. */
  readonly ca?: string | readonly string[] | undefined;
  /** The client certificate and its key: both or none. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  /** The name or IP address that the server's certificate must have; the host of the address when absent. */
  readonly serverName?: string | undefined;
}

/** Options of `dial`. */
interface DialOptions {
  /** Ends the attempt, which rejects with the reason of the signal. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** The value of `:authority` for a server. */
export function authorityOf({ address, authority }: GrpcTarget): string {
  return authority ?? ("path" in address ? "localhost" : hostPort(address));
}

/** Connects to a server, over TLS with HTTP/2 where it is set. Rejects with an error that states the reason. */
export async function dial(target: GrpcTarget, { signal, clock }: DialOptions): Promise<Duplex> {
  const { address, tls: given } = target;
  if (given === undefined) return await connect(address, signal);
  const start = async (isVerified: boolean) => {
    const options = tlsOptions(address, given, isVerified);
    // In Deno 2.6, TLS over another stream never ends its handshake.
    if ("host" in address && options.host === address.host) {
      return tls.connect({ ...options, host: address.host, port: address.port });
    }
    const plain = await connect(address, signal);
    const socket = tls.connect({ ...options, socket: plain });
    socket.once("close", () => plain.destroy());
    return socket;
  };
  try {
    return await secured(await start(true), signal);
  } catch (error) {
    signal.throwIfAborted();
    const explained = await explainedTlsError(error, { connect: () => start(false), clock });
    throw new Error(connectProblem(explained), { cause: error });
  }
}

/** Connects without TLS. */
async function connect(address: GrpcTarget["address"], signal: AbortSignal): Promise<Duplex> {
  signal.throwIfAborted();
  if ("host" in address) return await connectTcp(address, signal);
  const stream = await connectUnix(address.path, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    throw new Error(connectProblem(error), { cause: error });
  });
  // This listener stays: a stream may fail before it has a user.
  return stream.on("error", () => {});
}

/** A socket of `node:net` reads and writes with less work than a connection of `Deno.connect`. */
function connectTcp(address: HostAndPort, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connectSocket({ ...address, noDelay: true });
    const onAbort = () => {
      reject(signal.reason);
      socket.destroy();
    };
    signal.addEventListener("abort", onAbort);
    // This listener stays: a socket may fail more than once.
    socket.on("error", (error) => {
      signal.removeEventListener("abort", onAbort);
      reject(new Error(connectProblem(error), { cause: error }));
    });
    socket.once("connect", () => {
      signal.removeEventListener("abort", onAbort);
      resolve(socket);
    });
  });
}

function connectProblem(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ECONNREFUSED") return "connection refused";
  if (code === "ENOENT") return "there is no such socket";
  // Without a message when several addresses failed.
  return errorText(error) || String(code);
}

function tlsOptions(
  address: GrpcTarget["address"],
  { ca, cert, key, serverName }: GrpcTls,
  isVerified: boolean,
): tls.ConnectionOptions {
  const name = serverName ?? ("path" in address ? "localhost" : address.host);
  // An IP address is no server name: it is checked as the host.
  const isName = isIP(name) === 0;
  return {
    ...(isName ? { host: "path" in address ? name : address.host, servername: name } : { host: name }),
    checkServerIdentity: (_, certificate) => tls.checkServerIdentity(name, certificate),
    ALPNProtocols: ["h2"],
    minVersion: "TLSv1.2",
    rejectUnauthorized: isVerified,
    ...(ca === undefined ? {} : { ca: typeof ca === "string" ? ca : [...ca] }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
  };
}

function secured(socket: tls.TLSSocket, signal: AbortSignal): Promise<tls.TLSSocket> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      reject(signal.reason);
      socket.destroy();
    };
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
    // This listener stays: a socket may fail more than once.
    socket.on("error", (error) => {
      reject(error);
      socket.destroy();
    });
    socket.once("close", () => {
      signal.removeEventListener("abort", onAbort);
      reject(new Error("the server closed the connection in the TLS handshake"));
    });
    socket.once("secureConnect", () => {
      signal.removeEventListener("abort", onAbort);
      socket.setNoDelay(true);
      if (socket.alpnProtocol === "h2") return resolve(socket);
      reject(new Error("the server does not speak HTTP/2 over TLS"));
      socket.destroy();
    });
  });
}
