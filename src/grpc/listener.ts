import {
  type AcceptedStream,
  Acceptor,
  type AcceptorOptions,
  type StreamListener,
  streamsOf,
} from "../net/acceptor.ts";
import { errorText } from "../base/error_text.ts";
import { hostPort } from "../base/host_port.ts";
import type { ListenerTls } from "./listener_tls.ts";

/** The address to listen on: a TCP port, 0 for any free one, or a unix socket. */
export type ListenTarget =
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string; readonly mode: number | undefined };

/** An accepted connection: plain, or TLS after its handshake. */
export interface AcceptedSocket extends AcceptedStream {
  readonly remoteAddress?: string | undefined;
}

/** Options of `listen`. */
export interface ListenOptions extends AcceptorOptions {
  /** Plain text when absent. */
  readonly tls?: ListenerTls | undefined;
  /** Other processes may listen on the same port; true when absent. */
  readonly isShared?: boolean | undefined;
  /** Hands on sockets of `node:net` also without TLS: at a stop, every accepted connection is known immediately. */
  readonly needsNodeSockets?: boolean | undefined;
}

/** A running listener. */
export interface Listener {
  /** `host:port` with the real port, or `unix:path`. */
  readonly address: string;
  readonly acceptor: Pick<Acceptor, "failures" | "isFailing" | "refused">;
  /** Stops accepting; open connections stay. Settles once no connection accepted before is outstanding. */
  close(): Promise<void>;
}

/** Listens on a TCP port, or on a unix socket, whose path is taken over from a process that listens there. */
export async function listen(
  target: ListenTarget,
  onSocket: (socket: AcceptedSocket) => void,
  { tls, ...options }: ListenOptions,
): Promise<Listener> {
  const bind = target.kind === "unix" ? bindUnix(target) : bindTcp(target, { tls, ...options });
  const { listener, address, remove } = await bind.catch((error: unknown) => {
    throw listenError(target, error);
  });
  tls?.listen(onSocket);
  const accept = tls === undefined ? onSocket : (socket: AcceptedSocket) => tls.accept(socket);
  const acceptor = new Acceptor(listener, accept, options);
  const close = () => {
    remove();
    return acceptor.close();
  };
  return { address, acceptor, close };
}

/** A bound listener, and what removes its socket file. */
interface Bound {
  readonly listener: StreamListener<AcceptedSocket>;
  readonly address: string;
  readonly remove: () => void;
}

async function bindTcp(
  { host, port }: Extract<ListenTarget, { kind: "tcp" }>,
  { tls, needsNodeSockets = tls !== undefined, isShared = true, clock }: ListenOptions,
): Promise<Bound> {
  const addressOf = (bound: number) => hostPort({ host, port: bound });
  if (needsNodeSockets) {
    const { NodeListener } = await import("../net/node_listener.ts");
    const listener = await NodeListener.open({ host, port, isShared, clock });
    return { listener, address: addressOf(listener.addr.port), remove: () => {} };
  }
  const listener = Deno.listen({ hostname: host, port, reusePort: isShared });
  return { listener: streamsOf(listener), address: addressOf(listener.addr.port), remove: () => {} };
}

async function bindUnix({ path, mode }: Extract<ListenTarget, { kind: "unix" }>): Promise<Bound> {
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
    // Errors name the path of the settings, not the temporary one.
    throw new Error(errorText(error).replaceAll(besidePath, path), { cause: error });
  }
}

/** Adds the address to an error. */
function listenError(target: ListenTarget, error: unknown): Error {
  const place = target.kind === "unix" ? target.path : `${target.host}:${target.port}`;
  const state = errorText(error);
  return new Error(`Cannot listen for gRPC on "${place}": ${state}`, { cause: error });
}
