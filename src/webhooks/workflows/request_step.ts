import { isJsonType } from "../../base/body_text.ts";
import { backoffMs } from "../../base/backoff.ts";
import {
  Client,
  type Fetch,
  type Request,
  type Response,
  type ResponseHeaders,
  RestError,
} from "../../rest/mod.ts";
import { nestingProblem, stringifyJson } from "../../base/exact_json.ts";
import { JsonText } from "../../base/json_text.ts";
import { type GuardedRequestInit, MAX_DECODED_BYTES } from "../../net/outbound/fetch.ts";
import { textOfBody } from "../../net/outbound/response_body.ts";
import { isUnsent, SendError } from "../../net/outbound/send_error.ts";
import {
  renderText,
  renderTexts,
  renderValue,
  TemplateError,
  type TemplatePath,
  type TemplateScope,
} from "../model/template.ts";
import type { RequestStep } from "../model/workflow.ts";
import type { StepContext, StepOutcome } from "./step_context.ts";
import { renderUrl } from "./url.ts";

const MAX_HEADER_BYTES = 16_384;
const MAX_NESTING = 64;
const LONGEST_BACKOFF_MS = 3_600_000;
const FORM_TYPE = "application/x-www-form-urlencoded";
/** Attempts, at least, of a request that could not be written: nothing was done twice, and a busy machine recovers. */
const UNSENT_ATTEMPTS = 5;
/** Methods that change nothing: what was read of a success does not matter when they are repeated. */
const SAFE = ["GET", "HEAD", "OPTIONS"];
// deno-lint-ignore no-control-regex
const NOT_IN_HEADERS = /[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]/;

/** Sends the request of a step once. The outcome holds nothing of the request. */
export async function sendRequest(step: RequestStep, context: StepContext): Promise<StepOutcome> {
  const { clock, signal, remainingMs } = context;
  const request = rendered(step, context);
  const timeoutMs = Math.max(1, Math.min(step.timeoutMs, Math.ceil(remainingMs)));
  const seen = new SeenStatus(context.fetch);
  const { fetch } = seen;
  const client = new Client({ fetch, clock, redirect: "manual", maxResponseBytes: MAX_DECODED_BYTES });
  try {
    const response = await client.send(request, { signal, timeoutMs });
    return isSuccess(response.statusCode) ? doneBy(response) : failedBy(response.statusCode, step, context);
  } catch (error) {
    if (signal.aborted) return { kind: "interrupted" };
    if (!(error instanceof RestError)) throw error;
    const { status } = seen;
    // With the status the outcome is known, whatever comes of the rest.
    if (status !== undefined && !isSuccess(status)) return failedBy(status, step, context);
    const state = `request failed: ${failureText(error, timeoutMs, status !== undefined)}`;
    if (isUnsent(error)) return retried(step, context, state, UNSENT_ATTEMPTS);
    const isRetried = mayPass(error) && (status === undefined || SAFE.includes(step.method));
    return isRetried ? retried(step, context, state) : { kind: "failed", error: state };
  }
}

/** Remembers the status of a response as soon as its line was read; of a failure it reads no more. */
class SeenStatus {
  status: number | undefined;
  readonly fetch: Fetch;

  constructor(fetch: Fetch) {
    this.fetch = async (input, init) => {
      const onStatus = (status: number): void => {
        this.status = status;
      };
      const noting: GuardedRequestInit = { ...init, onStatus };
      const response = await fetch(input, noting);
      onStatus(response.status);
      if (isSuccess(response.status)) return response;
      response.body?.cancel().catch(() => {});
      return new globalThis.Response(null, { status: response.status });
    };
  }
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function doneBy(response: Response): StepOutcome {
  const { headers, statusCode: status, bodyBytes } = response;
  const type = Object.hasOwn(headers, "content-type") ? headers["content-type"]?.[0] ?? "" : "";
  const { text, problem } = textOfBody(bodyBytes, type);
  if (problem !== undefined) {
    return { kind: "failed", error: `request failed: the response body ${problem}` };
  }
  const facts = stringifyJson({ status, headers: keptHeaders(headers) });
  return { kind: "done", result: `${facts.slice(0, -1)},"body":${stringifyJson(valueOf(text, type))}}` };
}

function failedBy(status: number, step: RequestStep, context: StepContext): StepOutcome {
  const error = `the server responded with ${status}`;
  const isPassing = status >= 500 || status === 408 || status === 429;
  return isPassing ? retried(step, context, error) : { kind: "failed", error };
}

function rendered(step: RequestStep, { scope, executionId }: StepContext): Request {
  const headers = { ...headersOf(step, scope), "idempotency-key": `${executionId}:${step.name}` };
  const request = { method: step.method, baseURL: renderUrl(step.url, scope) };
  const texts = Map.groupBy(parametersOf(step.query, scope), ([name]) => name);
  const queryParams = Object.fromEntries(
    [...texts].map(([name, pairs]) => [name, pairs.map(([, text]) => text)]),
  );
  if (step.form !== undefined) {
    const body = new URLSearchParams(parametersOf(step.form, scope)).toString();
    const isTyped = step.headers.some(([name]) => name.toLowerCase() === "content-type");
    const typed = isTyped ? headers : { ...headers, "content-type": FORM_TYPE };
    return { ...request, headers: typed, queryParams, body };
  }
  const body = step.body === undefined ? undefined : stringifyJson(renderValue(step.body, scope));
  return { ...request, headers, queryParams, body };
}

function parametersOf(parameters: RequestStep["query"], scope: TemplateScope): [string, string][] {
  return parameters.flatMap(([name, template]) =>
    renderTexts(template, scope, wholeText).map((text): [string, string] => [name, text])
  );
}

function wholeText(text: string, path: TemplatePath): string {
  if (text.isWellFormed()) return text;
  throw new TemplateError(`Cannot write "${path.text}" into a parameter: it holds half of a character`);
}

function headersOf({ headers }: RequestStep, scope: TemplateScope): Record<string, string> {
  return Object.fromEntries(headers.map(([name, template]) => {
    const text = renderText(template, scope);
    if (!NOT_IN_HEADERS.test(text)) return [name, text];
    throw new TemplateError(
      `Cannot write the header "${name}": it would hold a line break, a control character or one beyond Latin-1`,
    );
  }));
}

/** Retries the step, where its file or `least` allows one more attempt. */
function retried(
  step: RequestStep,
  { attempt, clock, random }: StepContext,
  error: string,
  least = 1,
): StepOutcome {
  const { backoffMs: firstMs } = step.retry;
  const attempts = Math.max(step.retry.attempts, least);
  if (attempt >= attempts) {
    return {
      kind: "failed",
      error: attempts === 1 ? error : `${error}, at the last of ${attempts} attempts`,
    };
  }
  const times = { firstMs, longestMs: Math.max(firstMs, LONGEST_BACKOFF_MS) };
  return { kind: "again", dueAt: clock.now() + Math.ceil(backoffMs(attempt, random(), times)), error };
}

/** True if a retry may succeed. */
function mayPass({ code, cause }: RestError): boolean {
  return code === "network" || code === "timeout" || (code === "body_interrupted" && !isProtocolError(cause));
}

/** Our own texts: those of the error name the URL, in which a value may be secret. */
function failureText(error: RestError, timeoutMs: number, hasStatus: boolean): string {
  const { code, kind, cause } = error;
  switch (code) {
    case "network":
      if (cause instanceof SendError) return cause.message;
      return kind === undefined ? "the connection failed" : NETWORK_TEXTS[kind];
    case "timeout":
      if (isUnsent(error)) return `no connection within ${timeoutMs} ms`;
      return `no ${hasStatus ? "complete " : ""}response within ${timeoutMs} ms`;
    case "body_interrupted":
      if (isProtocolError(cause)) return cause.message;
      return "the connection closed before the end of the response body";
    case "body_too_large":
      return `the response body has more than ${MAX_DECODED_BYTES} bytes`;
    case "invalid_header":
      return "a header of the request cannot be sent";
    case "invalid_url":
      return "the URL of the request cannot be used";
    default:
      return "the request cannot be sent";
  }
}

/** True if a body cannot be read, which stays so when it is sent again. */
function isProtocolError(cause: unknown): cause is SendError {
  return cause instanceof SendError && cause.kind === "protocol";
}

const NETWORK_TEXTS: Readonly<Record<NonNullable<RestError["kind"]>, string>> = {
  dns: "the name of the host cannot be resolved",
  connect: "no connection to the host",
  tls: "the TLS handshake with the host failed",
  redirect: "the redirect cannot be followed",
};

/** JSON as it was received, or the text of what is none. */
function valueOf(text: string, type: string): JsonText | string {
  if (!isJsonType(type) || nestingProblem(text, MAX_NESTING) !== undefined) return text;
  try {
    JSON.parse(text);
    return new JsonText(text);
  } catch {
    return text;
  }
}

/** The headers by name, as many as the limit allows. */
function keptHeaders(headers: ResponseHeaders): Record<string, string> {
  let left = MAX_HEADER_BYTES;
  const kept = Object.entries(headers).flatMap(([name, values]) => {
    const text = values.join(", ");
    const length = name.length + text.length;
    if (length > left) return [];
    left -= length;
    return [[name, text] as const];
  });
  return Object.fromEntries(kept);
}
