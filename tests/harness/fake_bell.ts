import type { Bell, WatchedFolder } from "../../src/threads/bell.ts";

/** A bell that a test rings. */
export class FakeBell implements Bell {
  /** The paths of each call that differ from those before. */
  readonly watches: (readonly string[])[] = [];
  #watched = "";
  #onRing: (() => void) | undefined;

  watch(onRing: () => void, folders: readonly WatchedFolder[]): void {
    this.#onRing = folders.length > 0 ? onRing : undefined;
    const watched = folders.map(({ identity }) => identity).join("\n");
    if (watched === this.#watched) return;
    this.#watched = watched;
    this.watches.push(folders.map(({ path }) => path));
  }

  ring(): void {
    this.#onRing?.();
  }
}
