import { createHash } from "node:crypto";
import { OVER_MS } from "../../quota/member.ts";
import { LEASE_MS, type QuotaGrant, type QuotaNeed, type QuotaShares } from "../../quota/quota_shares.ts";
import { QUOTA_SCRIPT } from "./scripts/quota.ts";

/** A key-value cache that runs one command for a key. */
export interface KvCommands {
  /** Returns the reply; rejects with the reason, an error of the server among them. */
  commandFor(key: string, command: readonly string[]): Promise<unknown>;
}

/** Options of the shares in a key-value cache. */
interface KvQuotaSharesOptions {
  readonly main: KvCommands;
  /** For limits per second; `main` when absent. */
  readonly perSecond?: KvCommands | undefined;
  /** Unique among the instances. */
  readonly instance: string;
  readonly keyPrefix: string;
}

const HASH = createHash("sha1").update(QUOTA_SCRIPT).digest("hex");
/** The error of a server that has not seen the script since it started or since SCRIPT FLUSH. */
const UNKNOWN_SCRIPT = /\bNOSCRIPT\b/;

/** Instances share each quota by a hash with the part of each of them. */
export class KvQuotaShares implements QuotaShares {
  readonly #options: KvQuotaSharesOptions;

  constructor(options: KvQuotaSharesOptions) {
    this.#options = options;
  }

  async exchange({ key, isPerSecond, limit, demand, held }: QuotaNeed): Promise<QuotaGrant> {
    const numbers = [limit, demand, held, LEASE_MS, OVER_MS].map(String);
    const name = this.#options.keyPrefix + key;
    const args = ["1", name, this.#options.instance, ...numbers];
    const cache = this.#cache(isPerSecond);
    const reply = await cache.commandFor(name, ["EVALSHA", HASH, ...args]).catch((error: unknown) => {
      if (!(error instanceof Error && UNKNOWN_SCRIPT.test(error.message))) throw error;
      return cache.commandFor(name, ["EVAL", QUOTA_SCRIPT, ...args]);
    });
    const perSecond = Number(reply);
    if (!Number.isFinite(perSecond)) throw new Error("Cannot share a quota: the script returned no number");
    return { perSecond, leaseMs: LEASE_MS };
  }

  async leave(key: string, isPerSecond: boolean): Promise<void> {
    const name = this.#options.keyPrefix + key;
    await this.#cache(isPerSecond).commandFor(name, ["HDEL", name, this.#options.instance]);
  }

  #cache(isPerSecond: boolean): KvCommands {
    const { main, perSecond = main } = this.#options;
    return isPerSecond ? perSecond : main;
  }
}
