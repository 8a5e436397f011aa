import type { Clock } from "../../base/clock.ts";
import type { WebhookAnswer } from "../api/calls.ts";
import { problemAnswer, unavailable, type WebhookProblem } from "../api/problem.ts";

interface Pending {
  readonly requestId: string;
  readonly resolve: (answer: WebhookAnswer) => void;
  readonly cancelTimeout: () => void;
}

/** The timeout of a request to the worker. */
export const REQUEST_TIMEOUT_MS = 10_000;
const MAX_PENDING = 10_000;

/** Requests to the worker that are not answered yet. Each is answered in the end, if only with 503. */
export class PendingRequests {
  readonly #clock: Clock;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sends a request by its number; resolves to its answer. */
  ask(requestId: string, send: (id: number) => void, timeoutMs: number): Promise<WebhookAnswer> {
    if (this.#pending.size >= MAX_PENDING) return Promise.resolve(problemAnswer(BUSY, requestId));
    const id = ++this.#lastId;
    const { promise, resolve } = Promise.withResolvers<WebhookAnswer>();
    const cancelTimeout = this.#clock.after(timeoutMs, () => {
      this.settle(id, problemAnswer(OVERDUE, requestId));
    });
    this.#pending.set(id, { requestId, resolve, cancelTimeout });
    send(id);
    return promise;
  }

  /** Answers a request, unless it timed out before. */
  settle(id: number, answer: WebhookAnswer): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.cancelTimeout();
    pending?.resolve(answer);
  }

  /** Answers every request with this refusal. */
  end(problem: WebhookProblem): void {
    for (const [id, { requestId }] of [...this.#pending]) this.settle(id, problemAnswer(problem, requestId));
  }
}

const BUSY = unavailable("webhooks_unavailable", "Cannot answer: too many calls are pending");
const OVERDUE = unavailable("webhooks_unavailable", "Cannot answer: the webhook service timed out");
