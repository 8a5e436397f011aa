import type { Logger } from "../../base/log.ts";
import { problemResponse } from "./problem.ts";
import { type HttpHandler, REQUEST_ID_HEADER, requestIdOf } from "./router.ts";

/** The requests whose handlers run, so that waiting for them can be ended. */
export class RunningRequests {
  readonly #handler: HttpHandler;
  readonly #logger: Logger;
  readonly #closing = new AbortController();
  readonly #endings = new Set<() => void>();
  #isDraining = false;

  constructor(handler: HttpHandler, logger: Logger) {
    this.#handler = handler;
    this.#logger = logger;
  }

  /** Handles a request of the client at `peer`; never rejects. */
  answer(request: Request, peer: string): Promise<Response> {
    return new Promise((resolve) => {
      const end = () => resolve(shuttingDown(request));
      const fail = (error: unknown) =>
        resolve(failedResponse(error, requestIdOf(request.headers), this.#logger));
      this.#endings.add(end);
      this.#handler(request, this.#closing.signal, peer)
        .then((response) => forMethod(request, response))
        .then((response) => resolve(this.#isDraining ? asLast(response) : response))
        .catch(fail)
        .finally(() => this.#endings.delete(end));
    });
  }

  /** Makes every further response the last of its connection. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Answers every running request with 503. */
  giveUp(): void {
    for (const end of this.#endings) end();
    this.#closing.abort();
  }
}

/** The response for a handler that throws against its contract. */
function failedResponse(error: unknown, requestId: string, logger: Logger): Response {
  logger.error("HTTP request failed", { requestId, error });
  const headers = { [REQUEST_ID_HEADER]: requestId };
  return problemResponse({ kind: "internal", reason: "internal error", headers }, requestId);
}

/** HEAD gets the length of GET. */
async function forMethod({ method }: Request, response: Response): Promise<Response> {
  if (method !== "HEAD" || response.body === null) return response;
  const { byteLength } = await response.arrayBuffer();
  const { status, headers } = response;
  headers.set("content-length", `${byteLength}`);
  return new Response(null, { status, headers });
}

function asLast(response: Response): Response {
  response.headers.set("connection", "close");
  return response;
}

function shuttingDown(request: Request): Response {
  const requestId = requestIdOf(request.headers);
  const reason = "the service is shutting down";
  const headers = { connection: "close", [REQUEST_ID_HEADER]: requestId };
  return problemResponse({ kind: "shutting_down", reason, headers }, requestId);
}
