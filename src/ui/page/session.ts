/** What a token is wanted for. */
export type TokenUse = "live" | "administration";

/**
 * The tokens, in the memory of this page alone. The administration's opens the live figures too; a token that was given
 * for the figures is tried for the administration once, because it may be that one.
 */
export class Session {
  #live: string | undefined;
  #administration: string | undefined;
  #isLiveOnly = false;
  readonly #problems = new Map<TokenUse, string>();
  readonly #listeners = new Set<() => void>();

  /** The token to show for something; absent where none is known. */
  tokenFor(use: TokenUse): string | undefined {
    if (use === "live") return this.#administration ?? this.#live;
    return this.#administration ?? (this.#isLiveOnly ? undefined : this.#live);
  }

  /** Whether any token is kept. */
  get holdsToken(): boolean {
    return this.#live !== undefined || this.#administration !== undefined;
  }

  /** Whether this token is kept. */
  holds(token: string): boolean {
    return token === this.#live || token === this.#administration;
  }

  /** Why a token that was given is not used; absent where there is nothing to say. */
  problem(use: TokenUse): string | undefined {
    return this.#problems.get(use);
  }

  /** Takes a token that someone typed in. */
  take(use: TokenUse, token: string): void {
    if (use === "live") {
      this.#live = token;
      this.#isLiveOnly = false;
    } else {
      this.#administration = token;
    }
    this.#problems.clear();
    this.#tell();
  }

  /** The service has answered 401 to this token, or to none. */
  refuse(use: TokenUse, token: string | undefined): void {
    if (token !== this.tokenFor(use)) return;
    if (token !== undefined && token === this.#administration) {
      this.#administration = undefined;
      this.#problems.set("live", REFUSED).set("administration", REFUSED);
    } else if (use === "live") {
      this.#live = undefined;
      if (token !== undefined) this.#problems.set(use, REFUSED);
    } else {
      this.#isLiveOnly = true;
      this.#problems.set(use, LIVE_ONLY);
    }
    this.#tell();
  }

  /** Keeps no token any more. */
  forget(): void {
    this.#live = undefined;
    this.#administration = undefined;
    this.#isLiveOnly = false;
    this.#problems.clear();
    this.#tell();
  }

  /** Calls back whenever something changed; the answer ends that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #tell(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

const REFUSED = "The service did not take that token.";
const LIVE_ONLY = "That token opens the live figures, but not the administration.";
