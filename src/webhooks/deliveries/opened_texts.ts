import type { Unsealer } from "./dispatcher_options.ts";
import type { Sealed } from "../model/records.ts";

/** Most texts that are remembered. */
const MAX_TEXTS = 1_000;

/** Remembers what was unsealed: every attempt of an endpoint needs the same secret, and opening it takes a while. */
export class OpenedTexts implements Unsealer {
  readonly #box: Unsealer;
  readonly #texts = new Map<string, string>();

  constructor(box: Unsealer) {
    this.#box = box;
  }

  async unseal(sealed: Sealed): Promise<string> {
    const name = `${sealed.keyId} ${String.fromCharCode(...sealed.bytes.subarray(0, 64))}`;
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    const text = await this.#box.unseal(sealed);
    if (this.#texts.size >= MAX_TEXTS) this.#texts.clear();
    this.#texts.set(name, text);
    return text;
  }
}
