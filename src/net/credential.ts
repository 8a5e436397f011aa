import type { Logger } from "../base/log.ts";

/** Options of a credential that may be replaced. */
interface CredentialOptions {
  /** The server that it is for, in log lines, such as "key-value cache". */
  readonly server: string;
  readonly logger: Logger;
  /** Called each time that a server refused the current value: another one may be known by now. */
  readonly onRefused: () => void;
}

/** The first value, a later one, one that a server refused but not the former one, or one that a server accepted. */
type CredentialState = "first" | "new" | "refused" | "accepted";

/**
 * Who logs in to a server. After a replacement the former value is tried too, because servers and files change at
 * different times; a value that no server has accepted never displaces one that was.
 */
export class Credential<T extends object> {
  /** The number of refused logins. */
  refused = 0;
  readonly #options: CredentialOptions | undefined;
  readonly #listeners = new Set<() => void>();
  #current: T;
  #former: T | undefined;
  /** Of the current value. */
  #state: CredentialState = "first";

  /** Without options it is a value that stays. */
  constructor(current: T, options?: CredentialOptions) {
    this.#current = current;
    this.#options = options;
  }

  get current(): T {
    return this.#current;
  }

  replace(value: T): void {
    if (this.#state === "accepted") this.#former = this.#current;
    this.#current = value;
    this.#state = "new";
    for (const run of [...this.#listeners]) run();
  }

  /** Calls `run` after each replacement, until the signal is aborted. */
  onChange(run: () => void, signal: AbortSignal): void {
    this.#listeners.add(run);
    signal.addEventListener("abort", () => this.#listeners.delete(run), { once: true });
  }

  /** Tries the current value, and the former one where a server refuses it; throws the first refusal. */
  async logIn<R>(attempt: (value: T) => Promise<R>, isRefusal: (error: unknown) => boolean): Promise<R> {
    const tried = new Set<T>();
    let first: unknown;
    // Looked up each time, because it may be replaced during an attempt.
    for (let value = this.#next(tried); value !== undefined; value = this.#next(tried)) {
      try {
        const result = await attempt(value);
        this.#accepted(value);
        return result;
      } catch (error) {
        if (!isRefusal(error)) throw error;
        if (tried.size === 0) first = error;
        tried.add(value);
        this.refused++;
        if (value === this.#current) this.#options?.onRefused();
      }
    }
    throw first;
  }

  #next(tried: ReadonlySet<T>): T | undefined {
    return [this.#current, this.#former].find((value) => value !== undefined && !tried.has(value));
  }

  #accepted(value: T): void {
    const { server, logger } = this.#options ?? {};
    if (value === this.#current) {
      const isReplaced = this.#state === "new" || this.#state === "refused";
      this.#state = "accepted";
      if (isReplaced) logger?.info("New credentials accepted", { server }, "warning");
    } else if (value === this.#former && this.#state === "new") {
      this.#state = "refused";
      logger?.warning("New credentials refused; using the former ones", { server });
    }
  }
}
