import type { Clock } from "../../base/clock.ts";
import type { WebhookAnswer } from "../api/calls.ts";
import { problemAnswer, unavailable, type WebhookProblem } from "../api/problem.ts";

interface Pending {
  readonly requestId: string;
  /** By the clock's `elapsed`. */
  readonly deadline: number;
  readonly resolve: (answer: WebhookAnswer | undefined) => void;
}

/** How long a request to the worker may take. */
export const REQUEST_TIMEOUT_MS = 10_000;
const SWEEP_MS = 1_000;
const MAX_PENDING = 10_000;

/** Requests to the worker that are not answered yet. Each is answered in the end, if only with 503. */
export class PendingRequests {
  readonly #clock: Clock;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;
  #cancelSweep: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sends a request by its number; resolves to its answer. */
  ask(
    requestId: string,
    send: (id: number) => void,
    timeoutMs: number,
  ): Promise<WebhookAnswer | undefined> {
    if (this.#pending.size >= MAX_PENDING) return Promise.resolve(problemAnswer(BUSY, requestId));
    const id = ++this.#lastId;
    const { promise, resolve } = Promise.withResolvers<WebhookAnswer | undefined>();
    this.#pending.set(id, { requestId, resolve, deadline: this.#clock.elapsed() + timeoutMs });
    this.#cancelSweep ??= this.#sweepLater();
    send(id);
    return promise;
  }

  /** Answers a request, unless it timed out before. */
  settle(id: number, answer: WebhookAnswer | undefined): void {
    this.#pending.get(id)?.resolve(answer);
    this.#pending.delete(id);
    if (this.#pending.size > 0) return;
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
  }

  /** Answers every request with this refusal. */
  end(problem: WebhookProblem): void {
    for (const [id, { requestId }] of [...this.#pending]) this.settle(id, problemAnswer(problem, requestId));
  }

  #sweepLater(): () => void {
    return this.#clock.after(SWEEP_MS, () => {
      this.#cancelSweep = undefined;
      const now = this.#clock.elapsed();
      for (const [id, { requestId, deadline }] of [...this.#pending]) {
        if (deadline <= now) this.settle(id, problemAnswer(OVERDUE, requestId));
      }
      if (this.#pending.size > 0) this.#cancelSweep ??= this.#sweepLater();
    });
  }
}

const BUSY = unavailable("webhooks_unavailable", "Cannot answer: too many calls are pending");
const OVERDUE = unavailable("webhooks_unavailable", "Cannot answer: the webhook service timed out");
