/** A JSON object of an answer; which of these fields it has is for the test to know. */
export interface AnswerBody {
  readonly [name: string]: unknown;
  readonly id: string;
  readonly key: string;
  readonly secret: string;
  readonly code: string;
  readonly state: string;
  readonly status: string | number;
  readonly event: string;
  readonly eventId: string;
  readonly endpointId: string;
  readonly result: unknown;
  readonly error: string;
  readonly errorKind: string;
  readonly executionId: string;
  readonly deliveries: number;
  readonly attempts: readonly AnswerBody[];
  readonly steps: readonly AnswerBody[];
  readonly items: readonly AnswerBody[];
  readonly nextCursor: string | undefined;
}

/** An answer as a test looks at it. */
export interface WebhookAnswered {
  readonly status: number;
  readonly headers: Headers;
  readonly body: AnswerBody;
  /** Number of times that it was asked. */
  readonly tries: number;
}

/** Options of a webhook call. */
interface WebhookCallOptions {
  readonly method?: string | undefined;
  readonly token?: string | undefined;
  /** The `Idempotency-Key`. */
  readonly key?: string | undefined;
  /** Further headers, such as those of a signature. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
}

const CALL_MS = 60_000;
const REPEAT_MS = 300_000;
const PAUSE_MS = 25;
/** Says that it may be asked again. */
const REPEATED = [409, 503];

/** Makes one call. */
export async function webhookCall(url: string, options: WebhookCallOptions): Promise<WebhookAnswered> {
  const { method = "POST", token, key, headers, body } = options;
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(url, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(key === undefined ? {} : { "idempotency-key": key }),
      ...(text === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(text === undefined ? {} : { body: text }),
    signal: AbortSignal.timeout(CALL_MS),
  });
  const answer = await response.text();
  const read = answer === "" ? {} : JSON.parse(answer);
  return { status: response.status, headers: response.headers, body: read, tries: 1 };
}

/** A webhook service that is starting, or was too slow for its machine. */
const UNAVAILABLE = "webhooks_unavailable";
const TIMED_OUT = "timed out";
const TAKEN_MS = 60_000;

/**
 * Makes a call until the webhook service has taken it. One that timed out may have been carried out: it is repeated only
 * where this changes nothing. After a minute the refusal stands.
 */
export async function takenCall(url: string, options: WebhookCallOptions): Promise<WebhookAnswered> {
  const end = performance.now() + TAKEN_MS;
  const isSafe = options.method === "GET" || options.key !== undefined;
  for (let tries = 1;; tries++) {
    const answered = await webhookCall(url, options);
    const { code, detail } = answered.body;
    const isRefused = code === UNAVAILABLE && (isSafe || !String(detail).includes(TIMED_OUT));
    if (!isRefused || performance.now() > end) return { ...answered, tries };
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/**
 * Posts until there is an answer that stands: what was not answered, or refused for the moment, is repeated, at the
 * next address where there are several.
 */
export async function post(
  url: string | ((tries: number) => string),
  body: unknown,
  options: Pick<WebhookCallOptions, "token" | "key" | "headers">,
): Promise<WebhookAnswered> {
  const end = performance.now() + REPEAT_MS;
  let cause: unknown;
  for (let tries = 1; performance.now() < end; tries++) {
    try {
      const answered = await webhookCall(typeof url === "string" ? url : url(tries), { ...options, body });
      if (!REPEATED.includes(answered.status)) return { ...answered, tries };
      cause = answered.body;
    } catch (error) {
      cause = error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  const shown = typeof url === "string" ? url : url(1);
  throw new Error(`Cannot post to "${shown}": nothing came within ${REPEAT_MS} ms`, { cause });
}
