// As in W3C Trace Context, 3.3.1: a vendor's key, or a tenant's at a vendor.
const KEY = /^(?:[a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})$/;
/** Visible ASCII and spaces, without a comma, an equals sign or a space at the end. */
const VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
const MAX_MEMBERS = 32;
const MAX_LENGTH = 512;

/**
 * What may be passed on of a `tracestate` header: members that are none are left out, and of those with one key the
 * first is kept, of all at most 32. Nothing of a text above 512 characters.
 */
export function passedTraceState(text: string): string {
  if (text === "" || text.length > MAX_LENGTH) return "";
  const members = new Map<string, string>();
  for (const part of text.split(",")) {
    const member = part.trim();
    const equals = member.indexOf("=");
    const key = member.slice(0, Math.max(equals, 0));
    const isGood = KEY.test(key) && VALUE.test(member.slice(equals + 1));
    if (isGood && !members.has(key) && members.size < MAX_MEMBERS) members.set(key, member);
  }
  return [...members.values()].join(",");
}
