import type { Clock } from "../../base/clock.ts";
import { readAuthoritiesSync } from "../../base/tls_files.ts";
import { Client, Post, RestError, type StreamResponse } from "../../rest/mod.ts";
import type { Cidrs } from "../model/address_ranges.ts";
import type { Lookup } from "../outbound/dial.ts";
import { createGuardedFetch } from "../outbound/fetch.ts";
import type { AttemptErrorKind } from "../model/records.ts";
import { maskResponse, type ResponseText } from "./response_mask.ts";
import { SendError } from "../outbound/send_error.ts";

/** The request of one attempt. */
export interface OutgoingDelivery {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Of the whole attempt. */
  readonly timeoutMs: number;
}

/** What came of an attempt; a status from 200 to 299 without `errorKind` acknowledges it. */
export interface SendResult {
  readonly status?: number | undefined;
  readonly errorKind?: AttemptErrorKind | undefined;
  /** For people; holds no secret, no URL and no header. */
  readonly error?: string | undefined;
  /** The beginning of the response's body. */
  readonly response?: string | undefined;
  /** How long the receiver asks to be left alone. */
  readonly retryAfterMs?: number | undefined;
}

/** Sends deliveries. */
export interface DeliverySender {
  /** Never rejects. When the signal is aborted before there is an answer, the attempt is `interrupted`. */
  send(request: OutgoingDelivery, options: { readonly signal: AbortSignal }): Promise<SendResult>;
}

/** How deliveries are sent. */
export interface SenderOptions {
  /** Ranges that are open although they are blocked for others. */
  readonly allow: Cidrs;
  readonly connectTimeoutMs: number;
  /** A PEM file of authorities that are trusted beside the platform's. */
  readonly caFile?: string | undefined;
  /** The URL of an HTTP proxy, which then decides what addresses may be reached. */
  readonly proxy?: string | undefined;
  /** For requests that name none. */
  readonly userAgent: string;
  readonly clock: Clock;
  /** The platform's own when absent. */
  readonly lookup?: Lookup | undefined;
}

/** How much is kept of a response's body. */
export const MAX_RESPONSE_BYTES = 16_384;
const REDIRECTS = [301, 302, 303, 307, 308];

/** A sender with connections of its own. Throws when the file of authorities or the proxy cannot be used. */
export function createSender(options: SenderOptions): DeliverySender & { close(): Promise<void> } {
  const { caFile, proxy, userAgent, clock, allow, connectTimeoutMs, lookup } = options;
  const fetch = createGuardedFetch({
    ...{ allow, connectTimeoutMs, clock, lookup },
    authorities: caFile === undefined ? undefined : readAuthoritiesSync("WEBHOOK_CA_FILE", caFile),
    proxy: proxy === undefined ? undefined : new URL(proxy),
    isPlainInsideOnly: true,
    // Receivers know a delivery by its UUID.
    isReusing: true,
  });
  const client = new Client({ fetch, clock, redirect: "manual" });
  return {
    async send({ url, headers, body, timeoutMs }, { signal }) {
      const named = { "user-agent": userAgent, ...headers };
      try {
        const request = { method: Post, baseURL: url, headers: named, body };
        const answer = await client.sendStream(request, { signal, timeoutMs });
        const response = maskResponse(await beginningOf(answer), headers);
        return { ...resultOf(answer, clock), response };
      } catch (error) {
        return signal.aborted ? INTERRUPTED : failureOf(error, timeoutMs);
      }
    },
    close: () => fetch.close(),
  };
}

const INTERRUPTED: SendResult = { errorKind: "interrupted", error: "it was given up before an answer came" };

function resultOf({ statusCode: status, headers }: StreamResponse, clock: Clock): SendResult {
  if (status >= 200 && status < 300) return { status };
  const [after] = headers["retry-after"] ?? [];
  const retryAfterMs = after === undefined ? undefined : parseRetryAfter(after, clock.now());
  const asked = retryAfterMs === undefined ? {} : { retryAfterMs };
  if (REDIRECTS.includes(status)) {
    const error = `the receiver answered ${status}, and redirects are not followed`;
    return { status, errorKind: "redirect", error, ...asked };
  }
  return { status, errorKind: "status", error: `the receiver answered ${status}`, ...asked };
}

/** As much of the body as is kept; one that breaks off, or takes too long, is worth what came of it. */
async function beginningOf({ bodyStream, headers }: StreamResponse): Promise<ResponseText> {
  const decoder = new TextDecoder();
  const isEncoded = !/^(?:identity)?$/i.test(headers["content-encoding"]?.[0] ?? "");
  let text = "";
  let left = isEncoded ? 0 : MAX_RESPONSE_BYTES;
  const reader = bodyStream.getReader();
  try {
    while (left > 0) {
      const { done, value } = await reader.read();
      if (done) return { text: text + decoder.decode(), isCut: false };
      text += decoder.decode(value.subarray(0, left), { stream: true });
      left -= value.byteLength;
    }
  } catch {
    // The status line has said all that counts.
  }
  reader.cancel().catch(() => {});
  return { text, isCut: true };
}

/** Milliseconds that a `Retry-After` asks for; nothing for one that says nothing. */
export function parseRetryAfter(text: string, now: number): number | undefined {
  const value = text.trim();
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1_000;
  // Of the forms of dates in HTTP the one that is still written.
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(value)) return undefined;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

function failureOf(error: unknown, timeoutMs: number): SendResult {
  if (!(error instanceof RestError)) {
    return { errorKind: "unsendable", error: "the request cannot be sent" };
  }
  if (error.code === "timeout") {
    return { errorKind: "timeout", error: `no answer within ${timeoutMs} ms` };
  }
  const { cause } = error;
  if (cause instanceof SendError) {
    const { kind: errorKind, message, status } = cause;
    return { ...(status === undefined ? {} : { status }), errorKind, error: message };
  }
  if (error.code === "network") return { errorKind: "reset", error: "the connection failed" };
  return { errorKind: "unsendable", error: `the request cannot be sent (${error.code})` };
}
