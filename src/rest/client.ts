import { boundedBody, discardBody, readBody, type ReadBodyOptions } from "./body.ts";
import type { Request, Response, ResponseHeaders } from "./http_message.ts";
import { checkedOf, sendChecked } from "./make_request.ts";
import { checkOptions, type ClientOptions, type SendOptions } from "./options.ts";
import {
  type CheckedRequest,
  checkLength,
  checkRequest,
  subjectOf,
  webRequestOf,
  withEncodedForm,
} from "./request.ts";
import { headersOf, ReadResponse, readResponse } from "./response.ts";
import { RestError, type RestErrorSubject } from "./rest_error.ts";
import { attemptsFor, isTransient, retryDelayMs, type RetryPolicy, retryPolicy } from "./retry.ts";
import { type Clock, pause, platformClock, Stop, unlessStopped } from "./stop.ts";

/**
 * A response with a streamed body.
 *
 * @example
 * ```ts
 * import { Client, Get, type StreamResponse } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "#assert";
 *
 * const client = new Client({ fetch: new ScriptedTransport([{ body: "hello" }]).fetch });
 * const request = { method: Get, baseURL: "https://example.com/" };
 * const { bodyStream }: StreamResponse = await client.sendStream(request);
 * for await (const bytes of bodyStream) assertEquals(bytes.byteLength, 5);
 * ```
 */
export interface StreamResponse {
  /** The status. */
  readonly statusCode: number;
  /** The headers. */
  readonly headers: ResponseHeaders;
  /**
   * The body; read it to its end or cancel it. It fails with a `RestError`: `body_interrupted`, `body_too_large`,
   * `timeout` or `aborted`.
   */
  readonly bodyStream: ReadableStream<Uint8Array<ArrayBuffer>>;
}

type Settings = ClientOptions & SendOptions;

/** A call that needs no timers, retries or hooks. */
function isPlain(settings: Settings): boolean {
  const { signal, timeoutMs, totalTimeoutMs, retry, onRequest, onResponse, throwOnStatus } = settings;
  return (signal ?? timeoutMs ?? totalTimeoutMs ?? retry ?? onRequest ?? onResponse) === undefined &&
    throwOnStatus !== true;
}

/**
 * Sends requests with shared options. It keeps no state between calls; the caller closes an `httpClient`.
 *
 * @example
 * ```ts
 * import { Client, Get } from "@weir/rest";
 * import { assertEquals } from "#assert";
 *
 * await using server = Deno.serve({ port: 0, onListen() {} }, () => new Response("hello"));
 * const client = new Client({ timeoutMs: 5_000, retry: { attempts: 3 } });
 * const response = await client.send({ method: Get, baseURL: `http://localhost:${server.addr.port}/` });
 * assertEquals([response.statusCode, response.body], [200, "hello"]);
 * ```
 */
export class Client {
  readonly #options: ClientOptions;

  /** Throws a `RangeError` for an invalid option. */
  constructor(options: ClientOptions = {}) {
    checkOptions(options);
    this.#options = { ...options };
  }

  /**
   * Sends a request and reads the response. Options of the call take precedence over those of the client, even if
   * they are `undefined`.
   *
   * @throws {RestError} Without a complete response. A status is an error only with `throwOnStatus`.
   */
  async send(request: Request, options?: SendOptions): Promise<Response> {
    const settings = this.#with(options);
    if (!isPlain(settings)) return await new Call(request, settings).buffered();
    const checked = checkRequest(request);
    const response = await sendChecked(checked, settings);
    const subject = subjectOf(checked);
    const body = await readBody(response, { maxBytes: settings.maxResponseBytes, subject });
    return new ReadResponse(response, body, subject);
  }

  /**
   * Like `send`, but resolves when the response headers arrive. Timeouts and the signal apply until the end of the
   * body; an interrupted body is not retried.
   *
   * @throws {RestError} Without a response. A status is an error only with `throwOnStatus`.
   */
  async sendStream(request: Request, options?: SendOptions): Promise<StreamResponse> {
    return await new Call(request, this.#with(options)).streamed();
  }

  #with(options: SendOptions | undefined): Settings {
    if (options === undefined) return this.#options;
    checkOptions(options);
    return { ...this.#options, ...options };
  }
}

/** One request with all its attempts. */
class Call {
  readonly #settings: Settings;
  readonly #request: Request;
  readonly #checked: CheckedRequest;
  /** The request of the current attempt, after its hook. */
  #sent: CheckedRequest;
  readonly #subject: RestErrorSubject;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #policy: RetryPolicy | undefined;
  /** The signal of the caller and the total timeout. */
  readonly #callStop: Stop | undefined;
  /** Also stops at the timeout of the current attempt. */
  #stop: Stop | undefined;

  constructor(request: Request, settings: Settings) {
    const { clock = platformClock, signal, totalTimeoutMs: ms } = settings;
    this.#settings = settings;
    this.#request = request;
    this.#checked = this.#sent = checkRequest(request);
    this.#subject = subjectOf(this.#checked);
    this.#clock = clock;
    this.#startedAt = clock.elapsed();
    this.#policy = settings.retry === undefined ? undefined : retryPolicy(settings.retry);
    const onSignal = (reason: unknown) => this.#aborted(reason);
    const onTime = () => this.#timeout(`timed out after ${ms} ms in total`);
    if (signal !== undefined || ms !== undefined) {
      this.#callStop = new Stop({ signal, onSignal, ms, onTime, clock });
    }
  }

  async buffered(): Promise<Response> {
    try {
      return await this.#attempts((response) => this.#read(response));
    } finally {
      this.#release();
    }
  }

  async streamed(): Promise<StreamResponse> {
    try {
      return await this.#attempts((response) => this.#stream(response));
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  async #attempts<T>(take: (response: globalThis.Response) => T | Promise<T>): Promise<T> {
    for (let attempt = 1;; attempt++) {
      this.#beginAttempt();
      let delay: number | undefined;
      try {
        const response = await this.#attempt(attempt);
        const { status, headers } = response;
        const isRetried = this.#policy?.statuses.includes(status) === true;
        delay = isRetried ? this.#delay(attempt, headers.get("retry-after")) : undefined;
        if (delay === undefined) return await take(response);
        discardBody(response);
      } catch (error) {
        delay = isTransient(error) ? this.#delay(attempt, null) : undefined;
        if (delay === undefined) throw error;
      }
      this.#endAttempt();
      await pause(delay, this.#clock, this.#callStop?.signal);
    }
  }

  #beginAttempt(): void {
    const { timeoutMs: ms } = this.#settings;
    const signal = this.#callStop?.signal;
    const onTime = () => this.#timeout(`timed out after ${ms} ms`);
    const onSignal = (reason: unknown) => reason instanceof RestError ? reason : this.#aborted(reason);
    this.#stop = ms === undefined
      ? this.#callStop
      : new Stop({ signal, onSignal, ms, onTime, clock: this.#clock });
  }

  #endAttempt(): void {
    if (this.#stop !== this.#callStop) this.#stop?.release();
    this.#stop = undefined;
  }

  #release(): void {
    this.#endAttempt();
    this.#callStop?.release();
  }

  async #attempt(attempt: number): Promise<globalThis.Response> {
    const { onResponse } = this.#settings;
    const signal = this.#stop?.signal;
    this.#sent = await this.#requestFor(attempt);
    const response = await sendChecked(this.#sent, { ...this.#settings, signal });
    if (onResponse === undefined) return response;
    try {
      const other = await unlessStopped(runHook(() => onResponse(response, { attempt })), signal);
      // The other response may use the body of this one.
      if (other !== undefined && other.body !== response.body) discardBody(response);
      return other ?? response;
    } catch (error) {
      discardBody(response);
      throw error;
    }
  }

  /** The request after `onRequest`. */
  async #requestFor(attempt: number): Promise<CheckedRequest> {
    const { onRequest } = this.#settings;
    if (onRequest === undefined) return this.#checked;
    const checked = await withEncodedForm(this.#checked);
    const web = webRequestOf(checked);
    const other = await unlessStopped(runHook(() => onRequest(web, { attempt })), this.#stop?.signal);
    const isSame = other === undefined || other === web;
    const sent = isSame ? { ...checked, headers: Object.fromEntries(web.headers) } : await checkedOf(other);
    const named = { ...sent, request: this.#request };
    checkLength(named);
    return named;
  }

  async #read(response: globalThis.Response): Promise<Response> {
    const read = await readResponse(response, this.#bodyOptions());
    if (!this.#isFailure(response)) return read;
    throw this.#statusError(response, read);
  }

  #stream(response: globalThis.Response): StreamResponse {
    if (this.#isFailure(response)) {
      discardBody(response);
      throw this.#statusError(response, undefined);
    }
    const bodyStream = boundedBody(response, this.#bodyOptions(), () => this.#release());
    return { statusCode: response.status, headers: headersOf(response), bodyStream };
  }

  #bodyOptions(): ReadBodyOptions {
    return { maxBytes: this.#settings.maxResponseBytes, signal: this.#stop?.signal, subject: this.#subject };
  }

  #isFailure({ status }: globalThis.Response): boolean {
    return this.#settings.throwOnStatus === true && status >= 400;
  }

  #statusError({ status }: globalThis.Response, response: Response | undefined): RestError {
    return new RestError("status", `the server responded with status ${status}`, this.#subject, {
      statusCode: status,
      response,
    });
  }

  /** Milliseconds until the next attempt; undefined after the last one. */
  #delay(attempt: number, retryAfter: string | null): number | undefined {
    const { random = Math.random, totalTimeoutMs = Infinity } = this.#settings;
    const policy = this.#policy;
    if (policy === undefined || attempt >= this.#mostAttempts(policy)) return undefined;
    if (this.#callStop?.signal.aborted === true) return undefined;
    const delay = retryDelayMs(policy, { attempt, retryAfter, now: this.#clock.now(), random: random() });
    if (delay === undefined) return undefined;
    // No attempt that would start after the total timeout.
    const elapsed = this.#clock.elapsed() - this.#startedAt;
    return elapsed + delay < totalTimeoutMs ? delay : undefined;
  }

  #mostAttempts(policy: RetryPolicy): number {
    // A hook may have read the stream.
    return this.#checked.body instanceof ReadableStream ? 1 : attemptsFor(this.#sent, policy);
  }

  #aborted(reason: unknown): RestError {
    return new RestError("aborted", "the request was aborted", this.#subject, { cause: reason });
  }

  #timeout(state: string): RestError {
    return new RestError("timeout", state, this.#subject);
  }
}

/** A hook that throws synchronously is like one that rejects. */
async function runHook<T>(hook: () => T | void | Promise<T | void>): Promise<T | undefined> {
  return await hook() ?? undefined;
}

/**
 * The client of `send` and `sendStream`, without options.
 *
 * @example
 * ```ts
 * import { defaultClient, Get } from "@weir/rest";
 *
 * async function isUp(baseURL: string, client = defaultClient): Promise<boolean> {
 *   return (await client.send({ method: Get, baseURL })).statusCode === 200;
 * }
 * ```
 */
export const defaultClient: Client = new Client();

/**
 * Sends a request and reads the response, as `Client.send` does.
 *
 * @example
 * ```ts
 * import { Post, send } from "@weir/rest";
 * import { assertEquals } from "#assert";
 *
 * await using server = Deno.serve({ port: 0, onListen() {} }, (request) => new Response(request.body));
 * const baseURL = `http://localhost:${server.addr.port}/`;
 * const response = await send({ method: Post, baseURL, body: '{"id":1}' });
 * assertEquals(response.json(), { id: 1 });
 * ```
 */
export function send(request: Request, options?: SendOptions): Promise<Response> {
  return defaultClient.send(request, options);
}

/**
 * Sends a request and streams the response, as `Client.sendStream` does.
 *
 * @example
 * ```ts
 * import { Get, sendStream } from "@weir/rest";
 * import { assertEquals } from "#assert";
 *
 * await using server = Deno.serve({ port: 0, onListen() {} }, () => new Response("a long text"));
 * const { bodyStream } = await sendStream({ method: Get, baseURL: `http://localhost:${server.addr.port}/` });
 * assertEquals(await new Response(bodyStream).text(), "a long text");
 * ```
 */
export function sendStream(request: Request, options?: SendOptions): Promise<StreamResponse> {
  return defaultClient.sendStream(request, options);
}
