/**
 * Where a client takes its time from; tests give their own and never wait.
 *
 * @example
 * ```ts
 * import { Client, type Clock, Get } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const waits: number[] = [];
 * const clock: Clock = {
 *   now: () => 0,
 *   elapsed: () => 0,
 *   after(delayMs, run) {
 *     waits.push(delayMs);
 *     queueMicrotask(run);
 *     return () => {};
 *   },
 * };
 * const { fetch } = new ScriptedTransport([{ status: 503, headers: { "retry-after": "20" } }, { body: "up" }]);
 * const client = new Client({ fetch, clock, retry: {} });
 * assertEquals((await client.send({ method: Get, baseURL: "https://api.example.com/" })).body, "up");
 * assertEquals(waits, [20_000]);
 * ```
 */
export interface Clock {
  /** Wall clock time in milliseconds since the Unix epoch, for dates that servers name. */
  now(): number;
  /** Milliseconds since some moment; unlike `now` it never goes back. */
  elapsed(): number;
  /** Calls `run` once, `delayMs` milliseconds from now. The answer cancels it; cancelling twice is fine. */
  after(delayMs: number, run: () => void): () => void;
}

/** The clock of the platform. */
export const platformClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};
