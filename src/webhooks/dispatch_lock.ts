/**
 * Whoever holds it dispatches deliveries and runs steps; of several processes that share a store it is one. The kernel
 * frees it when its process ends, however that comes about.
 */
export class DispatchLock implements Disposable {
  readonly #file: Deno.FsFile;
  #held = true;

  private constructor(file: Deno.FsFile) {
    this.#file = file;
  }

  /** Takes the lock of a store, by the path of its database; nothing while someone else has it. */
  static take(path: string): DispatchLock | undefined {
    // The file stays: one that were removed could be locked by two, each under a file of its own.
    const file = Deno.openSync(`${path}.lock`, { create: true, write: true, mode: 0o600 });
    try {
      if (file.tryLockSync(true)) return new DispatchLock(file);
    } catch (error) {
      file.close();
      throw error;
    }
    file.close();
    return undefined;
  }

  /** Gives it up; twice is fine. */
  release(): void {
    if (!this.#held) return;
    this.#held = false;
    this.#file.close();
  }

  /** Gives it up at the end of a `using`. */
  [Symbol.dispose](): void {
    this.release();
  }
}
