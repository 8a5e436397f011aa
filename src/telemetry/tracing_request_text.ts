import { shownText } from "../base/byte_text.ts";
import type { Descriptor, RateLimitRequest } from "../ratelimit/request.ts";

/** Longest text of a request in a span. */
export const MAX_REQUEST_TEXT = 4_096;

/** A request of about this size is kept until its text is needed. */
const MAX_KEPT = 1_024;
const ENTRY_OVERHEAD = 32;

/** Requires no escape in quotes. */
const PLAIN = /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/;

/** The request, whose text is created later, or the text of a request that is too large to keep. */
export function requestNote(request: RateLimitRequest): RateLimitRequest | string {
  return isSmall(request) ? request : requestText(request);
}

function isSmall({ domain, descriptors }: RateLimitRequest): boolean {
  let size = domain.length;
  for (const { entries } of descriptors) {
    size += ENTRY_OVERHEAD;
    for (const { key, value } of entries) size += ENTRY_OVERHEAD + key.length + value.length;
    if (size > MAX_KEPT) return false;
  }
  return size <= MAX_KEPT;
}

/** The text format of the request's message on one line, truncated at `MAX_REQUEST_TEXT`. */
export function requestText({ domain, descriptors, hitsAddend }: RateLimitRequest): string {
  let text = `domain:${quoted(domain)}`;
  for (const descriptor of descriptors) {
    if (text.length > MAX_REQUEST_TEXT) break;
    text += ` descriptors:{${descriptorText(descriptor)}}`;
  }
  if (hitsAddend > 0) text += ` hits_addend:${hitsAddend}`;
  // The cut may be within a character.
  return text.length <= MAX_REQUEST_TEXT ? text : `${text.slice(0, MAX_REQUEST_TEXT - 1).toWellFormed()}…`;
}

function descriptorText({ entries, limit, hitsAddend, isNegativeHits }: Descriptor): string {
  let text = "";
  for (const { key, value } of entries) text += ` entries:{key:${quoted(key)} value:${quoted(value)}}`;
  if (limit !== undefined) {
    const unit = limit.unit === undefined ? "" : ` unit:${limit.unit}`;
    text += ` limit:{requests_per_unit:${limit.requestsPerUnit}${unit}}`;
  }
  if (hitsAddend !== undefined) text += ` hits_addend:{value:${hitsAddend}}`;
  if (isNegativeHits === true) text += " is_negative_hits:true";
  return text.slice(1);
}

/** Truncates first: a value may be as large as a message. */
function quoted(text: string): string {
  const cut = shownText(text.length > MAX_REQUEST_TEXT ? text.slice(0, MAX_REQUEST_TEXT) : text);
  return PLAIN.test(cut) ? `"${cut}"` : JSON.stringify(cut);
}
