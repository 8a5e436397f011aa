import { fileAt } from "./connection.ts";

/**
 * The holder dispatches deliveries and runs steps; of several processes that share a store it is one. The kernel frees
 * the lock when its process ends.
 */
export class DispatchLock implements Disposable {
  readonly #path: string;
  #file: Deno.FsFile;
  #held = true;

  private constructor(path: string, file: Deno.FsFile) {
    this.#path = path;
    this.#file = file;
  }

  /** Takes the lock of a store by the path of its database; `undefined` while another process holds it. */
  static take(path: string): DispatchLock | undefined {
    const file = openLocked(`${path}.lock`);
    return file === undefined ? undefined : new DispatchLock(`${path}.lock`, file);
  }

  /**
   * Checks that other processes would still find the locked file. A file that was removed is created and locked again;
   * false when another process was faster, or may have been.
   */
  keep(): boolean {
    let isReplaced = false;
    try {
      const { dev, ino } = this.#file.statSync();
      const found = fileAt(this.#path);
      if (found?.dev === dev && found.ino === ino) return true;
      isReplaced = found !== undefined;
      const file = openLocked(this.#path);
      if (file === undefined) return false;
      this.#file.close();
      this.#file = file;
      return true;
    } catch {
      // Without a file no other process can open it either, such as in a folder that was removed.
      return !isReplaced;
    }
  }

  /** Releases it; twice is fine. */
  release(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#file.close();
  }

  /** Releases it at the end of a `using`. */
  [Symbol.dispose](): void {
    this.release();
  }
}

/** Opens the file, which stays when the lock is released: two processes could lock one file each otherwise. */
function openLocked(path: string): Deno.FsFile | undefined {
  const file = Deno.openSync(path, { create: true, write: true, mode: 0o600 });
  try {
    if (file.tryLockSync(true)) return file;
  } catch (error) {
    file.close();
    throw error;
  }
  file.close();
  return undefined;
}
