import net from "node:net";
import { errorText } from "../base/error_text.ts";
import type { TlsPair } from "../base/tls_pair.ts";
import type { ListenTls } from "./tls_server.ts";

export type { ListenTls } from "./tls_server.ts";

/** Where a listener is to be found. */
export type ListenTarget =
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | UnixTarget;

/** A path at which a unix socket is to be found. */
export interface UnixTarget {
  readonly kind: "unix";
  readonly path: string;
  readonly mode: number | undefined;
}

/** A listener that hands on plain sockets. */
export interface Listener {
  /** `host:port`, with the real port, or `unix:path`. */
  readonly address: string;
  /** Takes no further connection; those that are open stay. */
  close(): void;
  /** Shows another pair to those who connect from now on; only where TLS is spoken. */
  renewTls(pair: TlsPair): void;
}

/**
 * Listens on a port that other processes may share, or on a unix socket, whose file is taken over from
 * the process that has it: that one goes on with the connections it has.
 */
export async function listen(
  target: ListenTarget,
  onSocket: (socket: net.Socket) => void,
  tlsOptions?: ListenTls,
): Promise<Listener> {
  const secured = tlsOptions === undefined
    ? undefined
    : (await import("./tls_server.ts")).createTlsServer(tlsOptions, onSocket);
  const server = secured?.server ?? net.createServer({ noDelay: true }, onSocket);
  const remove = await bind(server, target).catch((error: unknown) => {
    server.close();
    throw listenError(target, error);
  });
  server.on("error", () => {});
  const close = () => {
    remove();
    server.close();
  };
  return { address: addressOf(server, target), close, renewTls: (pair) => secured?.renew(pair) };
}

/** Takes the address; answers how what stands for it in the file system is removed. */
async function bind(server: net.Server, target: ListenTarget): Promise<() => void> {
  if (target.kind === "tcp") {
    await listening(server, { host: target.host, port: target.port, reusePort: true });
    return () => {};
  }
  const { UnixSocketFile } = await import("./unix_socket.ts");
  const file = await UnixSocketFile.prepare(target.path);
  await listening(server, { path: file.besidePath }).catch((error: unknown) => {
    // The name beside the path says nothing to whoever gave the path.
    throw new Error(errorText(error).replaceAll(file.besidePath, target.path), { cause: error });
  });
  await file.publish(target.mode);
  return () => file.remove();
}

function listening(server: net.Server, options: net.ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(options, resolve);
  });
}

function addressOf(server: net.Server, target: ListenTarget): string {
  if (target.kind === "unix") return `unix:${target.path}`;
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : target.port;
  return target.host.includes(":") ? `[${target.host}]:${port}` : `${target.host}:${port}`;
}

/** Names the place that was to be listened on. */
export function listenError(target: ListenTarget, error: unknown): Error {
  const place = target.kind === "unix" ? target.path : `${target.host}:${target.port}`;
  const state = errorText(error);
  return new Error(`Cannot listen for gRPC on "${place}": ${state}`, { cause: error });
}
