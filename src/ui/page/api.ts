import { type Fields, fieldsOf, parseExact, textOf, textsOf } from "./fields.ts";
import type { Session, TokenUse } from "./session.ts";

interface ProblemFacts {
  readonly status?: number;
  readonly field?: string;
  readonly candidates?: readonly string[];
}

/** A call that the service rejected, or that failed. */
export class ApiProblem extends Error {
  override readonly name = "ApiProblem";
  /** 0 without a response. */
  readonly status: number;
  /** The invalid field, if any. */
  readonly field: string;
  /** The identifiers that an ambiguous one may mean. */
  readonly candidates: readonly string[];

  constructor(detail: string, { status = 0, field = "", candidates = [] }: ProblemFacts = {}) {
    super(detail);
    this.status = status;
    this.field = field;
    this.candidates = candidates;
  }
}

/** Options of a call. */
interface ApiCall {
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE";
  /** Query parameters; empty ones are left out. */
  readonly query?: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** A string is sent as it is: it must be JSON. */
  readonly body?: unknown;
}

const TIMEOUT_MS = 30_000;

/** Calls the service with the tokens of the session. */
export class Api {
  readonly #session: Session;
  readonly #fetch: typeof fetch;

  constructor(session: Session, send: typeof fetch) {
    this.#session = session;
    this.#fetch = send;
  }

  /** Calls the administration API; the path is relative to `/api/v1`. Throws an `ApiProblem`. */
  async administer(path: string, call: ApiCall = {}): Promise<Fields> {
    await this.#learnRole();
    return await this.#call("administration", `/api/v1${path}`, call);
  }

  /** Asks once for the role of a token: the page shows no buttons that the role does not allow. */
  async #learnRole(): Promise<void> {
    const token = this.#session.tokenFor("administration");
    if (token === undefined || this.#session.knowsRole(token)) return;
    const caller = await this.#call("administration", "/api/v1/whoami", {}).catch((error: unknown) => {
      // The call itself reports all but a wrong token, which costs a delay each time.
      if (error instanceof ApiProblem && error.status !== 401) return undefined;
      throw error;
    });
    if (caller !== undefined) this.#session.learnRole(token, textOf(caller, "role"));
  }

  async explain(query: NonNullable<ApiCall["query"]>): Promise<Fields> {
    return await this.#call("live", "/explain", { query });
  }

  /** The buckets of quotas that a filter selects. */
  async quotas(query: NonNullable<ApiCall["query"]>): Promise<Fields> {
    return await this.#call("live", "/quotas", { query });
  }

  /** The settings of the instance. */
  async settings(): Promise<Fields> {
    return await this.#call("live", "/settings", {});
  }

  async #call(use: TokenUse, path: string, call: ApiCall): Promise<Fields> {
    const { method = call.body === undefined ? "GET" : "POST", query = {}, body } = call;
    const token = this.#session.tokenFor(use);
    const headers = new Headers(call.headers);
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    if (body !== undefined) headers.set("content-type", "application/json");
    const sent = body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body);
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const init = { method, headers, body: sent, signal, cache: "no-store", redirect: "error" } as const;
    const [response, text] = await this.#send(`${path}${queryText(query)}`, init);
    if (response.ok) return fieldsOf(text === "" ? {} : parseResponse(text));
    if (response.status === 401) this.#session.reject(use, token);
    throw problemOf(response.status, text);
  }

  async #send(url: string, init: RequestInit): Promise<readonly [Response, string]> {
    try {
      const response = await this.#fetch(url, init);
      return [response, await response.text()];
    } catch (error) {
      const isLate = error instanceof DOMException && error.name === "TimeoutError";
      throw new ApiProblem(isLate ? "Cannot reach the service: timed out" : CONNECTION_FAILED);
    }
  }
}

/** The text of anything that was thrown. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : "Unexpected error";
}

const CONNECTION_FAILED = "Cannot reach the service: the connection failed";

function queryText(query: NonNullable<ApiCall["query"]>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of typeof value === "string" ? [value] : value ?? []) {
      if (one !== "") search.append(name, one);
    }
  }
  return search.size === 0 ? "" : `?${search}`;
}

function parseResponse(text: string): unknown {
  try {
    return parseExact(text);
  } catch {
    throw new ApiProblem("Cannot read the response: invalid JSON");
  }
}

function problemOf(status: number, text: string): ApiProblem {
  let fields: Fields = {};
  try {
    fields = fieldsOf(JSON.parse(text));
  } catch {
    // A proxy may respond with anything.
  }
  const detail = textOf(fields, "detail") || `The service responded with status ${status}`;
  const candidates = textsOf(fields, "candidates");
  return new ApiProblem(detail, { status, field: textOf(fields, "field"), candidates });
}
