import type { Parsed } from "./setting.ts";

const TOKEN = /^[\x21-\x7e]+$/;
/** What files and pages have where a token belongs. */
const PLACEHOLDERS: readonly RegExp[] = [
  /^(?:change|replace)[-_.]?(?:me|it|this)/i,
  /^your[-_.]/i,
  /^(?:my[-_.]?)?(?:token|secret|password)$/i,
  /^(?:admin|example|placeholder|todo|x{3,}|\*+|\.+)$/i,
  /^(?:<.*>|\$\{?\w+\}?|\{\{.*\}\})$/,
  /^(?:0123456789(?:abcdef)?)+$/i,
];

/** Takes a text that an HTTP header can carry as a bearer token, and that is not a placeholder for one. */
export function parseBearerToken(text: string): Parsed<string> {
  if (!TOKEN.test(text)) return { wanted: "visible ASCII characters without a space" };
  if (!PLACEHOLDERS.some((placeholder) => placeholder.test(text))) return { value: text };
  return { wanted: 'a random token, such as "openssl rand -hex 32" prints, instead of a placeholder' };
}
