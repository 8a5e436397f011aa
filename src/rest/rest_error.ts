import type { Request, Response } from "./http_message.ts";
import { quoted, shownCause, shownUrl } from "./shown_text.ts";

/**
 * The stable code of an error.
 *
 * - `invalid_method`: not a token, or not sent by `fetch`
 * - `invalid_url`: not an HTTP URL, or one with a user name or password
 * - `invalid_header`: cannot be sent, for example because of a line break
 * - `invalid_body`: a body on GET or HEAD, or one of another type
 * - `network`: no response; see `kind`
 * - `timeout`: `timeoutMs` or `totalTimeoutMs` expired
 * - `aborted`: by the signal of the caller
 * - `body_interrupted`: the connection was lost within the response body, or the body cannot be decoded
 * - `body_too_large`: the response body exceeds `maxResponseBytes`
 * - `status`: 400 or above, with `throwOnStatus`
 * - `invalid_json`: `json()` of another body
 *
 * @example
 * ```ts
 * import type { RestErrorCode } from "@weir/rest";
 * const TRANSIENT: readonly RestErrorCode[] = ["network", "timeout", "body_interrupted"];
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
 * The step that failed; `redirect` is a redirect that cannot be followed.
 *
 * @example
 * ```ts
 * import type { NetworkErrorKind } from "@weir/rest";
 * const HINTS: Readonly<Partial<Record<NetworkErrorKind, string>>> = { connect: "Is the server running?" };
 * ```
 */
export type NetworkErrorKind = "dns" | "connect" | "tls" | "redirect";

/**
 * The request of an error.
 *
 * @example
 * ```ts
 * import { RestError, type RestErrorSubject } from "@weir/rest";
 * import { assertEquals } from "#assert";
 *
 * const subject: RestErrorSubject = { method: "GET", url: "https://api.example.com/items?token=secret" };
 * const error = new RestError("network", "no connection", subject);
 * assertEquals(error.message, 'Cannot send GET "https://api.example.com/items": no connection');
 * ```
 */
export interface RestErrorSubject {
  /** The method of the request. */
  readonly method: string;
  /** The whole URL; an error shows it without its query. */
  readonly url: string;
  /** The request of the caller; undefined for a web request. */
  readonly request?: Request | undefined;
}

/**
 * Details of some codes.
 *
 * @example
 * ```ts
 * import type { RestErrorOptions } from "@weir/rest";
 * const options: RestErrorOptions = { kind: "tls", cause: new Error("the certificate has expired") };
 * ```
 */
export interface RestErrorOptions {
  /** The error of the platform, or the reason of the signal. */
  readonly cause?: unknown;
  /** With code `network`. */
  readonly kind?: NetworkErrorKind | undefined;
  /** With code `status`. */
  readonly statusCode?: number | undefined;
  /** With code `status`, if the body was read. */
  readonly response?: Response | undefined;
}

/**
 * A request without a usable response. Its message, `console.log` and `JSON.stringify` never show the query of the
 * URL, a header value or a body.
 *
 * @example
 * ```ts
 * import { Get, RestError, send } from "@weir/rest";
 * import { assertEquals } from "#assert";
 *
 * const error = await send({ method: Get, baseURL: "https://" }).catch((error) => error);
 * assertEquals(error instanceof RestError && error.code, "invalid_url");
 * ```
 */
export class RestError extends Error {
  /** Always `RestError`. */
  override readonly name = "RestError";
  /** The stable code. */
  readonly code: RestErrorCode;
  /** With code `network`: the failed step, if the platform reports it. */
  readonly kind?: NetworkErrorKind;
  /** The method of the request. */
  readonly method: string;
  /** The URL of the request, without user name, password, query and fragment. */
  readonly url: string;
  /** With code `status`: the status. */
  readonly statusCode?: number;
  readonly #request: Request | undefined;
  readonly #response: Response | undefined;

  /** Public for transports; `state` is the part of the message after the colon. */
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

  /** The request of the caller, including secrets; undefined for a web request. */
  get request(): Request | undefined {
    return this.#request;
  }

  /** With code `status`: the response; undefined for a stream. */
  get response(): Response | undefined {
    return this.#response;
  }

  /** The JSON form, without secrets. */
  toJSON(): Record<string, unknown> {
    const { name, code, kind, method, url, statusCode, message } = this;
    return { name, code, kind, method, url, statusCode, message };
  }
}

/** The action that failed, if not sending. */
const VERBS: Readonly<Partial<Record<RestErrorCode, string>>> = {
  body_interrupted: "read the response to",
  body_too_large: "read the response to",
  invalid_json: "read the response to",
};
