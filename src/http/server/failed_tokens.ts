import type { Clock } from "../../base/clock.ts";
import { waitUnlessAborted } from "../../base/wait.ts";

/** The delays for wrong tokens of one address. */
export const FAILED_TOKENS = {
  /** Failures without a delay. */
  free: 5,
  /** The first delay; it doubles with each further failure. */
  firstDelayMs: 100,
  maxDelayMs: 5_000,
  forgetMs: 60_000,
  maxAddresses: 1_000,
} as const;

interface Failures {
  count: number;
  at: number;
}

/**
 * Delays the responses to wrong bearer tokens, by address. The right token is never delayed: behind a proxy all clients
 * have one address, and one could lock the others out.
 */
export class FailedTokens {
  readonly #clock: Clock;
  /** By address, the longest unchanged first. */
  readonly #failures = new Map<string, Failures>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Number of remembered addresses. */
  get size(): number {
    return this.#failures.size;
  }

  /** Counts a wrong token and waits for its delay, or until the signal is aborted. */
  async delay(peer: string, signal: AbortSignal): Promise<void> {
    const delayMs = this.#note(networkOf(peer));
    if (delayMs > 0) await waitUnlessAborted(delayMs, this.#clock, signal);
  }

  #note(network: string): number {
    const at = this.#clock.elapsed();
    const known = this.#failures.get(network);
    this.#failures.delete(network);
    const isOld = known === undefined || at - known.at >= FAILED_TOKENS.forgetMs;
    const count = isOld ? 1 : known.count + 1;
    this.#failures.set(network, { count, at });
    const [oldest] = this.#failures.keys();
    if (this.#failures.size > FAILED_TOKENS.maxAddresses && oldest !== undefined) {
      this.#failures.delete(oldest);
    }
    const { free, firstDelayMs, maxDelayMs } = FAILED_TOKENS;
    return count <= free ? 0 : Math.min(maxDelayMs, firstDelayMs * 2 ** (count - free - 1));
  }
}

/** A host with IPv6 has a whole /64 of addresses. */
function networkOf(address: string): string {
  if (!address.includes(":") || address.includes(".")) return address;
  const [left = [], right] = address.split("::").map((part) => part === "" ? [] : part.split(":"));
  const zeros = right === undefined ? [] : Array(8 - left.length - right.length).fill("0");
  return [...left, ...zeros, ...right ?? []].slice(0, 4).join(":");
}
