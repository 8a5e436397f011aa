import type { Clock } from "../base/clock.ts";
import { errorText } from "../base/error_text.ts";
import { type Listener, listenError, type UnixTarget } from "./listener.ts";
import { UnixSocketFile } from "./unix_socket.ts";
import { UnixStream } from "./unix_stream.ts";

/** How long nobody is let in after that has failed: as a rule no descriptor is left. */
const PAUSE_MS = 100;

/** Listens on a unix socket, as `listen` does, and hands on streams. */
export async function listenUnix(
  target: UnixTarget,
  onStream: (stream: UnixStream) => void,
  { clock }: { readonly clock: Clock },
): Promise<Listener> {
  const { path, mode } = target;
  try {
    const file = await UnixSocketFile.prepare(path);
    const listener = bound(file.besidePath, path);
    let isClosed = false;
    const close = () => {
      if (isClosed) return;
      isClosed = true;
      file.remove();
      listener.close();
    };
    void acceptAll(listener, onStream, { clock, isClosed: () => isClosed });
    await file.publish(mode).catch((error: unknown) => {
      close();
      throw error;
    });
    return { address: `unix:${path}`, close, renewTls: () => {} };
  } catch (error) {
    throw listenError(target, error);
  }
}

function bound(besidePath: string, path: string): Deno.UnixListener {
  try {
    return Deno.listen({ transport: "unix", path: besidePath });
  } catch (error) {
    // The name beside the path says nothing to whoever gave the path.
    throw new Error(errorText(error).replaceAll(besidePath, path), { cause: error });
  }
}

async function acceptAll(
  listener: Deno.UnixListener,
  onStream: (stream: UnixStream) => void,
  { clock, isClosed }: { readonly clock: Clock; readonly isClosed: () => boolean },
): Promise<void> {
  while (!isClosed()) {
    try {
      onStream(new UnixStream(await listener.accept()));
    } catch {
      if (!isClosed()) await new Promise<void>((resolve) => void clock.after(PAUSE_MS, resolve));
    }
  }
}
