import type { Clock } from "../../base/clock.ts";
import { problemAnswer, unavailable, type WebhookProblem } from "../api/problem.ts";
import type { WebhookAnswer } from "../api/calls.ts";

interface Waiting {
  readonly requestId: string;
  /** By the clock's `elapsed`. */
  readonly deadline: number;
  readonly resolve: (answer: WebhookAnswer | undefined) => void;
}

/** How long a question may wait for its answer. */
export const ANSWER_MS = 10_000;
/** Overdue questions are looked for so often. */
const SWEEP_MS = 1_000;
const MAX_WAITING = 10_000;

/** Questions that were sent and are not answered yet. Each is answered, if only with 503. */
export class WebhookQuestions {
  readonly #clock: Clock;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #cancelSweep: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Sends a question by its number; answers what comes back for it. */
  ask(
    requestId: string,
    send: (id: number) => void,
    answerMs = ANSWER_MS,
  ): Promise<WebhookAnswer | undefined> {
    if (this.#waiting.size >= MAX_WAITING) return Promise.resolve(problemAnswer(BUSY, requestId));
    const id = ++this.#lastId;
    const { promise, resolve } = Promise.withResolvers<WebhookAnswer | undefined>();
    this.#waiting.set(id, { requestId, resolve, deadline: this.#clock.elapsed() + answerMs });
    this.#cancelSweep ??= this.#sweepLater();
    send(id);
    return promise;
  }

  /** Takes the answer to a question; one that waits no more has been answered before. */
  answer(id: number, answer: WebhookAnswer | undefined): void {
    this.#waiting.get(id)?.resolve(answer);
    this.#waiting.delete(id);
    if (this.#waiting.size > 0) return;
    this.#cancelSweep?.();
    this.#cancelSweep = undefined;
  }

  /** Answers everything that waits with this refusal. */
  end(problem: WebhookProblem): void {
    for (const [id, { requestId }] of [...this.#waiting]) this.answer(id, problemAnswer(problem, requestId));
  }

  #sweepLater(): () => void {
    return this.#clock.after(SWEEP_MS, () => {
      this.#cancelSweep = undefined;
      const now = this.#clock.elapsed();
      for (const [id, { requestId, deadline }] of [...this.#waiting]) {
        if (deadline <= now) this.answer(id, problemAnswer(OVERDUE, requestId));
      }
      if (this.#waiting.size > 0) this.#cancelSweep ??= this.#sweepLater();
    });
  }
}

const BUSY = unavailable(
  "webhooks_unavailable",
  "Cannot answer: too many calls wait for the webhook service",
);
const OVERDUE = unavailable(
  "webhooks_unavailable",
  "Cannot answer: the webhook service took too long",
);
