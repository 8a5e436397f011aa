import { StoreError } from "../store.ts";

/**
 * The files behind an open database. SQLite keeps writing to a file that was deleted or replaced, and the next start
 * does not find what it wrote.
 */
export class StoreFiles {
  readonly #path: string;
  readonly #identities = new Map<string, string>();
  #isLost = false;

  /** Remembers the file at this path, which is open. */
  constructor(path: string) {
    this.#path = path;
    this.check();
  }

  /** Throws unless the files that were opened are still in place. */
  check(): void {
    const lost = [this.#path, `${this.#path}-wal`].find((file) => !this.#isInPlace(file));
    this.#isLost = lost !== undefined;
    if (lost === undefined) return;
    throw new StoreError(
      "replaced",
      `Cannot use the store "${this.#path}": "${lost}" was deleted or replaced; put the file that was opened back`,
    );
  }

  /** Throws while the last check failed and a new one does. */
  refuseIfLost(): void {
    if (this.#isLost) this.check();
  }

  /** SQLite creates the log with the first transaction. */
  #isInPlace(file: string): boolean {
    const known = this.#identities.get(file);
    const found = identityOf(file);
    if (known === undefined && found !== undefined) this.#identities.set(file, found);
    return known === undefined || known === found;
  }
}

function identityOf(file: string): string | undefined {
  try {
    // By its path: to open and close the file would drop the locks that SQLite holds on it.
    const { dev, ino } = Deno.statSync(file);
    return `${dev}:${ino}`;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
