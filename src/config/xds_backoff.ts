/** The waits between two attempts to reach a configuration server, in milliseconds. */
export interface XdsWaits {
  /** Before the first attempt after a stream that had delivered something. */
  readonly retryMs: number;
  /** Before the second attempt in a row; doubles with each one up to the longest. */
  readonly initialMs: number;
  /** No wait between attempts in a row is longer, its spread included. */
  readonly maxMs: number;
  /** Spread of the doubling waits, 0 to 1: 0.5 makes each between half and one and a half times as long. */
  readonly spread: number;
}

/** Whatever the settings say: a server that refuses at once is not asked without a pause. */
const SHORTEST_MS = 100;
/** From here on nothing doubles that fits a timer, and powers stay finite. */
const MAX_DOUBLINGS = 40;

/**
 * How long to wait after so many attempts in a row that delivered nothing: 0 after a stream that did.
 * `random` is a number from 0 to below 1.
 */
export function xdsWaitMs(failures: number, waits: XdsWaits, random: number): number {
  const waitMs = failures === 0 ? waits.retryMs : spreadMs(failures, waits, random);
  return Math.max(waitMs, SHORTEST_MS);
}

function spreadMs(failures: number, { initialMs, maxMs, spread }: XdsWaits, random: number): number {
  const doubledMs = initialMs * 2 ** Math.min(failures - 1, MAX_DOUBLINGS);
  return Math.min(Math.min(doubledMs, maxMs) * (1 + spread * (2 * random - 1)), maxMs);
}
