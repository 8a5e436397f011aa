/** Reads a resource. */
export const Get = "GET";
/** Gives a resource to be worked on, often to make a new one. */
export const Post = "POST";
/** Puts a resource in the place of the one that is there. */
export const Put = "PUT";
/** Changes a part of a resource. */
export const Patch = "PATCH";
/** Removes a resource. */
export const Delete = "DELETE";
/** Asks for the headers that `Get` would bring, without the body. */
export const Head = "HEAD";
/** Asks what may be done with a resource. */
export const Options = "OPTIONS";

/** A method that has a constant. */
export type KnownMethod =
  | typeof Get
  | typeof Post
  | typeof Put
  | typeof Patch
  | typeof Delete
  | typeof Head
  | typeof Options;

/** An HTTP method: one of the constants, or any other token. */
export type Method = KnownMethod | (string & Record<never, never>);

const KNOWN: readonly string[] = [Get, Post, Put, Patch, Delete, Head, Options];
/** Those that `fetch` never sends. */
const FORBIDDEN: readonly string[] = ["CONNECT", "TRACE", "TRACK"];
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Whether a text is a token of HTTP, as names of methods and headers must be. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Why a method cannot be sent, or nothing. */
export function methodProblem(method: unknown): string | undefined {
  if (typeof method !== "string" || !isToken(method)) {
    return `the method is not a token; one such as "GET" would be right`;
  }
  if (FORBIDDEN.includes(method.toUpperCase())) return "fetch does not send this method";
  return undefined;
}

/** The method as it is sent: those that have a constant are meant whatever their letter case. */
export function sentMethod(method: string): string {
  const upper = method.toUpperCase();
  return KNOWN.includes(upper) ? upper : method;
}

/** Whether requests of a method have no body. */
export function isBodiless(method: string): boolean {
  return method === Get || method === Head;
}
