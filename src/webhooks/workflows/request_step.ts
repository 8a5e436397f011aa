import { backoffMs } from "../../base/backoff.ts";
import { Client, type Response, type ResponseHeaders, RestError } from "../../rest/mod.ts";
import { type JsonValue, nestingProblem, parseJson, stringifyJson } from "../../base/exact_json.ts";
import { SendError } from "../outbound/send_error.ts";
import { renderText, renderValue, TemplateError, type TemplateScope } from "../model/template.ts";
import type { RequestStep } from "../model/workflow.ts";
import type { StepContext, StepOutcome } from "./step_context.ts";
import { renderUrl } from "./url.ts";

const MAX_RESPONSE_BYTES = 1_048_576;
const MAX_HEADER_BYTES = 16_384;
const MAX_NESTING = 64;
const LONGEST_BACKOFF_MS = 3_600_000;
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
// deno-lint-ignore no-control-regex
const NOT_IN_HEADERS = /[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]/;

/** Sends the request of a step once. The outcome holds nothing of the request. */
export async function sendRequest(step: RequestStep, context: StepContext): Promise<StepOutcome> {
  const { clock, fetch, signal, remainingMs } = context;
  const request = rendered(step, context);
  const timeoutMs = Math.max(1, Math.min(step.timeoutMs, Math.ceil(remainingMs)));
  const client = new Client({ fetch, clock, redirect: "manual", maxResponseBytes: MAX_RESPONSE_BYTES });
  let response: Response;
  try {
    response = await client.send(request, { signal, timeoutMs });
  } catch (error) {
    if (signal.aborted) return { kind: "interrupted" };
    if (!(error instanceof RestError)) throw error;
    const state = `request failed: ${failureText(error, timeoutMs)}`;
    return mayPass(error) ? retried(step, context, state) : { kind: "failed", error: state };
  }
  const { statusCode } = response;
  if (statusCode >= 200 && statusCode < 300) {
    const facts = { status: statusCode, headers: keptHeaders(response.headers), body: bodyOf(response) };
    return { kind: "done", result: stringifyJson(facts) };
  }
  const error = `the server responded with ${statusCode}`;
  const isPassing = statusCode >= 500 || statusCode === 408 || statusCode === 429;
  return isPassing ? retried(step, context, error) : { kind: "failed", error };
}

function rendered(step: RequestStep, { scope, executionId }: StepContext) {
  const body = step.body === undefined ? {} : { body: stringifyJson(renderValue(step.body, scope)) };
  return {
    method: step.method,
    baseURL: renderUrl(step.url, scope),
    headers: { ...headersOf(step, scope), "idempotency-key": `${executionId}:${step.name}` },
    queryParams: Object.fromEntries(step.query.map(([name, text]) => [name, renderText(text, scope)])),
    ...body,
  };
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

/** Retries the step, where its file allows one more attempt. */
function retried(step: RequestStep, { attempt, clock, random }: StepContext, error: string): StepOutcome {
  const { attempts, backoffMs: firstMs } = step.retry;
  if (attempt >= attempts) {
    return {
      kind: "failed",
      error: attempts === 1 ? error : `${error}, at the last of ${attempts} attempts`,
    };
  }
  const times = { firstMs, longestMs: Math.max(firstMs, LONGEST_BACKOFF_MS) };
  return { kind: "again", dueAt: clock.now() + Math.ceil(backoffMs(attempt, random(), times)), error };
}

/** Whether a retry may succeed. */
function mayPass({ code }: RestError): boolean {
  return code === "network" || code === "timeout" || code === "body_interrupted";
}

/** Our own texts: those of the error name the URL, in which a value may be secret. */
function failureText({ code, kind, cause }: RestError, timeoutMs: number): string {
  switch (code) {
    case "network":
      if (cause instanceof SendError) return cause.message;
      return kind === undefined ? "the connection failed" : NETWORK_TEXTS[kind];
    case "timeout":
      return `no response within ${timeoutMs} ms`;
    case "body_interrupted":
      return "the connection closed before the end of the response body";
    case "body_too_large":
      return `the response body has more than ${MAX_RESPONSE_BYTES} bytes`;
    case "invalid_header":
      return "a header of the request cannot be sent";
    case "invalid_url":
      return "the URL of the request cannot be used";
    default:
      return "the request cannot be sent";
  }
}

const NETWORK_TEXTS: Readonly<Record<NonNullable<RestError["kind"]>, string>> = {
  dns: "the name of the host cannot be resolved",
  connect: "no connection to the host",
  tls: "the TLS handshake with the host failed",
  redirect: "the redirect cannot be followed",
};

function bodyOf({ headers, body }: Response): JsonValue {
  const type = Object.hasOwn(headers, "content-type") ? headers["content-type"]?.[0] ?? "" : "";
  if (!JSON_TYPE.test(type) || nestingProblem(body, MAX_NESTING) !== undefined) return body;
  try {
    return parseJson(body);
  } catch {
    return body;
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
