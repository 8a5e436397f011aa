import type { Clock } from "../base/clock.ts";

/** A request that was written. */
export interface TimedRequest {
  /** When its first hit was asked for, by `clock.elapsed()`. */
  readonly startedAt: number;
  readonly connection: unknown;
}

/** Timeouts of requests. */
interface RequestTimeoutsOptions<Request> {
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Called with the requests that timed out, which are no longer held. */
  readonly onTimeout: (requests: readonly Request[]) => void;
}

/**
 * The requests in flight to one node, in the order in which they began, with one timer for all. It outlasts an answered
 * request, so that most of the next ones need not arm one.
 */
export class RequestTimeouts<Request extends TimedRequest> {
  readonly #options: RequestTimeoutsOptions<Request>;
  readonly #requests = new Set<Request>();
  #cancelTimer: (() => void) | undefined;

  constructor(options: RequestTimeoutsOptions<Request>) {
    this.#options = options;
  }

  get size(): number {
    return this.#requests.size;
  }

  /** Whole milliseconds until something that began then times out. */
  leftMs(startedAt: number): number {
    const { clock, timeoutMs } = this.#options;
    // A timer ignores fractions and would fire too early.
    return Math.max(0, Math.ceil(startedAt + timeoutMs - clock.elapsed()));
  }

  add(request: Request): void {
    this.#requests.add(request);
    this.#arm();
  }

  /** Lets go of a request; returns false when it was not held any more. */
  delete(request: Request): boolean {
    return this.#requests.delete(request);
  }

  /** Lets go of the requests on a connection, or of all, and returns them. */
  takeAll(connection?: unknown): Request[] {
    const taken = [...this.#requests].filter((one) =>
      connection === undefined || one.connection === connection
    );
    for (const one of taken) this.delete(one);
    if (this.#requests.size > 0) return taken;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    return taken;
  }

  #arm(): void {
    const [oldest] = this.#requests;
    if (this.#cancelTimer !== undefined || oldest === undefined) return;
    this.#cancelTimer = this.#options.clock.after(this.leftMs(oldest.startedAt), () => {
      this.#cancelTimer = undefined;
      const requests: Request[] = [];
      for (const request of this.#requests) {
        if (this.leftMs(request.startedAt) > 0) break;
        requests.push(request);
      }
      for (const request of requests) this.#requests.delete(request);
      if (requests.length > 0) this.#options.onTimeout(requests);
      this.#arm();
    });
  }
}
