import { readBody, type ReadBodyOptions } from "./body.ts";
import type { Request, Response, ResponseHeaders } from "./http_message.ts";
import { RestError, type RestErrorSubject } from "./rest_error.ts";

/**
 * How a response is built.
 *
 * @example
 * ```ts
 * import { buildResponse, type BuildResponseOptions, RestError } from "@weir/rest";
 * import { assert, assertEquals, assertRejects } from "@std/assert";
 *
 * const options: BuildResponseOptions = { maxResponseBytes: 4 };
 * const error = await assertRejects(() => buildResponse(new Response("hello"), options));
 * assert(error instanceof RestError);
 * assertEquals(error.code, "body_too_large");
 * ```
 */
export interface BuildResponseOptions {
  /** Most bytes of the body, after any content encoding was undone; any number when absent. */
  readonly maxResponseBytes?: number | undefined;
  /** The request that it answers, for errors. */
  readonly request?: Request | undefined;
  /** Ends the reading of the body with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads a web `Response` to its end.
 *
 * @throws {RestError} `body_interrupted` or `body_too_large`.
 *
 * @example
 * ```ts
 * import { buildResponse } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * const headers = [["set-cookie", "a=1"], ["set-cookie", "b=2"]] as [string, string][];
 * const response = await buildResponse(new Response("done", { headers }));
 * assertEquals(response.headers["set-cookie"], ["a=1", "b=2"]);
 * assertEquals(response.body, "done");
 * ```
 */
export async function buildResponse(
  webResponse: globalThis.Response,
  { maxResponseBytes, request, signal }: BuildResponseOptions = {},
): Promise<Response> {
  const subject = { method: request?.method ?? "request", url: request?.baseURL ?? webResponse.url, request };
  return await readResponse(webResponse, { maxBytes: maxResponseBytes, signal, subject });
}

/** Reads a web response to its end. */
export async function readResponse(
  webResponse: globalThis.Response,
  options: ReadBodyOptions,
): Promise<Response> {
  return responseOf(webResponse, await readBody(webResponse, options), options.subject);
}

/** The response that a web response and its body are. */
export function responseOf(
  webResponse: globalThis.Response,
  bodyBytes: Uint8Array<ArrayBuffer>,
  subject: RestErrorSubject,
): Response {
  return new ReadResponse(webResponse, bodyBytes, subject);
}

/** The headers of a web response by name. */
export function headersOf(webResponse: globalThis.Response): ResponseHeaders {
  const entries: [string, string[]][] = [];
  // Several times as fast as to iterate over them.
  webResponse.headers.forEach((value, name) => {
    if (name !== "set-cookie") entries.push([name, [value]]);
  });
  const cookies = webResponse.headers.getSetCookie();
  if (cookies.length > 0) entries.push(["set-cookie", cookies]);
  // Unlike assignments this makes a property of any name.
  return Object.fromEntries(entries);
}

const UTF_8 = new TextDecoder();

/** Text and headers are made when they are asked for: who does not need them does not pay for them. */
class ReadResponse implements Response {
  readonly statusCode: number;
  readonly bodyBytes: Uint8Array<ArrayBuffer>;
  readonly #webResponse: globalThis.Response;
  readonly #subject: RestErrorSubject;
  #body: string | undefined;
  #headers: ResponseHeaders | undefined;

  constructor(
    webResponse: globalThis.Response,
    bodyBytes: Uint8Array<ArrayBuffer>,
    subject: RestErrorSubject,
  ) {
    this.statusCode = webResponse.status;
    this.#webResponse = webResponse;
    this.bodyBytes = bodyBytes;
    this.#subject = subject;
  }

  get headers(): ResponseHeaders {
    return this.#headers ??= headersOf(this.#webResponse);
  }

  get body(): string {
    return this.#body ??= UTF_8.decode(this.bodyBytes);
  }

  json<T>(): T {
    try {
      return JSON.parse(this.body);
    } catch {
      // What the parser says would show a part of the body.
      throw new RestError("invalid_json", "its body is not JSON", this.#subject);
    }
  }

  toJSON(): Record<string, unknown> {
    return { statusCode: this.statusCode, body: this.body, headers: this.headers };
  }

  [Symbol.for("nodejs.util.inspect.custom")](): Record<string, unknown> {
    return this.toJSON();
  }

  [Symbol.for("Deno.customInspect")](
    inspect: (value: unknown, options: unknown) => string,
    options: unknown,
  ) {
    return inspect(this.toJSON(), options);
  }
}
