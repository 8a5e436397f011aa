/** The header that carries the id of a request, both ways. */
export const REQUEST_ID_HEADER = "x-request-id";

const SANE = /^[\x21-\x7e]{1,128}$/;

/** The id that the caller gave, when it is 1 to 128 visible ASCII characters; else one that `make` makes. */
export function requestIdOf(headers: Headers, make: () => string): string {
  const given = headers.get(REQUEST_ID_HEADER);
  return given !== null && SANE.test(given) ? given : make();
}

/** A random UUID. */
export function randomRequestId(): string {
  return crypto.randomUUID();
}
