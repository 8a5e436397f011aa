/** Time in which the answer of an accepted request is repeated for the same key. */
export const KEY_LIVES_MS = 86_400_000;

/** Returns whether a key accepted at this time is still live; a clock that was set back keeps it live. */
export function isLive(acceptedAt: number, now: number): boolean {
  return now - acceptedAt < KEY_LIVES_MS;
}
