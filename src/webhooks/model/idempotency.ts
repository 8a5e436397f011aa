/** How long the answer of an accepted request is given again for the same key. */
export const KEY_LIVES_MS = 86_400_000;

/** Whether a key that was accepted then still stands for its answer; a clock that went back lets it live on. */
export function isLive(acceptedAt: number, now: number): boolean {
  return now - acceptedAt < KEY_LIVES_MS;
}
