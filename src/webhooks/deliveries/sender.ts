import { Buffer } from "node:buffer";
import type { Clock } from "../../base/clock.ts";
import { parseHttpDate } from "../../base/http_date.ts";
import { GuardedClient, type OutboundCall } from "../../net/outbound/client.ts";
import type { ResponseListener } from "../../net/outbound/connection.ts";
import type { DialOptions, TlsIdentity } from "../../net/outbound/dial.ts";
import { charsetOf } from "../../base/body_text.ts";
import { beginningOf, codingsOf } from "../../net/outbound/response_body.ts";
import { FRAMING, headerText, type ResponseHead } from "../../net/outbound/response_head.ts";
import { SendError } from "../../net/outbound/send_error.ts";
import { type WireTarget, wireTargetOf } from "../../net/outbound/wire_request.ts";
import type { AttemptErrorKind } from "../model/records.ts";
import type { VersionedGrant } from "./access_tokens.ts";
import { maskResponse, type ResponseText } from "./response_mask.ts";

/** The request of one attempt. */
export interface OutgoingDelivery {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly timeoutMs: number;
  /** The client certificate, and the authorities of the receiver. */
  readonly identity?: TlsIdentity | undefined;
  /** Required if `authorization` is an access token. */
  readonly grant?: VersionedGrant | undefined;
  /** Secrets that a response may repeat in addition to the headers. */
  readonly secrets?: readonly string[] | undefined;
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

/** Options of `createSender`. */
export interface SenderOptions extends DialOptions {
  readonly userAgent: string;
}

/** The kept part of a response body. */
export const MAX_RESPONSE_BYTES = 16_384;
const REDIRECTS = [301, 302, 303, 307, 308];

const MAX_TARGETS = 1_000;

/** Creates a sender with its own connections. Throws when the proxy is invalid. */
export function createSender(options: SenderOptions): DeliverySender & { close(): Promise<void> } {
  const { clock } = options;
  // Receivers know a repeated delivery by its UUID.
  const client = new GuardedClient({ ...options, isPlainInsideOnly: true, isReusing: true });
  /** By URL and identity: an endpoint has the same ones every time. */
  const targets = new Map<string, WireTarget>();

  function targetOf({ url, identity }: OutgoingDelivery): WireTarget {
    const name = identity === undefined ? url : `${identity.id} ${url}`;
    const known = targets.get(name);
    if (known !== undefined) return known;
    const target = wireTargetOf(url, identity);
    if (targets.size >= MAX_TARGETS) targets.clear();
    targets.set(name, target);
    return target;
  }

  return {
    async send(delivery, { signal }) {
      if (signal.aborted) return INTERRUPTED;
      const exchange = new Exchange(delivery, clock);
      try {
        const headers = Object.entries(delivery.headers);
        const request = { target: targetOf(delivery), method: "POST", headers, body: delivery.body };
        return await exchange.result(client.send(request, exchange), signal);
      } catch (error) {
        if (error instanceof SendError) return failureOf(error);
        return { errorKind: "unsendable", error: "the request cannot be sent" };
      }
    },
    close: () => client.close(),
  };
}

/** The result of an attempt that was aborted before its response. */
export const INTERRUPTED: SendResult = {
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
  #pieces: Uint8Array<ArrayBuffer>[] = [];
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
    // The header that was left out may be the one that ends the body, which then may never end.
    const hasEnd = FRAMING.some((name) => headerText(head, name) !== undefined);
    if (head.isRepaired && !hasEnd) this.#cut(INTERRUPTED);
  }

  onBody(piece: Uint8Array<ArrayBuffer>): void {
    // A view of a buffer that is used again.
    this.#pieces.push(piece.slice(0, this.#left));
    this.#left -= piece.byteLength;
    if (this.#left <= 0) this.#cut(INTERRUPTED);
  }

  onEnd(): void {
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
    this.#settled.resolve(this.#head === undefined ? failure : this.#result(this.#head, isCut));
  }

  async #result(head: ResponseHead, isCut: boolean): Promise<SendResult> {
    const result = { ...resultOf(head, this.#clock), ...dateOf(head, this.#clock) };
    const text = await keptText(head, { pieces: this.#pieces, isCut });
    return { ...result, response: maskResponse(text, this.#delivery.headers, this.#delivery.secrets) };
  }
}

/** The text of the beginning of a body. */
async function keptText(
  head: ResponseHead,
  { pieces, isCut }: { readonly pieces: Uint8Array<ArrayBuffer>[]; readonly isCut: boolean },
): Promise<ResponseText> {
  const codings = codingsOf(head);
  const bytes = await beginningOf(Buffer.concat(pieces), codings, MAX_RESPONSE_BYTES + 1);
  const isLonger = isCut || bytes.byteLength > MAX_RESPONSE_BYTES;
  // It may be cut within a character.
  const text = decoderOf(bytes, headerText(head, "content-type") ?? "")
    .decode(bytes.subarray(0, MAX_RESPONSE_BYTES), { stream: isLonger });
  return { text, isCut: isLonger };
}

function decoderOf(bytes: Uint8Array, contentType: string): TextDecoder {
  try {
    return new TextDecoder(charsetOf(bytes, contentType));
  } catch {
    return new TextDecoder();
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
  const at = parseHttpDate(value, now);
  return at === undefined ? undefined : Math.max(0, at - now);
}

function dateOf(head: ResponseHead, clock: Clock): Pick<SendResult, "date"> {
  const [, text = ""] = head.headers.find(([name]) => name === "date") ?? [];
  const date = parseHttpDate(text, clock.now());
  return date === undefined ? {} : { date };
}

function failureOf({ kind: errorKind, message, status }: SendError): SendResult {
  return { ...(status === undefined ? {} : { status }), errorKind, error: message };
}
