import { Buffer } from "node:buffer";
import { type BigIntStats, lstatSync, unlinkSync } from "node:fs";
import { chmod, readdir, rename, unlink } from "node:fs/promises";
import net from "node:net";
import { basename, dirname, join } from "node:path";

/** How long a probe of a socket file may take before the file counts as alive. */
const PROBE_TIMEOUT_MS = 1_000;
/** Longest path that the kernel binds. */
const MAX_PATH_OCTETS = 107;
/** What a name beside the path ends with: what cannot be foreseen, and a mark that it does not last. */
const SUFFIX = /^\.[0-9a-f]{8}~$/;
const SUFFIX_OCTETS = 10;

/**
 * The file of a unix socket that passes from process to process without a moment at which nobody is to
 * be found there: a socket is bound beside the path and then renamed over it, whether somebody still
 * answers there or not. What had the path before goes on with the connections it has.
 */
export class UnixSocketFile {
  readonly #path: string;
  /** Where the socket is to be bound. */
  readonly besidePath: string;
  #own: BigIntStats | undefined;

  private constructor(path: string) {
    this.#path = path;
    const suffix = crypto.getRandomValues(new Uint8Array(4)).toHex();
    this.besidePath = `${path}.${suffix}~`;
  }

  /**
   * Makes ready to bind beside this path, and clears away what processes left there that ended before
   * they could rename. Throws when a socket must not take the path.
   */
  static async prepare(path: string): Promise<UnixSocketFile> {
    const longest = MAX_PATH_OCTETS - SUFFIX_OCTETS;
    if (Buffer.byteLength(path) > longest) {
      throw new Error(`its path is too long, it may have ${longest} octets`);
    }
    const found = statusOf(path);
    if (found !== undefined && !found.isSocket()) {
      throw new Error("there is a file that is no socket, and it is not replaced");
    }
    await removeLeftovers(path);
    return new UnixSocketFile(path);
  }

  /** Puts the socket that is bound beside the path into its place, with this mode if one is given. */
  async publish(mode: number | undefined): Promise<void> {
    // The mode first: once the socket has its name, nobody may come in whom the mode keeps out.
    if (mode !== undefined) await chmod(this.besidePath, mode);
    const own = statusOf(this.besidePath);
    await rename(this.besidePath, this.#path);
    this.#own = own;
  }

  /**
   * Removes the file if it is still the one that was published; a successor's stays. To be called
   * before the socket is closed: until then the kernel gives its number to no other file.
   */
  remove(): void {
    const own = this.#own;
    this.#own = undefined;
    // In one turn: nothing of this process comes between the look and the removal. Another process may,
    // for some microseconds; no call looks and removes in one.
    const found = own === undefined ? undefined : statusOf(this.#path);
    if (found === undefined || found.ino !== own?.ino || found.dev !== own.dev) return;
    try {
      unlinkSync(this.#path);
    } catch {
      // A file that stays is replaced by the next start.
    }
  }
}

function statusOf(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true });
  } catch {
    // Whoever cannot look there cannot bind there either, and is told so then.
    return undefined;
  }
}

/** Removes sockets beside the path that have a name like ours and that nobody answers on. */
async function removeLeftovers(path: string): Promise<void> {
  const folder = dirname(path);
  const base = basename(path);
  const names = await readdir(folder).catch(() => []);
  const left = names.filter((name) => name.startsWith(base) && SUFFIX.test(name.slice(base.length)));
  await Promise.all(left.map(async (name) => {
    const beside = join(folder, name);
    if (statusOf(beside)?.isSocket() !== true || await answers(beside)) return;
    await unlink(beside).catch(() => {});
  }));
}

/** Whether somebody answers on the socket file: only connecting tells. In doubt, yes. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ path });
    socket.setTimeout(PROBE_TIMEOUT_MS, () => done(true));
    socket.on("connect", () => done(true));
    socket.on("error", (error: NodeJS.ErrnoException) => done(error.code !== "ECONNREFUSED"));
    function done(alive: boolean): void {
      socket.destroy();
      resolve(alive);
    }
  });
}
