import { isIP } from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import { type HostAndPort, hostPort } from "../../base/host_port.ts";
import { dial } from "../../net/dial.ts";

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

/** Options of `dialGrpc`. */
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
export async function dialGrpc(target: GrpcTarget, { signal, clock }: DialOptions): Promise<Duplex> {
  const { address, tls: given } = target;
  const options = given === undefined ? undefined : tlsOptions(address, given);
  const socket = await dial(address, { tls: options, signal, clock }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw new Error(connectProblem(error), { cause: error });
  });
  if (!(socket instanceof tls.TLSSocket) || socket.alpnProtocol === "h2") return socket;
  socket.destroy();
  throw new Error("the server does not speak HTTP/2 over TLS");
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
): tls.ConnectionOptions {
  const name = serverName ?? ("path" in address ? "localhost" : address.host);
  // An IP address is no server name: it is checked as the host.
  const isName = isIP(name) === 0;
  return {
    ...(isName ? { host: "path" in address ? name : address.host, servername: name } : { host: name }),
    checkServerIdentity: (_, certificate) => tls.checkServerIdentity(name, certificate),
    ALPNProtocols: ["h2"],
    minVersion: "TLSv1.2",
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca: typeof ca === "string" ? ca : [...ca] }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
  };
}
