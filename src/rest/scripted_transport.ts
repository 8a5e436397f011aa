import type { Fetch } from "./make_request.ts";

/**
 * A response of the script.
 *
 * @example
 * ```ts
 * import { Client, Get } from "@weir/rest";
 * import { type ScriptedAnswer, ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const cut: ScriptedAnswer = { headers: { "set-cookie": ["a=1", "b=2"] }, body: "half of ", interrupted: true };
 * const { fetch } = new ScriptedTransport([cut]);
 * const sent = new Client({ fetch }).send({ method: Get, baseURL: "https://api.example.com/" });
 * assertEquals((await sent.catch((error) => error)).code, "body_interrupted");
 * ```
 */
export interface ScriptedAnswer {
  /** 200 when absent. */
  readonly status?: number | undefined;
  /** Header values by name; several for one name where it repeats. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>> | undefined;
  /** The body; empty when absent. */
  readonly body?: string | Uint8Array | undefined;
  /** Whether the body breaks off after what `body` holds. */
  readonly interrupted?: boolean | undefined;
}

/**
 * A failure of the script: no response, or none until the request is given up.
 *
 * @example
 * ```ts
 * import { Client, Get } from "@weir/rest";
 * import { type ScriptedFailure, ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const silence: ScriptedFailure = { fail: "hang" };
 * const client = new Client({ fetch: new ScriptedTransport([silence]).fetch, timeoutMs: 10 });
 * const sent = client.send({ method: Get, baseURL: "https://api.example.com/" });
 * assertEquals((await sent.catch((error) => error)).code, "timeout");
 * ```
 */
export interface ScriptedFailure {
  /** Which step fails; `reset` is a connection that is lost, `hang` waits until the request is aborted. */
  readonly fail: "dns" | "connect" | "tls" | "reset" | "hang";
}

/**
 * One step of the script: what happens to one request, or what makes that of the request.
 *
 * @example
 * ```ts
 * import { Client, Post } from "@weir/rest";
 * import { type ScriptedStep, ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const echo: ScriptedStep = ({ method, body }) => ({ body: `${method} ${body}` });
 * const client = new Client({ fetch: new ScriptedTransport([echo]).fetch });
 * const response = await client.send({ method: Post, baseURL: "https://api.example.com/", body: "hello" });
 * assertEquals(response.body, "POST hello");
 * ```
 */
export type ScriptedStep =
  | ScriptedAnswer
  | ScriptedFailure
  | ((request: ScriptedRequest) => ScriptedAnswer | ScriptedFailure);

/**
 * A request that was sent.
 *
 * @example
 * ```ts
 * import { Client, Put } from "@weir/rest";
 * import { type ScriptedRequest, ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * const transport = new ScriptedTransport([{ status: 204 }]);
 * const client = new Client({ fetch: transport.fetch });
 * await client.send({ method: Put, baseURL: "https://api.example.com/a", queryParams: { b: "c d" }, body: "{}" });
 * const sent: ScriptedRequest = {
 *   method: "PUT",
 *   url: "https://api.example.com/a?b=c+d",
 *   headers: { "content-type": "application/json" },
 *   body: "{}",
 * };
 * assertEquals(transport.requests, [sent]);
 * ```
 */
export interface ScriptedRequest {
  /** As it was sent. */
  readonly method: string;
  /** With its query. */
  readonly url: string;
  /** Values by name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** As text. */
  readonly body: string;
}

/** What a platform throws, which a client has to tell apart. */
const FAILURES = { dns: "ENOTFOUND", connect: "ECONNREFUSED", tls: "CERT_HAS_EXPIRED", reset: "ECONNRESET" };

/**
 * Answers requests by a script, step by step, and keeps what was sent. Give its `fetch` to a `Client`.
 *
 * @example
 * ```ts
 * import { Client, Get, RestError } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assert, assertEquals, assertRejects } from "@std/assert";
 *
 * const transport = new ScriptedTransport([{ fail: "dns" }]);
 * const client = new Client({ fetch: transport.fetch });
 * const error = await assertRejects(() => client.send({ method: Get, baseURL: "https://api.example.com/" }));
 * assert(error instanceof RestError);
 * assertEquals([error.code, error.kind], ["network", "dns"]);
 * ```
 */
export class ScriptedTransport {
  /** What was sent so far, in its order. */
  readonly requests: ScriptedRequest[] = [];
  /** Takes the next step; the `fetch` option of a client. */
  readonly fetch: Fetch;
  readonly #steps: ScriptedStep[];

  /** The steps in the order of the requests; a request beyond the last one is a mistake of the test. */
  constructor(steps: readonly ScriptedStep[]) {
    this.#steps = [...steps];
    this.fetch = (input, init) => this.#answer(input, init);
  }

  /** Throws when steps are left that no request has taken. */
  assertDone(): void {
    const left = this.#steps.length;
    if (left > 0) throw new Error(`Cannot end the script: ${left} of its steps were not taken`);
  }

  async #answer(input: string | URL | Request, init: RequestInit | undefined): Promise<Response> {
    const web = new Request(input, init);
    const { method, url, signal } = web;
    const headers = Object.fromEntries(web.headers);
    const request = { method, url, headers, body: await web.text() };
    this.requests.push(request);
    const step = this.#steps.shift();
    if (step === undefined) {
      throw new Error(`Cannot answer ${method} "${url}": the script has no step for it`);
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
  const cause = Object.assign(new Error(`${fail} failed, as the script says`), { code: FAILURES[fail] });
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
      return controller.error(new TypeError("the body broke off, as the script says"));
    }
    controller.close();
  };
  const stream = isNull ? null : new ReadableStream({ pull });
  return new Response(stream, { status, headers: entries });
}
