import type { Request, Response } from "./http_message.ts";
import { quoted, shownCause, shownUrl } from "./shown_text.ts";

/**
 * What went wrong, for programs; these texts do not change.
 *
 * - `invalid_method`: not a token, or one that `fetch` never sends
 * - `invalid_url`: does not parse, is not HTTP, or holds a user name or password
 * - `invalid_header`: cannot be sent, for example because of a line break
 * - `invalid_body`: a body on GET or HEAD
 * - `network`: no answer; `kind` tells more where the platform does
 * - `timeout`: `timeoutMs` or `totalTimeoutMs` ran out
 * - `aborted`: the caller's signal
 * - `body_interrupted`: the answer broke off
 * - `body_too_large`: the answer has more than `maxResponseBytes`
 * - `status`: 400 or above, where `throwOnStatus` asks for an error
 * - `invalid_json`: `json()` of a body that is none
 *
 * @example
 * ```ts
 * import { Get, RestError, type RestErrorCode, send } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const WORTH_A_SECOND_TRY: readonly RestErrorCode[] = ["network", "timeout", "body_interrupted"];
 * const error = await send({ method: Get, baseURL: "ftp://example.com/" }).catch((error) => error);
 * assertEquals(error instanceof RestError && WORTH_A_SECOND_TRY.includes(error.code), false);
 * ```
 */
export type RestErrorCode =
  | "invalid_method"
  | "invalid_url"
  | "invalid_header"
  | "invalid_body"
  | "network"
  | "timeout"
  | "aborted"
  | "body_interrupted"
  | "body_too_large"
  | "status"
  | "invalid_json";

/**
 * Which step of reaching the host failed; `redirect` is one that cannot be followed.
 *
 * @example
 * ```ts
 * import { Get, type NetworkErrorKind, RestError, send } from "@weir/rest";
 * import { assert, assertEquals } from "@std/assert";
 *
 * const HINTS: Readonly<Record<NetworkErrorKind, string>> = {
 *   dns: "is the name right?",
 *   connect: "does the server run?",
 *   tls: "who signed the certificate?",
 *   redirect: "where does the server send us?",
 * };
 * const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
 * const baseURL = `http://127.0.0.1:${listener.addr.port}/`;
 * listener.close();
 * const error = await send({ method: Get, baseURL }).catch((error) => error);
 * assert(error instanceof RestError && error.kind !== undefined);
 * assertEquals(HINTS[error.kind], "does the server run?");
 * ```
 */
export type NetworkErrorKind = "dns" | "connect" | "tls" | "redirect";

/**
 * What an error is about.
 *
 * @example
 * ```ts
 * import { RestError, type RestErrorSubject } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const subject: RestErrorSubject = { method: "GET", url: "https://api.example.com/items?token=secret" };
 * const error = new RestError("network", "the line is cut", subject);
 * assertEquals(error.message, 'Cannot send GET "https://api.example.com/items": the line is cut');
 * ```
 */
export interface RestErrorSubject {
  /** The method of the request. */
  readonly method: string;
  /** The whole URL of the request; an error shows it without its query. */
  readonly url: string;
  /** The request as the caller gave it; absent in steps that never saw it. */
  readonly request?: Request | undefined;
}

/**
 * Facts that belong to some codes.
 *
 * @example
 * ```ts
 * import { Client, type Fetch, Get, RestError, type RestErrorOptions } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const options: RestErrorOptions = { kind: "tls", cause: new Error("the certificate is too old") };
 * const fetch: Fetch = (input) => {
 *   throw new RestError("network", "no trust", { method: "GET", url: String(input) }, options);
 * };
 * const sent = new Client({ fetch }).send({ method: Get, baseURL: "https://api.example.com/" });
 * const error = await sent.catch((error) => error);
 * assertEquals([error.kind, error.cause], ["tls", options.cause]);
 * ```
 */
export interface RestErrorOptions {
  /** What was thrown by the platform, or the reason of the caller's signal. */
  readonly cause?: unknown;
  /** With the code `network`. */
  readonly kind?: NetworkErrorKind | undefined;
  /** With the code `status`. */
  readonly statusCode?: number | undefined;
  /** With the code `status`, where the body was read. */
  readonly response?: Response | undefined;
}

/**
 * A request without an answer. Its text, and what `console.log` and `JSON.stringify` show of it, never hold
 * the query of the URL, a header value, or a body.
 *
 * @example
 * ```ts
 * import { Get, RestError, send } from "@weir/rest";
 * import { assert, assertEquals } from "@std/assert";
 *
 * try {
 *   await send({ method: Get, baseURL: "https://", queryParams: { token: "secret" } });
 * } catch (error) {
 *   assert(error instanceof RestError);
 *   assertEquals(error.code, "invalid_url");
 *   assert(!error.message.includes("secret"));
 * }
 * ```
 */
export class RestError extends Error {
  /** Always the same. */
  override readonly name = "RestError";
  /** What went wrong, for programs. */
  readonly code: RestErrorCode;
  /** With the code `network`: which step failed, where the platform tells. */
  readonly kind?: NetworkErrorKind;
  /** The method of the request. */
  readonly method: string;
  /** The URL of the request, without user name, password, query and fragment. */
  readonly url: string;
  /** With the code `status`: what the server answered. */
  readonly statusCode?: number;
  readonly #request: Request | undefined;
  readonly #response: Response | undefined;

  /**
   * For transports that have to tell of a failure in the same words.
   *
   * @param code What went wrong.
   * @param state What is wrong, in words that follow a colon.
   * @param subject What it is about.
   * @param options Facts that belong to the code.
   */
  constructor(code: RestErrorCode, state: string, subject: RestErrorSubject, options: RestErrorOptions = {}) {
    const url = shownUrl(subject.url);
    const method = /^\w{1,20}$/.test(subject.method) ? subject.method : quoted(subject.method);
    const cause = shownCause(options.cause);
    const given = cause === undefined ? undefined : { cause };
    super(`Cannot ${VERBS[code] ?? "send"} ${method} ${quoted(url)}: ${state}`, given);
    this.code = code;
    this.method = subject.method;
    this.url = url;
    if (options.kind !== undefined) this.kind = options.kind;
    if (options.statusCode !== undefined) this.statusCode = options.statusCode;
    this.#request = subject.request;
    this.#response = options.response;
  }

  /** The request as the caller gave it, secrets and all; absent in steps that never saw it. */
  get request(): Request | undefined {
    return this.#request;
  }

  /** With the code `status`: the answer; absent where its body was to be a stream. */
  get response(): Response | undefined {
    return this.#response;
  }

  /** What `JSON.stringify` shows. */
  toJSON(): Record<string, unknown> {
    const { name, code, kind, method, url, statusCode, message } = this;
    return { name, code, kind, method, url, statusCode, message };
  }
}

/** What could not be done, where it is not the sending. */
const VERBS: Readonly<Partial<Record<RestErrorCode, string>>> = {
  body_interrupted: "read the answer to",
  body_too_large: "read the answer to",
  invalid_json: "read the answer to",
};
