import type { Clock } from "../../base/clock.ts";
import { errorText } from "../../base/error_text.ts";
import { unlessAborted } from "../../base/wait.ts";
import type { TokenGrant } from "../model/credentials.ts";
import { type IssuedToken, requestToken, type TokenFetch } from "./token_request.ts";

/** The grant of an endpoint; another version has other credentials. */
export interface VersionedGrant extends TokenGrant {
  readonly endpointId: string;
  readonly version: string;
}

/** A token, by the clock's `elapsed`. */
interface AccessToken {
  readonly text: string;
  readonly receivedAt: number;
  /** From here on the next one is requested. */
  readonly renewAt: number;
  readonly expiresAt: number;
}

/** The state of a grant. */
interface Entry {
  readonly version: string;
  token?: AccessToken | undefined;
  pending?: Promise<AccessToken> | undefined;
  /** The last request, if it failed, and until when there is no other one. */
  failure?: { readonly error: Error; readonly waitMs: number; readonly until: number } | undefined;
}

/** Options of `AccessTokens`. */
interface AccessTokensOptions {
  readonly fetch: TokenFetch;
  readonly clock: Clock;
}

/** Most endpoints whose tokens are kept; the one that was used least recently is evicted. */
const MAX_ENDPOINTS = 1_000;
/** A token is renewed so long before its end, or in the middle of a shorter life. */
const RENEWAL_MS = 60_000;
/** A younger token is not renewed although the receiver rejects it. */
const MIN_AGE_MS = 5_000;
/** The first wait after a failed request, and the longest. */
const BACKOFF_MS = [1_000, 30_000] as const;
/** The timeout of a request of a token. */
const REQUEST_MS = 10_000;

/** The access tokens of endpoints. Concurrent deliveries of an endpoint share a request. */
export class AccessTokens {
  readonly #options: AccessTokensOptions;
  /** By endpoint, the one used most recently last. */
  readonly #entries = new Map<string, Entry>();
  readonly #requests = new Set<AbortController>();

  constructor(options: AccessTokensOptions) {
    this.#options = options;
  }

  /** A token that has not expired. Rejects with the reason, which has no secret, or with that of the signal. */
  async get(grant: VersionedGrant, signal: AbortSignal): Promise<AccessToken> {
    const entry = this.#entryOf(grant);
    const now = this.#options.clock.elapsed();
    const { token, failure } = entry;
    if (token !== undefined && now < token.renewAt) return token;
    const isValid = token !== undefined && now < token.expiresAt;
    if (failure !== undefined && now < failure.until) {
      if (isValid) return token;
      const seconds = Math.ceil((failure.until - now) / 1_000);
      throw new Error(`${failure.error.message}; the next request is possible in ${seconds} s`);
    }
    entry.pending ??= this.#request(entry, grant).finally(() => entry.pending = undefined);
    try {
      return await unlessAborted(entry.pending, signal);
    } catch (error) {
      // Its end is near, and renewing it failed.
      if (isValid && !signal.aborted) return token;
      throw error;
    }
  }

  /** Forgets a token that the receiver has rejected; false for a new one, which no other one would replace. */
  forget(grant: VersionedGrant, { text, receivedAt }: AccessToken): boolean {
    const entry = this.#entryOf(grant);
    // Another delivery may have replaced it.
    if (entry.token?.text !== text) return true;
    if (this.#options.clock.elapsed() - receivedAt < MIN_AGE_MS) return false;
    entry.token = undefined;
    return true;
  }

  /** Ends the requests. */
  close(): void {
    for (const request of this.#requests) request.abort(new Error("nothing is sent any more"));
  }

  #entryOf({ endpointId, version }: VersionedGrant): Entry {
    const known = this.#entries.get(endpointId);
    const entry = known?.version === version ? known : { version };
    this.#entries.delete(endpointId);
    this.#entries.set(endpointId, entry);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > MAX_ENDPOINTS && oldest !== undefined) this.#entries.delete(oldest);
    return entry;
  }

  async #request(entry: Entry, grant: TokenGrant): Promise<AccessToken> {
    const { fetch, clock } = this.#options;
    const request = new AbortController();
    this.#requests.add(request);
    const late = () => request.abort(new Error(`the token server did not answer within ${REQUEST_MS} ms`));
    const cancelTimer = clock.after(REQUEST_MS, late);
    try {
      const issued = await requestToken(grant, { fetch, signal: request.signal });
      entry.failure = undefined;
      return entry.token = tokenOf(issued, clock.elapsed());
    } catch (cause) {
      const waitMs = Math.min(2 * (entry.failure?.waitMs ?? BACKOFF_MS[0] / 2), BACKOFF_MS[1]);
      const error = new Error(`no access token: ${errorText(cause)}`);
      entry.failure = { error, waitMs, until: clock.elapsed() + waitMs };
      throw error;
    } finally {
      cancelTimer();
      this.#requests.delete(request);
    }
  }
}

function tokenOf({ text, lifetimeMs }: IssuedToken, receivedAt: number): AccessToken {
  const renewAt = receivedAt + lifetimeMs - Math.min(RENEWAL_MS, lifetimeMs / 2);
  return { text, receivedAt, renewAt, expiresAt: receivedAt + lifetimeMs };
}
