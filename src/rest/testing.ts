/**
 * A transport with scripted responses, for tests of code that sends requests: no network, no server.
 *
 * @example
 * ```ts
 * import { Client, Get } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "#assert";
 *
 * const transport = new ScriptedTransport([{ status: 503 }, { fail: "connect" }, { body: "done" }]);
 * const client = new Client({ fetch: transport.fetch, retry: { attempts: 3, backoffMs: 0 } });
 * const response = await client.send({ method: Get, baseURL: "https://api.example.com/" });
 * assertEquals([response.body, transport.requests.length], ["done", 3]);
 * transport.assertDone();
 * ```
 *
 * @module
 */
import type { Fetch } from "./make_request.ts";

/**
 * A scripted response.
 *
 * @example
 * ```ts
 * import type { ScriptedAnswer } from "@weir/rest/testing";
 * const answer: ScriptedAnswer = { status: 404, body: "no such item" };
 * ```
 */
export interface ScriptedAnswer {
  /** 200 by default. */
  readonly status?: number | undefined;
  /** Header values by name; a list repeats the header. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>> | undefined;
  /** Empty by default. */
  readonly body?: string | Uint8Array | undefined;
  /** The connection fails after `body`. */
  readonly interrupted?: boolean | undefined;
}

/**
 * A scripted failure.
 *
 * @example
 * ```ts
 * import type { ScriptedFailure } from "@weir/rest/testing";
 * const failure: ScriptedFailure = { fail: "hang" };
 * ```
 */
export interface ScriptedFailure {
  /** The step that fails; `reset` loses the connection, `hang` waits until the request is aborted. */
  readonly fail: "dns" | "connect" | "tls" | "reset" | "hang";
}

/**
 * One step of the script: the outcome of one request, or a function of the request.
 *
 * @example
 * ```ts
 * import type { ScriptedStep } from "@weir/rest/testing";
 * const echo: ScriptedStep = ({ method, body }) => ({ body: `${method} ${body}` });
 * ```
 */
export type ScriptedStep =
  | ScriptedAnswer
  | ScriptedFailure
  | ((request: ScriptedRequest) => ScriptedAnswer | ScriptedFailure);

/**
 * A recorded request.
 *
 * @example
 * ```ts
 * import { type ScriptedRequest, ScriptedTransport } from "@weir/rest/testing";
 * const requests: readonly ScriptedRequest[] = new ScriptedTransport([]).requests;
 * ```
 */
export interface ScriptedRequest {
  /** The method. */
  readonly method: string;
  /** The URL with its query. */
  readonly url: string;
  /** Values by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body as text. */
  readonly body: string;
}

/** The error codes of Node. */
const FAILURES = { dns: "ENOTFOUND", connect: "ECONNREFUSED", tls: "CERT_HAS_EXPIRED", reset: "ECONNRESET" };

/**
 * Responds to each request with the next step of a script, and records the requests.
 *
 * @example
 * ```ts
 * import { Client, Get } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "#assert";
 *
 * const { fetch } = new ScriptedTransport([{ fail: "dns" }]);
 * const error = await new Client({ fetch }).send({ method: Get, baseURL: "https://x/" }).catch((error) => error);
 * assertEquals([error.code, error.kind], ["network", "dns"]);
 * ```
 */
export class ScriptedTransport {
  /** The requests so far, in order. */
  readonly requests: ScriptedRequest[] = [];
  /** The `fetch` option of a client. */
  readonly fetch: Fetch;
  readonly #steps: ScriptedStep[];

  /** The steps in the order of the requests; a request after the last step fails. */
  constructor(steps: readonly ScriptedStep[]) {
    this.#steps = [...steps];
    this.fetch = (input, init) => this.#respond(input, init);
  }

  /** Throws if there are unused steps. */
  assertDone(): void {
    const left = this.#steps.length;
    if (left > 0) throw new Error(`Unused steps: ${left}`);
  }

  async #respond(input: string | URL | Request, init: RequestInit | undefined): Promise<Response> {
    const web = new Request(input, init);
    const { method, url, signal } = web;
    const headers = Object.fromEntries(web.headers);
    const request = { method, url, headers, body: await web.text() };
    this.requests.push(request);
    const step = this.#steps.shift();
    if (step === undefined) {
      throw new Error(`Cannot answer ${method} "${url}": no step left`);
    }
    const outcome = typeof step === "function" ? step(request) : step;
    if ("fail" in outcome) return await failed(outcome, signal);
    return answered(outcome);
  }
}

async function failed({ fail }: ScriptedFailure, signal: AbortSignal): Promise<never> {
  if (fail === "hang") {
    return await new Promise((_, reject) => {
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  }
  const cause = Object.assign(new Error(`scripted ${fail} failure`), { code: FAILURES[fail] });
  throw new TypeError("fetch failed", { cause });
}

function answered({ status = 200, headers = {}, body, interrupted }: ScriptedAnswer): Response {
  const entries = Object.entries(headers).flatMap(([name, values]) =>
    (typeof values === "string" ? [values] : values).map((value): [string, string] => [name, value])
  );
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body ?? new Uint8Array();
  const isNull = status === 204 || status === 205 || status === 304;
  const chunks = bytes.byteLength === 0 ? [] : [bytes.slice()];
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    const chunk = chunks.shift();
    if (chunk !== undefined) return controller.enqueue(chunk);
    if (interrupted === true) {
      return controller.error(new TypeError("scripted interruption of the body"));
    }
    controller.close();
  };
  const stream = isNull ? null : new ReadableStream({ pull });
  return new Response(stream, { status, headers: entries });
}
