import type { Descriptor, RateLimitRequest } from "../ratelimit/request.ts";

/** Longest text of a request in a span. */
export const MAX_REQUEST_TEXT = 4_096;

/** A request in the text form of its message, on one line, cut where it is too long to be sent along. */
export function requestText({ domain, descriptors, hitsAddend }: RateLimitRequest): string {
  const parts = [`domain:${quoted(domain)}`];
  let length = parts.join("").length;
  for (const descriptor of descriptors) {
    if (length > MAX_REQUEST_TEXT) break;
    const part = `descriptors:{${descriptorText(descriptor)}}`;
    length += part.length + 1;
    parts.push(part);
  }
  if (hitsAddend > 0) parts.push(`hits_addend:${hitsAddend}`);
  const text = parts.join(" ");
  // A cut within a character would leave a half of it.
  return text.length <= MAX_REQUEST_TEXT ? text : `${text.slice(0, MAX_REQUEST_TEXT - 1).toWellFormed()}…`;
}

function descriptorText({ entries, limit, hitsAddend, isNegativeHits }: Descriptor): string {
  const parts = entries.map(({ key, value }) => `entries:{key:${quoted(key)} value:${quoted(value)}}`);
  if (limit !== undefined) {
    const unit = limit.unit === undefined ? "" : ` unit:${limit.unit}`;
    parts.push(`limit:{requests_per_unit:${limit.requestsPerUnit}${unit}}`);
  }
  if (hitsAddend !== undefined) parts.push(`hits_addend:{value:${hitsAddend}}`);
  if (isNegativeHits === true) parts.push("is_negative_hits:true");
  return parts.join(" ");
}

/** A text is cut before it is quoted: a value may be as large as a message. */
function quoted(text: string): string {
  return JSON.stringify(text.length > MAX_REQUEST_TEXT ? text.slice(0, MAX_REQUEST_TEXT) : text);
}
