import { ConnectionStream } from "./connection_stream.ts";

/**
 * Connects to a unix socket. Not by `node:net`, which closes the descriptor of such a connection twice in Deno 2.9.3:
 * whatever the process opened in between is closed. Rejects with an error with the `code` of the system, or with the
 * reason of the signal.
 */
export async function connectUnix(path: string, signal?: AbortSignal): Promise<ConnectionStream> {
  signal?.throwIfAborted();
  const connection = await Deno.connect({ transport: "unix", path }).catch((error: unknown) => {
    throw systemError(path, error);
  });
  const stream = new ConnectionStream(connection);
  if (signal?.aborted !== true) return stream;
  stream.destroy();
  throw signal.reason;
}

function systemError(path: string, error: unknown): unknown {
  if (!(error instanceof Error && "code" in error)) return error;
  const { code } = error;
  return Object.assign(new Error(`connect ${code} ${path}`, { cause: error }), { code });
}
