import net from "node:net";
import tls from "node:tls";
import type { Clock } from "../base/clock.ts";
import type { DialAddress } from "../base/host_port.ts";
import { explainedTlsError } from "../base/tls_problem.ts";
import { unlessAborted, withTimeout } from "../base/wait.ts";
import { readTlsFiles, type TlsFiles } from "./tls_files.ts";

/** Options of a stream to be opened. */
interface StreamOptions {
  readonly target: DialAddress;
  /** Files for TLS, read at each attempt; no TLS when absent. */
  readonly tls: TlsFiles | undefined;
  /** Of reading the files, and then of the connection and its handshake. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called with the stream while it is being opened. */
  readonly onStream?: ((stream: net.Socket) => void) | undefined;
}

/** Opens a stream; rejects with the reason, which for a rejected certificate says what is wrong with it. */
export async function openStream(options: StreamOptions): Promise<net.Socket> {
  const { target, tls: files, timeoutMs, clock, signal, onStream } = options;
  const secure = files === undefined ? undefined : await withTimeout(
    unlessAborted(readTlsFiles(files), signal),
    timeoutMs,
    clock,
    () => new Error(`the files of ${files.settings}_* were not read within ${timeoutMs} ms`),
  );
  signal.throwIfAborted();
  const stream = secure === undefined ? net.connect({ ...target }) : tls.connect({ ...secure, ...target });
  try {
    const connected = opened(stream, secure === undefined ? "connect" : "secureConnect");
    onStream?.(stream);
    await withTimeout(unlessAborted(connected, signal), timeoutMs, clock, () => {
      return new Error(`no connection within ${timeoutMs} ms`);
    });
    return stream.setNoDelay(true);
  } catch (error) {
    stream.destroy();
    if (secure === undefined) throw error;
    const connect = () => tls.connect({ ...secure, ...target, rejectUnauthorized: false });
    throw await explainedTlsError(error, { connect, clock });
  }
}

function opened(stream: net.Socket, event: "connect" | "secureConnect"): Promise<void> {
  return new Promise((resolve, reject) => {
    // It stays: a stream may fail more than once, and an error without a listener ends the process.
    stream.on("error", reject);
    stream.once("close", () => reject(new Error("the connection was closed")));
    stream.once(event, () => resolve());
  });
}
