/** Most texts that are remembered, and the longest. */
const MAX_TEXTS = 256;
const MAX_LENGTH = 256;

/**
 * Remembers texts that stood a test, because the same few URLs and names come again and again: to look them up
 * takes a small part of the time of the test.
 */
export class KnownTexts {
  readonly #stands: (text: string) => boolean;
  readonly #known = new Set<string>();

  constructor(stands: (text: string) => boolean) {
    this.#stands = stands;
  }

  /** Whether the text stands the test. */
  has(text: string): boolean {
    if (this.#known.has(text)) return true;
    if (!this.#stands(text)) return false;
    // Where ever new texts come, the old ones are worth nothing.
    if (this.#known.size >= MAX_TEXTS) this.#known.clear();
    if (text.length <= MAX_LENGTH) this.#known.add(text);
    return true;
  }
}
