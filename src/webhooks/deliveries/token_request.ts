import { Buffer } from "node:buffer";
import type { TokenGrant } from "../model/credentials.ts";

/** Sends a request through the guard of outbound connections, and follows no redirects. */
export type TokenFetch = (url: string, init: RequestInit) => Promise<Response>;

/** A token as it was issued. */
export interface IssuedToken {
  readonly text: string;
  readonly lifetimeMs: number;
}

/** Options of `requestToken`. */
interface TokenRequestOptions {
  readonly fetch: TokenFetch;
  /** Its reason is thrown when it is aborted. */
  readonly signal: AbortSignal;
}

const MAX_BYTES = 65_536;
const TOKEN = /^[!-~]{1,8192}$/;
/** The life of a token whose server does not set it. */
const DEFAULT_LIFETIME_S = 300;
/** The longest life, so that a revoked token does not stay. */
const MAX_LIFETIME_S = 86_400;
/** Errors of RFC 6749 and its extensions; others could repeat a secret. */
const ERRORS = new Set([
  ...["invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type"],
  ...["invalid_scope", "invalid_target", "access_denied", "server_error", "temporarily_unavailable"],
]);

/** Requests an access token by client credentials. Rejects with the reason, which repeats nothing of the response. */
export async function requestToken(
  grant: TokenGrant,
  { fetch, signal }: TokenRequestOptions,
): Promise<IssuedToken> {
  try {
    const response = await fetch(grant.tokenUrl, { ...requestOf(grant), signal });
    const text = await bodyOf(response);
    if (response.status !== 200) throw refusalOf(response.status, text);
    return tokenIn(text);
  } catch (error) {
    // The body of an aborted request ends with another error.
    throw signal.aborted ? signal.reason : error;
  }
}

function requestOf({ clientId, clientSecret, scope, audience, credentialsIn = "header" }: TokenGrant) {
  const body = new URLSearchParams({ grant_type: "client_credentials" });
  if (scope !== undefined) body.set("scope", scope);
  if (audience !== undefined) body.set("audience", audience);
  const headers = new Headers({
    "content-type": "application/x-www-form-urlencoded",
    accept: "application/json",
  });
  if (credentialsIn === "body") {
    body.set("client_id", clientId);
    body.set("client_secret", clientSecret);
  } else {
    const credentials = `${formEncoded(clientId)}:${formEncoded(clientSecret)}`;
    headers.set("authorization", `Basic ${btoa(credentials)}`);
  }
  return { method: "POST", headers, body: body.toString() };
}

/** RFC 6749 encodes both before HTTP Basic does. */
function formEncoded(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}

/** The text of a body, within the limit. */
async function bodyOf(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let left = MAX_BYTES;
  for await (const piece of response.body ?? []) {
    left -= piece.byteLength;
    if (left < 0) throw new Error(`the response of the token server has more than ${MAX_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

function refusalOf(status: number, text: string): Error {
  const answered = `the token server responded with ${status}`;
  if (status >= 300 && status < 400) return new Error(`${answered}, and redirects are not followed`);
  const error = membersOf(text)?.["error"];
  return new Error(typeof error === "string" && ERRORS.has(error) ? `${answered} (${error})` : answered);
}

function tokenIn(body: string): IssuedToken {
  const members = membersOf(body);
  if (members === undefined) throw new Error("the response of the token server is not a JSON object");
  const { access_token: text, token_type: type = "bearer", expires_in: lifetime } = members;
  if (typeof text !== "string" || !TOKEN.test(text)) {
    throw new Error("the response of the token server has no valid access_token");
  }
  if (typeof type !== "string" || type.toLowerCase() !== "bearer") {
    throw new Error("the token of the token server is not of the type bearer");
  }
  return { text, lifetimeMs: 1_000 * lifetimeOf(lifetime) };
}

/** Some servers write the number as a text. */
function lifetimeOf(value: unknown): number {
  if (value === undefined || value === null) return DEFAULT_LIFETIME_S;
  const seconds = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
  if (typeof seconds !== "number" || !Number.isFinite(seconds)) {
    throw new Error("the response of the token server has no valid expires_in");
  }
  if (seconds <= 0) throw new Error("the token of the token server has already expired");
  return Math.min(seconds, MAX_LIFETIME_S);
}

function membersOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? value as Readonly<Record<string, unknown>> : undefined;
  } catch {
    return undefined;
  }
}
