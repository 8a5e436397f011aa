import { boundedBody, discardBody, readBody, type ReadBodyOptions } from "./body.ts";
import { type Clock, platformClock } from "./clock.ts";
import type { Request, Response, ResponseHeaders } from "./http_message.ts";
import { checkedOf, sendChecked, subjectOf } from "./make_request.ts";
import { checkOptions, type ClientOptions, type SendOptions } from "./options.ts";
import { type CheckedRequest, checkRequest, webRequestOf } from "./request.ts";
import { headersOf, readResponse, responseOf } from "./response.ts";
import { RestError, type RestErrorSubject } from "./rest_error.ts";
import { attemptsFor, isPassing, retryDelayMs, type RetryPolicy, retryPolicy } from "./retry.ts";
import { pause, Stop, unlessStopped } from "./stop.ts";

/**
 * A response whose body comes as a stream.
 *
 * @example
 * ```ts
 * import { Client, Get, type StreamResponse } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * // Keeps only as much of a body as is needed, and lets go of the rest.
 * async function firstBytes({ bodyStream }: StreamResponse, most: number): Promise<Uint8Array> {
 *   for await (const bytes of bodyStream) return bytes.slice(0, most);
 *   return new Uint8Array();
 * }
 *
 * const { fetch } = new ScriptedTransport([{ body: "PNG and much more" }]);
 * const response = await new Client({ fetch }).sendStream({ method: Get, baseURL: "https://example.com/" });
 * assertEquals(response.statusCode, 200);
 * assertEquals(await firstBytes(response, 3), new TextEncoder().encode("PNG"));
 * ```
 */
export interface StreamResponse {
  /** The status: any is a normal result. */
  readonly statusCode: number;
  /** The headers. */
  readonly headers: ResponseHeaders;
  /**
   * The body as it arrives. It has to be read to its end or cancelled. It fails with a `RestError`:
   * `body_interrupted`, `body_too_large`, `timeout` or `aborted`.
   */
  readonly bodyStream: ReadableStream<Uint8Array<ArrayBuffer>>;
}

type Settings = ClientOptions & SendOptions;

/** Whether nothing is asked for that needs more than one step after the other. */
function isPlain(settings: Settings): boolean {
  const { signal, timeoutMs, totalTimeoutMs, retry, onRequest, onResponse, throwOnStatus } = settings;
  return (signal ?? timeoutMs ?? totalTimeoutMs ?? retry ?? onRequest ?? onResponse) === undefined &&
    throwOnStatus !== true;
}

/**
 * Sends requests with options that hold for all of them. It keeps nothing between calls, so there is nothing to
 * close; a `httpClient` is its owner's to close.
 *
 * @example
 * ```ts
 * import { Client, Get } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * await using server = Deno.serve({ port: 0, onListen() {} }, () => new Response("hello"));
 * const client = new Client({ timeoutMs: 5_000, retry: { attempts: 3 } });
 * const response = await client.send({ method: Get, baseURL: `http://localhost:${server.addr.port}/` });
 * assertEquals([response.statusCode, response.body], [200, "hello"]);
 * ```
 */
export class Client {
  readonly #options: ClientOptions;

  /** Throws a `RangeError` that names an option which makes no sense. */
  constructor(options: ClientOptions = {}) {
    checkOptions(options);
    this.#options = { ...options };
  }

  /**
   * Sends a request and reads the response to its end. Options of the call win over those of the client, also
   * where they are `undefined`, which takes one back.
   *
   * @throws {RestError} Where no whole response came; any status is one, unless `throwOnStatus` says otherwise.
   */
  async send(request: Request, options?: SendOptions): Promise<Response> {
    const settings = this.#with(options);
    if (!isPlain(settings)) return await new Call(request, settings).buffered();
    const checked = checkRequest(request);
    const response = await sendChecked(checked, settings);
    const subject = subjectOf(checked);
    const body = await readBody(response, { maxBytes: settings.maxResponseBytes, subject });
    return responseOf(response, body, subject);
  }

  /**
   * As `send`, but answers when the headers are there. The time limits and the signal hold until the end of the
   * body; a body that breaks off is not asked for again.
   *
   * @throws {RestError} Where no response came; any status is one, unless `throwOnStatus` says otherwise.
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
  readonly #subject: RestErrorSubject;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #policy: RetryPolicy | undefined;
  /** The caller's signal and the total time. */
  readonly #whole: Stop | undefined;
  /** Signal and time of the attempt that runs; the one of the whole where it has no time of its own. */
  #stop: Stop | undefined;

  constructor(request: Request, settings: Settings) {
    const { clock = platformClock, signal, totalTimeoutMs: ms } = settings;
    this.#settings = settings;
    this.#request = request;
    this.#checked = checkRequest(request);
    this.#subject = subjectOf(this.#checked);
    this.#clock = clock;
    this.#startedAt = clock.elapsed();
    this.#policy = settings.retry === undefined ? undefined : retryPolicy(settings.retry);
    const onSignal = (cause: unknown) =>
      new RestError("aborted", "it was cancelled", this.#subject, { cause });
    const onTime = () => this.#timeout(`it was not done within ${ms} ms in total`);
    if (signal !== undefined || ms !== undefined) {
      this.#whole = new Stop({ signal, onSignal, ms, onTime, clock });
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

  /** Tries until there is an answer to take, or nothing left to try. */
  async #attempts<T>(take: (response: globalThis.Response) => T | Promise<T>): Promise<T> {
    for (let attempt = 1;; attempt++) {
      this.#beginAttempt();
      let delay: number | undefined;
      try {
        const response = await this.#attempt(attempt);
        delay = this.#delayAfterResponse(attempt, response);
        if (delay === undefined) return await take(response);
        discardBody(response);
      } catch (error) {
        delay = this.#delayAfterError(attempt, error);
        if (delay === undefined) throw error;
      }
      this.#endAttempt();
      await pause(delay, this.#clock, this.#whole?.signal);
    }
  }

  #beginAttempt(): void {
    const { timeoutMs: ms } = this.#settings;
    const signal = this.#whole?.signal;
    const onTime = () => this.#timeout(`no whole response came within ${ms} ms`);
    const onSignal = (reason: unknown) => reason instanceof RestError ? reason : this.#aborted(reason);
    this.#stop = ms === undefined
      ? this.#whole
      : new Stop({ signal, onSignal, ms, onTime, clock: this.#clock });
  }

  #endAttempt(): void {
    if (this.#stop !== this.#whole) this.#stop?.release();
    this.#stop = undefined;
  }

  #release(): void {
    this.#endAttempt();
    this.#whole?.release();
  }

  async #attempt(attempt: number): Promise<globalThis.Response> {
    const { onResponse } = this.#settings;
    const signal = this.#stop?.signal;
    const checked = await this.#hooked(attempt);
    const response = await sendChecked(checked, { ...this.#settings, signal });
    if (onResponse === undefined) return response;
    try {
      const other = await unlessStopped(runHook(() => onResponse(response, { attempt })), signal);
      // A response made of the body of this one is still to be read.
      if (other !== undefined && other.body !== response.body) discardBody(response);
      return other ?? response;
    } catch (error) {
      discardBody(response);
      throw error;
    }
  }

  /** The request after its hook. */
  async #hooked(attempt: number): Promise<CheckedRequest> {
    const { onRequest } = this.#settings;
    if (onRequest === undefined) return this.#checked;
    const web = webRequestOf(this.#checked);
    const other = await unlessStopped(runHook(() => onRequest(web, { attempt })), this.#stop?.signal);
    if (other === undefined || other === web) {
      return { ...this.#checked, headers: Object.fromEntries(web.headers) };
    }
    return { ...await checkedOf(other), request: this.#request };
  }

  async #read(response: globalThis.Response): Promise<Response> {
    const read = await readResponse(response, this.#bodyOptions());
    if (!this.#isRefused(response)) return read;
    throw this.#refused(response, read);
  }

  #stream(response: globalThis.Response): StreamResponse {
    if (this.#isRefused(response)) {
      discardBody(response);
      throw this.#refused(response, undefined);
    }
    const bodyStream = boundedBody(response, this.#bodyOptions(), () => this.#release());
    return { statusCode: response.status, headers: headersOf(response), bodyStream };
  }

  #bodyOptions(): ReadBodyOptions {
    return { maxBytes: this.#settings.maxResponseBytes, signal: this.#stop?.signal, subject: this.#subject };
  }

  #isRefused({ status }: globalThis.Response): boolean {
    return this.#settings.throwOnStatus === true && status >= 400;
  }

  #refused({ status }: globalThis.Response, response: Response | undefined): RestError {
    return new RestError("status", `the server answered ${status}`, this.#subject, {
      statusCode: status,
      response,
    });
  }

  #delayAfterResponse(attempt: number, { status, headers }: globalThis.Response): number | undefined {
    if (this.#policy?.statuses.includes(status) !== true) return undefined;
    return this.#delay(attempt, headers.get("retry-after"));
  }

  #delayAfterError(attempt: number, error: unknown): number | undefined {
    return isPassing(error) ? this.#delay(attempt, null) : undefined;
  }

  /** Milliseconds until the next attempt; nothing where this was the last one. */
  #delay(attempt: number, retryAfter: string | null): number | undefined {
    const { random = Math.random, totalTimeoutMs = Infinity } = this.#settings;
    const policy = this.#policy;
    if (policy === undefined || attempt >= attemptsFor(this.#request, policy)) return undefined;
    if (this.#whole?.signal.aborted === true) return undefined;
    const delay = retryDelayMs(policy, { attempt, retryAfter, now: this.#clock.now(), random: random() });
    if (delay === undefined) return undefined;
    // An attempt that could not even begin helps nobody: what there is now is the result.
    const passed = this.#clock.elapsed() - this.#startedAt;
    return passed + delay < totalTimeoutMs ? delay : undefined;
  }

  #aborted(reason: unknown): RestError {
    return new RestError("aborted", "it was cancelled", this.#subject, { cause: reason });
  }

  #timeout(state: string): RestError {
    return new RestError("timeout", state, this.#subject);
  }
}

/** What a hook answers; one that throws at once is like one that throws later. */
async function runHook<T>(hook: () => T | void | Promise<T | void>): Promise<T | undefined> {
  return await hook() ?? undefined;
}

/**
 * The client of `send` and `sendStream`, with every option off.
 *
 * @example
 * ```ts
 * import { Client, defaultClient, Get } from "@weir/rest";
 * import { ScriptedTransport } from "@weir/rest/testing";
 * import { assertEquals } from "@std/assert";
 *
 * // Works with the default client, and with that of a test.
 * async function isUp(baseURL: string, client: Client = defaultClient): Promise<boolean> {
 *   return (await client.send({ method: Get, baseURL })).statusCode === 200;
 * }
 *
 * const { fetch } = new ScriptedTransport([{ status: 503 }]);
 * assertEquals(await isUp("https://api.example.com/health", new Client({ fetch })), false);
 * ```
 */
export const defaultClient: Client = new Client();

/**
 * Sends a request and reads the response to its end.
 *
 * @throws {RestError} Where no whole response came; any status is one, unless `throwOnStatus` says otherwise.
 *
 * @example
 * ```ts
 * import { Post, send } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * await using server = Deno.serve({ port: 0, onListen() {} }, (request) => new Response(request.body));
 * const response = await send({
 *   method: Post,
 *   baseURL: `http://localhost:${server.addr.port}/echo`,
 *   body: JSON.stringify({ id: 1 }),
 * });
 * assertEquals(response.json(), { id: 1 });
 * ```
 */
export function send(request: Request, options?: SendOptions): Promise<Response> {
  return defaultClient.send(request, options);
}

/**
 * Sends a request and answers when the headers are there, with the body as a stream.
 *
 * @throws {RestError} Where no response came; any status is one, unless `throwOnStatus` says otherwise.
 *
 * @example
 * ```ts
 * import { Get, sendStream } from "@weir/rest";
 * import { assertEquals } from "@std/assert";
 *
 * await using server = Deno.serve({ port: 0, onListen() {} }, () => new Response("a long text"));
 * const { bodyStream } = await sendStream({ method: Get, baseURL: `http://localhost:${server.addr.port}/` });
 * let length = 0;
 * for await (const bytes of bodyStream) length += bytes.byteLength;
 * assertEquals(length, 11);
 * ```
 */
export function sendStream(request: Request, options?: SendOptions): Promise<StreamResponse> {
  return defaultClient.sendStream(request, options);
}
