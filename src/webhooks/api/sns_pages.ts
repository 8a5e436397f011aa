import { X509Certificate } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { certificatesIn } from "../../net/pem.ts";
import { Client, type Fetch } from "../../rest/mod.ts";

interface SnsPagesOptions {
  /** Refuses addresses of private networks, and follows no redirect. */
  readonly fetch: Fetch;
  readonly clock: Clock;
}

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 16_384;
/** The first one and those that issued it. */
const MAX_CHAIN = 4;
/** Amazon has one for each region and year or so. */
const MAX_CACHED = 32;
/** Anyone who knows a topic can name certificates that do not exist. */
const MAX_REQUESTS = 10;
const REQUESTS_MS = 60_000;

/** A page cannot be asked for, or is not answered: the call is to be repeated later. */
export class PageError extends Error {
  override readonly name = "PageError";
}

/** Pages of Amazon SNS. The caller checks the URLs. */
export class SnsPages {
  readonly #client: Client;
  readonly #clock: Clock;
  /** By URL; of requests in flight, too. */
  readonly #chains = new Map<string, Promise<readonly X509Certificate[]>>();
  /** The times of the last requests, by the clock's `elapsed`. */
  #begun: readonly number[] = [];

  constructor({ fetch, clock }: SnsPagesOptions) {
    this.#client = new Client({
      fetch,
      clock,
      redirect: "manual",
      totalTimeoutMs: TIMEOUT_MS,
      maxResponseBytes: MAX_BYTES,
    });
    this.#clock = clock;
  }

  /** The first certificate at a URL, if all of them are usable; only these are kept. Throws a `PageError`. */
  async certificate(
    url: string,
    isUsable: (chain: readonly X509Certificate[]) => boolean,
  ): Promise<X509Certificate | undefined> {
    const reading = this.#chains.get(url) ?? this.#begin(url);
    const chain = await reading.catch((error: unknown) => {
      this.#chains.delete(url);
      throw error;
    });
    if (isUsable(chain)) return chain[0];
    this.#chains.delete(url);
    return undefined;
  }

  /** Requests a URL and returns whether it succeeded. Throws a `PageError`. */
  async visit(url: string): Promise<boolean> {
    return (await this.#get(url)).status === 200;
  }

  #begin(url: string): Promise<readonly X509Certificate[]> {
    const [oldest] = this.#chains.keys();
    if (this.#chains.size >= MAX_CACHED && oldest !== undefined) this.#chains.delete(oldest);
    const reading = this.#read(url);
    this.#chains.set(url, reading);
    return reading;
  }

  async #read(url: string): Promise<readonly X509Certificate[]> {
    const { status, body } = await this.#get(url);
    const texts = status === 200 ? certificatesIn(body) : [];
    if (texts.length > MAX_CHAIN) return [];
    try {
      return texts.map((text) => new X509Certificate(text));
    } catch {
      return [];
    }
  }

  async #get(url: string): Promise<{ readonly status: number; readonly body: string }> {
    const now = this.#clock.elapsed();
    this.#begun = this.#begun.filter((at) => now - at < REQUESTS_MS);
    if (this.#begun.length >= MAX_REQUESTS) {
      throw new PageError(`Cannot ask Amazon SNS: ${MAX_REQUESTS} requests in the last minute`);
    }
    this.#begun = [...this.#begun, now];
    try {
      const { statusCode, body } = await this.#client.send({ method: "GET", baseURL: url });
      if (statusCode < 500 && statusCode !== 429) return { status: statusCode, body };
      throw new Error(`it responded with ${statusCode}`);
    } catch (cause) {
      throw new PageError("Cannot ask Amazon SNS", { cause });
    }
  }
}
