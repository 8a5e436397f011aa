import type { Clock } from "../../base/clock.ts";
import { readAuthoritiesSync } from "../../base/tls_files.ts";
import { GuardedClient, type OutboundCall } from "../outbound/client.ts";
import type { ResponseListener } from "../outbound/connection.ts";
import type { DialOptions } from "../outbound/dial.ts";
import { headerText, type ResponseHead } from "../outbound/response_head.ts";
import { SendError } from "../outbound/send_error.ts";
import { type WireTarget, wireTargetOf } from "../outbound/wire_request.ts";
import type { AttemptErrorKind } from "../model/records.ts";
import { maskResponse } from "./response_mask.ts";

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
  /** The receiver's time, by the `Date` header of its response; absent without a valid one. */
  readonly date?: number | undefined;
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
const FRAMING = ["content-length", "transfer-encoding"];
const REDIRECTS = [301, 302, 303, 307, 308];

const MAX_TARGETS = 1_000;

/** Creates a sender with its own connections. Throws when the file of authorities or the proxy is invalid. */
export function createSender(options: SenderOptions): DeliverySender & { close(): Promise<void> } {
  const { userAgent, clock } = options;
  // Receivers know a repeated delivery by its UUID.
  const client = new GuardedClient({ ...dialOptions(options), isReusing: true });
  /** By URL: an endpoint has the same one every time. */
  const targets = new Map<string, WireTarget>();

  function targetAt(url: string): WireTarget {
    const known = targets.get(url);
    if (known !== undefined) return known;
    const target = wireTargetOf(url);
    if (targets.size >= MAX_TARGETS) targets.clear();
    targets.set(url, target);
    return target;
  }

  return {
    async send(delivery, { signal }) {
      if (signal.aborted) return INTERRUPTED;
      const exchange = new Exchange(delivery, clock);
      try {
        const headers = Object.entries({ "user-agent": userAgent, ...delivery.headers });
        const request = { target: targetAt(delivery.url), method: "POST", headers, body: delivery.body };
        return await exchange.result(client.send(request, exchange), signal);
      } catch (error) {
        if (error instanceof SendError) return failureOf(error);
        return { errorKind: "unsendable", error: "the request cannot be sent" };
      }
    },
    close: () => client.close(),
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

/** One attempt: its response up to the bytes that are kept, or its failure. After the head the status decides alone. */
class Exchange implements ResponseListener {
  readonly #delivery: OutgoingDelivery;
  readonly #clock: Clock;
  readonly #settled = Promise.withResolvers<SendResult>();
  #call: OutboundCall | undefined;
  #head: ResponseHead | undefined;
  #decoder: TextDecoder | undefined;
  #text = "";
  #left = MAX_RESPONSE_BYTES;

  constructor(delivery: OutgoingDelivery, clock: Clock) {
    this.#delivery = delivery;
    this.#clock = clock;
  }

  /** The result of a call, with the timeout of the delivery. */
  async result(call: OutboundCall, signal: AbortSignal): Promise<SendResult> {
    this.#call = call;
    const { timeoutMs } = this.#delivery;
    const late: SendResult = { errorKind: "timeout", error: `no answer within ${timeoutMs} ms` };
    const cancelTimer = this.#clock.after(timeoutMs, () => this.#cut(late));
    const onAbort = () => this.#cut(INTERRUPTED);
    signal.addEventListener("abort", onAbort);
    // A lookup may have aborted it.
    if (signal.aborted) onAbort();
    try {
      return await this.#settled.promise;
    } finally {
      cancelTimer();
      signal.removeEventListener("abort", onAbort);
    }
  }

  /** From here on the status settles the attempt, with the headers that can be read. */
  onStatus(head: ResponseHead): void {
    this.#head = head;
  }

  onHead(head: ResponseHead): void {
    this.#head = head;
    // A part of an encoded body is no text.
    if (!/^(?:identity)?$/i.test(headerText(head, "content-encoding") ?? "")) this.#left = 0;
    // A header that was left out may have told where the body ends: nothing else might, for as long as it may take.
    const hasEnd = FRAMING.some((name) => headerText(head, name) !== undefined);
    if (head.isOdd && !hasEnd) this.#cut(INTERRUPTED);
  }

  onBody(piece: Uint8Array<ArrayBuffer>): void {
    if (this.#left > 0) {
      this.#decoder ??= new TextDecoder();
      this.#text += this.#decoder.decode(piece.subarray(0, this.#left), { stream: true });
      this.#left -= piece.byteLength;
    }
    if (this.#left <= 0) this.#cut(INTERRUPTED);
  }

  onEnd(): void {
    this.#text += this.#decoder?.decode() ?? "";
    this.#settle(INTERRUPTED, false);
  }

  onError(error: SendError): void {
    this.#settle(failureOf(error), true);
  }

  #cut(failure: SendResult): void {
    this.#call?.cancel();
    this.#settle(failure, true);
  }

  /** `failure` is the result without a head; a cut body may end in the middle of what is masked. */
  #settle(failure: SendResult, isCut: boolean): void {
    if (this.#head === undefined) return this.#settled.resolve(failure);
    const response = maskResponse({ text: this.#text, isCut }, this.#delivery.headers);
    this.#settled.resolve({
      ...resultOf(this.#head, this.#clock),
      response,
      ...dateOf(this.#head),
    });
  }
}

function resultOf(head: ResponseHead, clock: Clock): SendResult {
  const { status } = head;
  if (status >= 200 && status < 300) return { status };
  // The first of several: a date contains a comma, so combined values are ambiguous.
  const [, after] = head.headers.find(([name]) => name === "retry-after") ?? [];
  const retryAfterMs = after === undefined ? undefined : parseRetryAfter(after, clock.now());
  const asked = retryAfterMs === undefined ? {} : { retryAfterMs };
  if (REDIRECTS.includes(status)) {
    const error = `the receiver responded with ${status}, and redirects are not followed`;
    return { status, errorKind: "redirect", error, ...asked };
  }
  return { status, errorKind: "status", error: `the receiver responded with ${status}`, ...asked };
}

/** The milliseconds of a `Retry-After`; nothing for an invalid one. */
export function parseRetryAfter(text: string, now: number): number | undefined {
  const value = text.trim();
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1_000;
  const at = parseHttpDate(value);
  return at === undefined ? undefined : Math.max(0, at - now);
}

function parseHttpDate(text: string): number | undefined {
  // The only date format of HTTP that is still in use.
  if (!/^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}

function dateOf(head: ResponseHead): Pick<SendResult, "date"> {
  const [, text = ""] = head.headers.find(([name]) => name === "date") ?? [];
  const date = parseHttpDate(text.trim());
  return date === undefined ? {} : { date };
}

function failureOf({ kind: errorKind, message, status }: SendError): SendResult {
  return { ...(status === undefined ? {} : { status }), errorKind, error: message };
}
