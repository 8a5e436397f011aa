/** The parts of the service that a token gives access to. */
export type TokenUse = "live" | "administration";

/** A place that keeps tokens while the tab is open. */
type TokenStorage = Pick<Storage, "getItem" | "setItem" | "removeItem">;

/**
 * The tokens, in memory only unless the reader keeps them for the tab. ADMIN_TOKEN also gives access to the live statistics; a token given for those is tried
 * once for the administration, because it may be ADMIN_TOKEN.
 */
export class Session {
  #live: string | undefined;
  #administration: string | undefined;
  #isLiveOnly = false;
  /** The token whose owner may change nothing. */
  #readToken: string | undefined;
  /** The token whose role is known. */
  #knownToken: string | undefined;
  readonly #problems = new Map<TokenUse, string>();
  readonly #listeners = new Set<() => void>();
  readonly #storage: TokenStorage | undefined;

  constructor(storage?: TokenStorage) {
    this.#storage = storage;
    this.restore();
  }

  /** Takes the tokens that were kept for the tab. */
  restore(): void {
    this.#live = this.#storage?.getItem("live") ?? undefined;
    this.#administration = this.#storage?.getItem("administration") ?? undefined;
    if (this.holdsToken) this.#notify();
  }

  /** Returns whether a token is kept for the tab. */
  get isKept(): boolean {
    return USES.some((use) => typeof this.#storage?.getItem(use) === "string");
  }

  /** The token to send; undefined when none is known. */
  tokenFor(use: TokenUse): string | undefined {
    if (use === "live") return this.#administration ?? this.#live;
    return this.#administration ?? (this.#isLiveOnly ? undefined : this.#live);
  }

  /** Returns whether the token of the administration allows no changes. */
  get isReadOnly(): boolean {
    const token = this.tokenFor("administration");
    return token !== undefined && token === this.#readToken;
  }

  /** Returns whether the role of a token is known. */
  knowsRole(token: string): boolean {
    return token === this.#knownToken;
  }

  learnRole(token: string, role: string): void {
    this.#knownToken = token;
    this.#readToken = role === "read" ? token : undefined;
    if (role === "read") this.#notify();
  }

  get holdsToken(): boolean {
    return this.#live !== undefined || this.#administration !== undefined;
  }

  holds(token: string): boolean {
    return token === this.#live || token === this.#administration;
  }

  /** Why a token was rejected. */
  problem(use: TokenUse): string | undefined {
    return this.#problems.get(use);
  }

  /** Kept for the tab, the token outlives a reload. */
  store(use: TokenUse, token: string, isKept = false): void {
    if (isKept) this.#storage?.setItem(use, token);
    else this.#storage?.removeItem(use);
    if (use === "live") {
      this.#live = token;
      this.#isLiveOnly = false;
    } else {
      this.#administration = token;
    }
    this.#problems.clear();
    this.#notify();
  }

  /** The service responded with 401 to this token, or to no token. */
  reject(use: TokenUse, token: string | undefined): void {
    if (token !== this.tokenFor(use)) return;
    if (token !== undefined && token === this.#administration) {
      this.#storage?.removeItem("administration");
      this.#administration = undefined;
      this.#problems.set("live", REJECTED).set("administration", REJECTED);
    } else if (use === "live") {
      this.#storage?.removeItem("live");
      this.#live = undefined;
      if (token !== undefined) this.#problems.set(use, REJECTED);
    } else {
      this.#isLiveOnly = true;
      this.#problems.set(use, LIVE_ONLY);
    }
    this.#notify();
  }

  /** Forgets all tokens, those of the tab too unless `keepsTab`. */
  forget({ keepsTab = false } = {}): void {
    if (!keepsTab) { for (const use of USES) this.#storage?.removeItem(use); }
    this.#live = undefined;
    this.#administration = undefined;
    this.#isLiveOnly = false;
    this.#readToken = this.#knownToken = undefined;
    this.#problems.clear();
    this.#notify();
  }

  /** Calls `listener` on every change; returns a function that unsubscribes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}

const USES = ["live", "administration"] as const;
const REJECTED = "The service rejected the token.";
const LIVE_ONLY = "This token gives access to the live statistics, but not to the administration.";
