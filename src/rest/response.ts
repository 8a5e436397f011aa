import { readBody, type ReadBodyOptions } from "./body.ts";
import type { Request, Response, ResponseHeaders } from "./http_message.ts";
import { RestError, type RestErrorSubject } from "./rest_error.ts";

/**
 * Options of `buildResponse`.
 *
 * @example
 * ```ts
 * import type { BuildResponseOptions } from "@weir/rest";
 * const options: BuildResponseOptions = { maxResponseBytes: 1_000_000 };
 * ```
 */
export interface BuildResponseOptions {
  /** Maximum size of the body after decoding; unlimited by default. */
  readonly maxResponseBytes?: number | undefined;
  /** The request, for errors. */
  readonly request?: Request | undefined;
  /** Aborts reading with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Converts a web `Response`.
 *
 * @throws {RestError} `body_interrupted` or `body_too_large`.
 *
 * @example
 * ```ts
 * import { buildResponse } from "@weir/rest";
 * import { assertEquals } from "#assert";
 *
 * const response = await buildResponse(new Response("done", { headers: { "x-id": "7" } }));
 * assertEquals([response.body, response.headers["x-id"]], ["done", ["7"]]);
 * ```
 */
export async function buildResponse(
  webResponse: globalThis.Response,
  { maxResponseBytes, request, signal }: BuildResponseOptions = {},
): Promise<Response> {
  const subject = { method: request?.method ?? "request", url: request?.baseURL ?? webResponse.url, request };
  return await readResponse(webResponse, { maxBytes: maxResponseBytes, signal, subject });
}

/** Reads a web response. */
export async function readResponse(
  webResponse: globalThis.Response,
  options: ReadBodyOptions,
): Promise<Response> {
  return new ReadResponse(webResponse, await readBody(webResponse, options), options.subject);
}

/** The headers by name. */
export function headersOf(webResponse: globalThis.Response): ResponseHeaders {
  const entries: [string, string[]][] = [];
  // Several times faster than iteration.
  webResponse.headers.forEach((value, name) => {
    if (name !== "set-cookie") entries.push([name, [value]]);
  });
  const cookies = webResponse.headers.getSetCookie();
  if (cookies.length > 0) entries.push(["set-cookie", cookies]);
  // Unlike assignment, this works for names such as __proto__.
  return Object.fromEntries(entries);
}

const UTF_8 = new TextDecoder();

/** Decodes text and headers on first use. */
export class ReadResponse implements Response {
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
      // The message of the parser would contain a part of the body.
      throw new RestError("invalid_json", "the body is not JSON", this.#subject);
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
