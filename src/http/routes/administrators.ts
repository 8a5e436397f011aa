import type { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import type { Administrator } from "../../webhooks/api/administrator.ts";
import { tokenDigest } from "./token_digest.ts";

/** The token of an administrator. */
interface AdministratorToken extends Administrator {
  readonly token: string;
}

interface Known {
  readonly administrator: Administrator;
  readonly digest: Buffer;
}

/** Who may call the administration API, by their tokens. Where there can never be any, the API does not exist. */
export class Administrators {
  #known: readonly Known[] = [];
  readonly #mayCome: boolean;
  #replaced = new AbortController();

  /** `mayCome`: whether there may be tokens later, although there are none now. */
  constructor(tokens: readonly AdministratorToken[] = [], { mayCome = false } = {}) {
    this.#mayCome = mayCome;
    this.replace(tokens);
  }

  /** True when the API exists. Without a token, it then refuses every call. */
  get isEnabled(): boolean {
    return this.#mayCome || this.#known.length > 0;
  }

  /** Aborted when the tokens are replaced: what one of them has opened must end, because it may be revoked. */
  get replaced(): AbortSignal {
    return this.#replaced.signal;
  }

  /** The owner of a token, if any. Compares with all tokens, so that the time tells nothing about them. */
  authenticate(token: string): Administrator | undefined {
    const shown = tokenDigest(token);
    let found: Administrator | undefined;
    for (const { administrator, digest } of this.#known) {
      if (timingSafeEqual(shown, digest)) found = administrator;
    }
    return found;
  }

  /** Replaces all tokens; their names and texts are unique. */
  replace(tokens: readonly AdministratorToken[]): void {
    this.#known = tokens.map(({ name, role, token }) => ({
      administrator: { name, role },
      digest: tokenDigest(token),
    }));
    this.#replaced.abort();
    this.#replaced = new AbortController();
  }
}
