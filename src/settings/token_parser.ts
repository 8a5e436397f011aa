import type { Parsed } from "./setting.ts";

const TOKEN = /^[\x21-\x7e]+$/;

/** Takes a text that an HTTP header can carry as a bearer token. */
export function parseBearerToken(text: string): Parsed<string> {
  return TOKEN.test(text) ? { value: text } : { wanted: "visible ASCII characters without a space" };
}
