import {
  type AcceptedStream,
  Acceptor,
  type AcceptorOptions,
  type StreamListener,
  streamsOf,
} from "../base/acceptor.ts";
import { errorText } from "../base/error_text.ts";
import type { TlsPair } from "../base/tls_files.ts";
import { hostPort } from "../base/host_port.ts";
import type { ListenTls } from "./tls_server.ts";

export type { ListenTls } from "./tls_server.ts";

/** Where a listener is to be found. */
export type ListenTarget = TcpTarget | UnixTarget;

/** A port, 0 for a free one. */
export interface TcpTarget {
  readonly kind: "tcp";
  readonly host: string;
  readonly port: number;
}

/** A path at which a unix socket is to be found. */
export interface UnixTarget {
  readonly kind: "unix";
  readonly path: string;
  readonly mode: number | undefined;
}

/** A connection that was accepted: plain, or TLS after its handshake. */
export interface AcceptedSocket extends AcceptedStream {
  readonly remoteAddress?: string | undefined;
}

/** How to listen. */
export interface ListenOptions extends AcceptorOptions {
  /** Absent for plain text. */
  readonly tls?: ListenTls | undefined;
  /** Whether other processes may listen on the same port; they may when absent. */
  readonly isShared?: boolean | undefined;
  /** Hands on sockets of `node:net` over TCP, also without TLS: all that is accepted at a stop is known at once. */
  readonly needsNodeSockets?: boolean | undefined;
}

/** A listener that hands on the sockets of its connections. */
export interface Listener {
  /** `host:port`, with the real port, or `unix:path`. */
  readonly address: string;
  readonly acceptor: Pick<Acceptor, "failures" | "isFailing" | "refused">;
  /** Accepts no further connection; those that are open stay. Settles when none can come any more. */
  close(): Promise<void>;
  /** Shows another pair to those who connect from now on; only where TLS is spoken. */
  renewTls(pair: TlsPair): void;
}

/**
 * Listens on a port that other processes may share, or on a unix socket, whose file is taken over from
 * the process that has it: that one goes on with the connections it has.
 */
export async function listen(
  target: ListenTarget,
  onSocket: (socket: AcceptedSocket) => void,
  { tls, ...options }: ListenOptions,
): Promise<Listener> {
  const secured = tls === undefined
    ? undefined
    : (await import("./tls_server.ts")).createTlsServer(tls, onSocket);
  const bind = target.kind === "unix" ? bindUnix(target) : bindTcp(target, { tls, ...options });
  const { listener, address, remove } = await bind.catch((error: unknown) => {
    throw listenError(target, error);
  });
  const acceptor = new Acceptor(listener, secured?.accept ?? onSocket, options);
  const close = () => {
    remove();
    return acceptor.close();
  };
  return { address, acceptor, close, renewTls: (pair) => secured?.renew(pair) };
}

/** A bound listener, and what removes its name from the file system. */
interface Bound {
  readonly listener: StreamListener<AcceptedSocket>;
  readonly address: string;
  readonly remove: () => void;
}

async function bindTcp(
  { host, port }: TcpTarget,
  { tls, needsNodeSockets = tls !== undefined, isShared = true, clock }: ListenOptions,
): Promise<Bound> {
  const addressOf = (bound: number) => hostPort({ host, port: bound });
  if (needsNodeSockets) {
    const { NodeListener } = await import("../base/node_listener.ts");
    const listener = await NodeListener.open({ host, port, isShared, clock });
    return { listener, address: addressOf(listener.addr.port), remove: () => {} };
  }
  const listener = Deno.listen({ hostname: host, port, reusePort: isShared });
  return { listener: streamsOf(listener), address: addressOf(listener.addr.port), remove: () => {} };
}

async function bindUnix({ path, mode }: UnixTarget): Promise<Bound> {
  const { UnixSocketFile } = await import("./unix_socket.ts");
  const file = await UnixSocketFile.prepare(path);
  const listener = listenBeside(file.besidePath, path);
  await file.publish(mode).catch((error: unknown) => {
    listener.close();
    throw error;
  });
  return { listener: streamsOf(listener), address: `unix:${path}`, remove: () => file.remove() };
}

function listenBeside(besidePath: string, path: string): Deno.UnixListener {
  try {
    return Deno.listen({ transport: "unix", path: besidePath });
  } catch (error) {
    // The name beside the path says nothing to whoever gave the path.
    throw new Error(errorText(error).replaceAll(besidePath, path), { cause: error });
  }
}

/** Names the place that was to be listened on. */
function listenError(target: ListenTarget, error: unknown): Error {
  const place = target.kind === "unix" ? target.path : `${target.host}:${target.port}`;
  const state = errorText(error);
  return new Error(`Cannot listen for gRPC on "${place}": ${state}`, { cause: error });
}
