import type { Descriptor, RateLimitRequest } from "../ratelimit/request.ts";

/** Longest text of a request in a span. */
export const MAX_REQUEST_TEXT = 4_096;

/** A request with so many octets of text, about, is kept until its text is wanted. */
const MAX_KEPT = 1_024;
/** What an entry takes beside its text. */
const ENTRY_OVERHEAD = 32;

/** Needs no escape in quotes. */
const PLAIN = /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/;

/** A request, for its text to be made later, or the text: a large request is not kept for that. */
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

/** A request in the text form of its message, on one line, cut where it is too long to be sent along. */
export function requestText({ domain, descriptors, hitsAddend }: RateLimitRequest): string {
  let text = `domain:${quoted(domain)}`;
  for (const descriptor of descriptors) {
    if (text.length > MAX_REQUEST_TEXT) break;
    text += ` descriptors:{${descriptorText(descriptor)}}`;
  }
  if (hitsAddend > 0) text += ` hits_addend:${hitsAddend}`;
  // A cut within a character would leave a half of it.
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

/** A text is cut before it is quoted: a value may be as large as a message. */
function quoted(text: string): string {
  const cut = text.length > MAX_REQUEST_TEXT ? text.slice(0, MAX_REQUEST_TEXT) : text;
  return PLAIN.test(cut) ? `"${cut}"` : JSON.stringify(cut);
}
