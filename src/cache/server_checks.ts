/** The server closed the connection when it was asked for its state: the next attempt asks in another way. */
export class UnreportedState extends Error {
  override readonly name = "UnreportedState";
}

/** Attempts until it is known whether a server reports its state. */
const MAX_CHECKS = 3;

/** Repeats an attempt to connect whose server has to be asked in another way. */
export async function untilStateIsKnown<C>(attempt: () => Promise<C>): Promise<C> {
  for (let check = 1;; check++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof UnreportedState) || check === MAX_CHECKS) throw error;
    }
  }
}

/** Most addresses that are remembered; the oldest is forgotten first. */
const MAX_ADDRESSES = 1_000;

/**
 * Remembers the servers that close a connection when they are asked for their state, as a proxy does that does not know
 * the command. Their connections are checked by a command that counting requires, which says less.
 */
export class ServerChecks {
  /** Why a server is not asked for its state, by its address; empty where it has reported it. */
  readonly #servers = new Map<string, string>();
  readonly #onUnknown: ((address: string, reason: string) => void) | undefined;
  #isReported = false;

  /** `onUnknown` is called for the first usable server whose state is unknown. */
  constructor(onUnknown?: (address: string, reason: string) => void) {
    this.#onUnknown = onUnknown;
  }

  /** Why a server is not asked for its state; undefined where it is asked. */
  skipped(address: string): string | undefined {
    return this.#servers.get(address) || undefined;
  }

  /** The server reported its state, so one lost connection does not mean that it does not know the command. */
  answered(address: string): void {
    this.#set(address, "");
  }

  /** The connection ended before the server reported its state: the next one does not ask for it. */
  skip(address: string, reason: string): void {
    if (this.#servers.get(address) === "") this.ask(address);
    else this.#set(address, reason);
  }

  /** The other check failed as well, so the command was not the reason. */
  ask(address: string): void {
    this.#servers.delete(address);
  }

  /** A server is usable, but did not report its state. */
  passed(address: string, reason: string): void {
    if (!this.#isReported) this.#onUnknown?.(address, reason);
    this.#isReported = true;
  }

  #set(address: string, reason: string): void {
    this.#servers.set(address, reason);
    const [oldest] = this.#servers.keys();
    if (this.#servers.size > MAX_ADDRESSES && oldest !== undefined) this.#servers.delete(oldest);
  }
}
