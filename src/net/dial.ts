import net from "node:net";
import type { Duplex } from "node:stream";
import tls from "node:tls";
import type { Clock } from "../base/clock.ts";
import type { DialAddress } from "../base/host_port.ts";
import { unlessAborted, withTimeout } from "../base/wait.ts";
import { explainedTlsError } from "./tls_problem.ts";
import { connectUnix } from "./unix_socket.ts";

/** Options of `dial`. */
interface DialOptions {
  /** Ends the attempt, which rejects with the reason of the signal. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** Timeout of the connection, and of the handshake; none when absent. */
  readonly timeoutMs?: number | undefined;
  /** Plain text when absent; a `host` other than that of the address is the name of the certificate. */
  readonly tls?: tls.ConnectionOptions | undefined;
  /** Called with the stream while it is being opened. */
  readonly onStream?: ((stream: Duplex) => void) | undefined;
}

/**
 * Connects to a server. Rejects with the error of the platform; that for a rejected certificate says what is wrong with
 * the certificate. The stream has a listener for errors, as it may fail before it has a user.
 */
export async function dial(address: DialAddress, options: DialOptions): Promise<Duplex> {
  const { signal, clock, tls: secure } = options;
  signal.throwIfAborted();
  if (secure === undefined) return await dialPlain(address, options);
  const start = async (given: tls.ConnectionOptions) => {
    // In Deno 2.6, TLS over another stream never ends its handshake.
    if ("host" in address && (given.host ?? address.host) === address.host) {
      return tls.connect({ ...given, ...address });
    }
    const below = await dialPlain(address, options);
    const socket = tls.connect({ ...given, socket: below });
    socket.once("close", () => below.destroy());
    return socket;
  };
  try {
    return await opened(await start(secure), "secureConnect", options);
  } catch (error) {
    signal.throwIfAborted();
    const unverified = { ...secure, rejectUnauthorized: false };
    throw await explainedTlsError(error, { connect: () => start(unverified), clock });
  }
}

/** A socket of `node:net` reads and writes with less work than a connection of `Deno.connect`. */
async function dialPlain(address: DialAddress, options: DialOptions): Promise<Duplex> {
  if ("host" in address) return await opened(net.connect({ ...address }), "connect", options);
  const stream = await connectUnix(address.path, options.signal);
  return stream.on("error", () => {});
}

/** Waits until a socket is open; one that is not in time is destroyed. */
async function opened(
  socket: net.Socket,
  event: "connect" | "secureConnect",
  { signal, clock, timeoutMs, onStream }: DialOptions,
): Promise<net.Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // It stays: a socket may fail more than once.
  socket.on("error", reject);
  const step = event === "connect" ? "" : " in the TLS handshake";
  socket.once("close", () => reject(new Error(`the server closed the connection${step}`)));
  socket.once(event, () => resolve());
  onStream?.(socket);
  const late = () => new Error(`no connection within ${timeoutMs} ms`);
  try {
    const open = unlessAborted(promise, signal);
    await (timeoutMs === undefined ? open : withTimeout(open, timeoutMs, clock, late));
    return socket.setNoDelay(true);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}
