/** How long the answer of an accepted request is given again for the same key. */
export const KEY_LIVES_MS = 86_400_000;
/** How long an `Idempotency-Key` may be. */
export const MAX_KEY_LENGTH = 255;

// deno-lint-ignore no-control-regex
const CONTROLS = /[\0-\x1f\x7f]/;

/** Whether a key that was accepted then still stands for its answer; a clock that went back lets it live on. */
export function isLive(acceptedAt: number, now: number): boolean {
  return now - acceptedAt < KEY_LIVES_MS;
}

/** What is wrong with the value of an `Idempotency-Key`; nothing when it may be used. */
export function idempotencyKeyProblem(key: string): string | undefined {
  const wanted = `1 to ${MAX_KEY_LENGTH} characters would be right`;
  if (key === "") return `the Idempotency-Key is empty; ${wanted}`;
  if (key.length > MAX_KEY_LENGTH) return `the Idempotency-Key has ${key.length} characters; ${wanted}`;
  if (CONTROLS.test(key)) return `the Idempotency-Key holds a control character; ${wanted}, without any`;
  return undefined;
}
