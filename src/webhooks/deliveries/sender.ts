import type { Clock } from "../../base/clock.ts";
import { readAuthoritiesSync } from "../../base/tls_files.ts";
import { Client, Post, RestError, type StreamResponse } from "../../rest/mod.ts";
import type { DialOptions } from "../outbound/dial.ts";
import { createGuardedFetch } from "../outbound/fetch.ts";
import type { AttemptErrorKind } from "../model/records.ts";
import { maskResponse, type ResponseText } from "./response_mask.ts";
import { SendError } from "../outbound/send_error.ts";

/** The request of one attempt. */
export interface OutgoingDelivery {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly timeoutMs: number;
}

/** The result of an attempt; a status from 200 to 299 without `errorKind` acknowledges it. */
export interface SendResult {
  readonly status?: number | undefined;
  readonly errorKind?: AttemptErrorKind | undefined;
  /** For people; holds no secret, no URL and no header. */
  readonly error?: string | undefined;
  readonly response?: string | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** Sends deliveries. */
export interface DeliverySender {
  /** Never rejects. When the signal is aborted before the response, the attempt is `interrupted`. */
  send(request: OutgoingDelivery, options: { readonly signal: AbortSignal }): Promise<SendResult>;
}

/** How receivers are reached. */
export interface NetworkOptions extends Omit<DialOptions, "authorities" | "proxy" | "isPlainInsideOnly"> {
  /** A PEM file of authorities that are trusted in addition to the platform's. */
  readonly caFile?: string | undefined;
  /** The URL of an HTTP proxy, which then decides which addresses may be reached. */
  readonly proxy?: string | undefined;
}

/** How deliveries are sent. */
export interface SenderOptions extends NetworkOptions {
  readonly userAgent: string;
}

/** How much of a response body is kept. */
export const MAX_RESPONSE_BYTES = 16_384;
const REDIRECTS = [301, 302, 303, 307, 308];

/** Creates a sender with its own connections. Throws when the file of authorities or the proxy is invalid. */
export function createSender(options: SenderOptions): DeliverySender & { close(): Promise<void> } {
  const { userAgent, clock } = options;
  // Receivers know a repeated delivery by its UUID.
  const fetch = createGuardedFetch({ ...dialOptions(options), isReusing: true });
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

/** The options of a dialler for deliveries. Throws when the file of authorities or the proxy is invalid. */
export function dialOptions(
  { allow, connectTimeoutMs, clock, lookup, caFile, proxy }: NetworkOptions,
): DialOptions {
  return {
    ...{ allow, connectTimeoutMs, clock, lookup, isPlainInsideOnly: true },
    authorities: caFile === undefined ? undefined : readAuthoritiesSync("WEBHOOK_CA_FILE", caFile),
    proxy: proxy === undefined ? undefined : new URL(proxy),
  };
}

const INTERRUPTED: SendResult = {
  errorKind: "interrupted",
  error: "interrupted before the response arrived",
};

function resultOf({ statusCode: status, headers }: StreamResponse, clock: Clock): SendResult {
  if (status >= 200 && status < 300) return { status };
  const [after] = headers["retry-after"] ?? [];
  const retryAfterMs = after === undefined ? undefined : parseRetryAfter(after, clock.now());
  const asked = retryAfterMs === undefined ? {} : { retryAfterMs };
  if (REDIRECTS.includes(status)) {
    const error = `the receiver responded with ${status}, and redirects are not followed`;
    return { status, errorKind: "redirect", error, ...asked };
  }
  return { status, errorKind: "status", error: `the receiver responded with ${status}`, ...asked };
}

/** The beginning of the body, up to where it broke off, or took too long. */
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
    // The status decides alone.
  }
  reader.cancel().catch(() => {});
  return { text, isCut: true };
}

/** The milliseconds of a `Retry-After`; nothing for an invalid one. */
export function parseRetryAfter(text: string, now: number): number | undefined {
  const value = text.trim();
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1_000;
  // The only date format of HTTP that is still in use.
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
