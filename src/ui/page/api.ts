import { parseExact } from "./exact_json.ts";
import { type Fields, fieldsOf, textOf } from "./fields.ts";
import type { Session, TokenUse } from "./session.ts";

/** A call that was refused, or that nobody answered. */
export class ApiProblem extends Error {
  override readonly name = "ApiProblem";
  /** 0 where there was no answer. */
  readonly status: number;
  /** The field that is wrong, where it is one. */
  readonly field: string;

  constructor(detail: string, { status = 0, field = "" }: { status?: number; field?: string } = {}) {
    super(detail);
    this.status = status;
    this.field = field;
  }
}

/** What a call is made of. */
export interface ApiCall {
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE";
  /** Query parameters; those that are empty are left out. */
  readonly query?: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** A text is taken as the JSON it is. */
  readonly body?: unknown;
}

/** What calls are made with. */
export interface ApiOptions {
  readonly session: Session;
  readonly fetch: typeof fetch;
}

const CALL_MS = 30_000;

/** Makes calls of this service with the tokens of the session. */
export class Api {
  readonly #session: Session;
  readonly #fetch: typeof fetch;

  constructor({ session, fetch }: ApiOptions) {
    this.#session = session;
    this.#fetch = fetch;
  }

  /** A call of the administration: the path is what stands behind `/api/v1`. Throws an `ApiProblem`. */
  async administer(path: string, call: ApiCall = {}): Promise<Fields> {
    return await this.#call("administration", `/api/v1${path}`, call);
  }

  /** `GET /explain`. Throws an `ApiProblem`. */
  async explain(query: NonNullable<ApiCall["query"]>): Promise<Fields> {
    return await this.#call("live", "/explain", { query });
  }

  async #call(use: TokenUse, path: string, call: ApiCall): Promise<Fields> {
    const { method = call.body === undefined ? "GET" : "POST", query = {}, body } = call;
    const token = this.#session.tokenFor(use);
    const headers = new Headers();
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    if (body !== undefined) headers.set("content-type", "application/json");
    const sent = body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body);
    const signal = AbortSignal.timeout(CALL_MS);
    const init = { method, headers, body: sent, signal, cache: "no-store", redirect: "error" } as const;
    const [response, text] = await this.#answer(`${path}${queryText(query)}`, init);
    if (response.ok) return fieldsOf(text === "" ? {} : readAnswer(text));
    if (response.status === 401) this.#session.refuse(use, token);
    throw problemOf(response.status, text);
  }

  async #answer(url: string, init: RequestInit): Promise<readonly [Response, string]> {
    try {
      const response = await this.#fetch(url, init);
      return [response, await response.text()];
    } catch (error) {
      const isLate = error instanceof DOMException && error.name === "TimeoutError";
      throw new ApiProblem(isLate ? "Cannot wait any longer: the service did not answer" : NO_ANSWER);
    }
  }
}

/** What to say about something that was thrown. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : "Cannot do this: something unexpected happened";
}

const NO_ANSWER = "Cannot reach the service: the connection failed";

function queryText(query: NonNullable<ApiCall["query"]>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of typeof value === "string" ? [value] : value ?? []) {
      if (one !== "") search.append(name, one);
    }
  }
  return search.size === 0 ? "" : `?${search}`;
}

function readAnswer(text: string): unknown {
  try {
    return parseExact(text);
  } catch {
    throw new ApiProblem("Cannot read the answer of the service: it is no JSON");
  }
}

function problemOf(status: number, text: string): ApiProblem {
  let fields: Fields = {};
  try {
    fields = fieldsOf(JSON.parse(text));
  } catch {
    // What is between us and the service may answer anything; the status says enough.
  }
  const detail = textOf(fields, "detail") || `Cannot do this: the service answered ${status}`;
  return new ApiProblem(detail, { status, field: textOf(fields, "field") });
}
