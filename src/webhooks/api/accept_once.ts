import type { Clock } from "../../base/clock.ts";
import { answeredWithin } from "../../base/wait.ts";
import { conflict, WebhookRefusal } from "./problem.ts";
import { type Acceptance, findIdempotency, type NewIdempotency } from "../store/accept.ts";
import type { WebhookStore } from "../store/store.ts";

/** What a key stands for once it was accepted. */
export interface Accepted {
  /** The execution or event. */
  readonly resultId: string;
  /** Of an event: how many endpoints it goes to. */
  readonly deliveries: number;
  readonly bodyHash: string;
  /** Whether it had been accepted before. */
  readonly isReplay: boolean;
}

/** A body and the key under which it is accepted once. */
export interface OnceRequest {
  /** Absent where nothing is to be deduplicated. */
  readonly idempotency: NewIdempotency | undefined;
  /** The identifier of what is created. */
  readonly resultId: string;
  /** Creates it, unless the store knows the key; answers how many deliveries that makes. */
  create(idempotency: NewIdempotency | undefined): Promise<Acceptance<number>>;
}

/** How long a duplicate waits for the first. */
const IN_FLIGHT_MS = 5_000;

/** Accepts what carries a key once: who comes at the same time with the same key waits for the first. */
export class AcceptOnce {
  readonly #store: WebhookStore;
  readonly #clock: Clock;
  readonly #running = new Map<string, Promise<Accepted>>();

  constructor(options: { readonly store: WebhookStore; readonly clock: Clock }) {
    this.#store = options.store;
    this.#clock = options.clock;
  }

  /** Throws a `WebhookRefusal` when the first takes too long; whatever stops the first stops those who wait. */
  async accept(request: OnceRequest): Promise<Accepted> {
    const { idempotency } = request;
    if (idempotency === undefined) return await this.#create(request, "");
    const id = `${idempotency.scope} ${idempotency.key}`;
    const first = this.#running.get(id);
    if (first !== undefined) {
      const accepted = await answeredWithin(first, IN_FLIGHT_MS, this.#clock, inFlight);
      return { ...accepted, isReplay: true };
    }
    const running = this.#findOrCreate(request, idempotency);
    this.#running.set(id, running);
    try {
      return await running;
    } finally {
      this.#running.delete(id);
    }
  }

  async #findOrCreate(request: OnceRequest, { scope, key, bodyHash }: NewIdempotency): Promise<Accepted> {
    const known = await this.#store.read(findIdempotency, scope, key, this.#clock.now());
    if (known !== undefined) return replayOf(known);
    return await this.#create(request, bodyHash);
  }

  async #create(request: OnceRequest, bodyHash: string): Promise<Accepted> {
    const acceptance = await request.create(request.idempotency);
    if (acceptance.kind === "replayed") return replayOf(acceptance.row);
    return { resultId: request.resultId, deliveries: acceptance.value, bodyHash, isReplay: false };
  }
}

function replayOf(row: { resultId: string; deliveries?: number | undefined; bodyHash: string }): Accepted {
  const { resultId, deliveries = 0, bodyHash } = row;
  return { resultId, deliveries, bodyHash, isReplay: true };
}

function inFlight(): WebhookRefusal {
  const { problem } = conflict(
    "in_flight",
    "Cannot answer yet: a request with this Idempotency-Key is being worked on",
  );
  return new WebhookRefusal({ ...problem, headers: { "retry-after": "1" } });
}
