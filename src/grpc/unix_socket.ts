import { Buffer } from "node:buffer";
import { type BigIntStats, lstatSync, renameSync, unlinkSync } from "node:fs";
import { access, chmod, link, readdir, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { systemClock } from "../base/clock.ts";
import { withTimeout } from "../base/wait.ts";

/** After this time without a result, a probed socket counts as alive. */
const PROBE_TIMEOUT_MS = 1_000;
/** Longest path that the kernel binds. */
const MAX_PATH_BYTES = 107;
/** Suffix of a temporary path: random digits and a mark. */
const SUFFIX = /^\.[0-9a-f]{8}~$/;
const SUFFIX_BYTES = 10;

/**
 * Passes a unix socket from process to process without a moment in which connections are refused: binds a temporary path and
 * renames it over the socket of the predecessor, which keeps its connections, and gets the path back when the successor
 * ends first.
 */
export class UnixSocketFile {
  readonly #path: string;
  /** The temporary path to bind. */
  readonly besidePath: string;
  /** A second name of the predecessor's socket. */
  #formerPath: string | undefined;
  #own: BigIntStats | undefined;

  private constructor(path: string) {
    this.#path = path;
    const suffix = crypto.getRandomValues(new Uint8Array(4)).toHex();
    this.besidePath = `${path}.${suffix}~`;
  }

  /** Chooses a temporary path and removes those of processes that ended early; throws when the path is unusable. */
  static async prepare(path: string): Promise<UnixSocketFile> {
    const longest = MAX_PATH_BYTES - SUFFIX_BYTES;
    if (Buffer.byteLength(path) > longest) {
      throw new Error(`its path is too long; expected at most ${longest} bytes`);
    }
    const found = statusOf(path);
    if (found !== undefined && !found.isSocket()) {
      throw new Error("a file that is not a socket exists there");
    }
    await checkFolder(dirname(path));
    await removeLeftovers(path);
    return new UnixSocketFile(path);
  }

  /** Renames the bound socket to its path, with this mode if one is given. */
  async publish(mode: number | undefined): Promise<void> {
    // Before the socket is reachable by its path.
    if (mode !== undefined) await chmod(this.besidePath, mode);
    const own = statusOf(this.besidePath);
    this.#formerPath = await keepFormer(this.#path);
    await rename(this.besidePath, this.#path);
    this.#own = own;
  }

  /**
   * Gives the path back to the predecessor's socket, or removes the file; a successor's stays. Call this before the
   * socket is closed: until then the kernel does not reuse its inode.
   */
  remove(): void {
    const own = this.#own;
    this.#own = undefined;
    if (own === undefined) return;
    removeQuietly(secondName(this.#path, own));
    try {
      // Synchronous; another process has some microseconds between the check and the removal.
      if (!isSame(statusOf(this.#path), own)) return;
      const former = this.#formerPath;
      if (former !== undefined && statusOf(former)?.isSocket() === true) renameSync(former, this.#path);
      else unlinkSync(this.#path);
    } catch {
      // A file that stays is replaced by the next start.
    }
  }
}

/** Gives a live socket at the path a second name, so that it can get the path back; returns that name. */
async function keepFormer(path: string): Promise<string | undefined> {
  const found = statusOf(path);
  if (found?.isSocket() !== true || !await answers(path)) return undefined;
  const name = secondName(path, found);
  return await link(path, name).then(() => name, () => undefined);
}

/** The second name of a socket, which its process can derive as well. */
function secondName(path: string, { ino }: BigIntStats): string {
  return `${path}.${(ino & 0xffffffffn).toString(16).padStart(8, "0")}~`;
}

function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Usually it does not exist.
  }
}

/** Other problems of the folder show when the socket is bound. */
async function checkFolder(folder: string): Promise<void> {
  const code = await access(folder).then(() => undefined, (error: NodeJS.ErrnoException) => error.code);
  if (code === "ENOENT") throw new Error(`the folder "${folder}" does not exist; create it first`);
}

function isSame(found: BigIntStats | undefined, own: BigIntStats): boolean {
  return found !== undefined && found.ino === own.ino && found.dev === own.dev;
}

function statusOf(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true });
  } catch {
    // Binding reports the error.
    return undefined;
  }
}

/** Removes temporary sockets next to the path that have no listener. */
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

/** True when a process listens on the socket file, which only connecting can tell; true in doubt. */
async function answers(path: string): Promise<boolean> {
  const connected = Deno.connect({ transport: "unix", path }).then(
    (connection) => {
      connection.close();
      return true;
    },
    (error: unknown) => !(error instanceof Deno.errors.ConnectionRefused),
  );
  const late = () => new Error(`no answer within ${PROBE_TIMEOUT_MS} ms`);
  return await withTimeout(connected, PROBE_TIMEOUT_MS, systemClock, late).catch(() => true);
}
