import { Buffer } from "node:buffer";
import { type BigIntStats, lstatSync, renameSync, unlinkSync } from "node:fs";
import { access, chmod, link, readdir, rename, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { systemClock } from "../base/clock.ts";
import { answeredWithin } from "../base/wait.ts";

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
 * answers there or not. What had the path before goes on with the connections it has, and gets the path
 * back when its successor ends first.
 */
export class UnixSocketFile {
  readonly #path: string;
  /** Where the socket is to be bound. */
  readonly besidePath: string;
  /** A second name of the socket that had the path before. */
  #formerPath: string | undefined;
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
    await checkFolder(dirname(path));
    await removeLeftovers(path);
    return new UnixSocketFile(path);
  }

  /** Puts the socket that is bound beside the path into its place, with this mode if one is given. */
  async publish(mode: number | undefined): Promise<void> {
    // The mode first: once the socket has its name, nobody may come in whom the mode keeps out.
    if (mode !== undefined) await chmod(this.besidePath, mode);
    const own = statusOf(this.besidePath);
    this.#formerPath = await keepFormer(this.#path);
    await rename(this.besidePath, this.#path);
    this.#own = own;
  }

  /**
   * Removes the file if it is still the one that was published, or gives the path back to the socket before
   * where that was not removed yet; a successor's stays. To be called before the socket is closed: until
   * then the kernel gives its number to no other file.
   */
  remove(): void {
    const own = this.#own;
    this.#own = undefined;
    if (own === undefined) return;
    removeQuietly(secondName(this.#path, own));
    try {
      // In one turn: nothing of this process comes between the look and the removal. Another process may,
      // for some microseconds; no call looks and removes in one.
      if (!isSame(statusOf(this.#path), own)) return;
      const former = this.#formerPath;
      if (former !== undefined && statusOf(former)?.isSocket() === true) renameSync(former, this.#path);
      else unlinkSync(this.#path);
    } catch {
      // A file that stays is replaced by the next start.
    }
  }
}

/**
 * Gives the socket at the path a second name beside it, if somebody answers there: it is to get the path back
 * when its successor ends first. Answers the name.
 */
async function keepFormer(path: string): Promise<string | undefined> {
  const found = statusOf(path);
  if (found?.isSocket() !== true || !await answers(path)) return undefined;
  const name = secondName(path, found);
  return await link(path, name).then(() => name, () => undefined);
}

/** The name by which a socket is kept while a successor has the path: the socket itself can tell it. */
function secondName(path: string, { ino }: BigIntStats): string {
  return `${path}.${(ino & 0xffffffffn).toString(16).padStart(8, "0")}~`;
}

/** A socket that ends needs its second name no more; its successor sees by that that it is gone. */
function removeQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Mostly it has none.
  }
}

/** What else may be wrong with it shows when the socket is bound. */
async function checkFolder(folder: string): Promise<void> {
  const code = await access(folder).then(() => undefined, (error: NodeJS.ErrnoException) => error.code);
  if (code === "ENOENT") throw new Error(`the folder "${folder}" does not exist; make it first`);
}

function isSame(found: BigIntStats | undefined, own: BigIntStats): boolean {
  return found !== undefined && found.ino === own.ino && found.dev === own.dev;
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
async function answers(path: string): Promise<boolean> {
  const connected = Deno.connect({ transport: "unix", path }).then(
    (connection) => {
      connection.close();
      return true;
    },
    (error: unknown) => !(error instanceof Deno.errors.ConnectionRefused),
  );
  const late = () => new Error(`no answer within ${PROBE_TIMEOUT_MS} ms`);
  return await answeredWithin(connected, PROBE_TIMEOUT_MS, systemClock, late).catch(() => true);
}
