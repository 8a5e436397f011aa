import type { Clock } from "../../base/clock.ts";
import { withTimeout } from "../../base/wait.ts";
import type { AcceptanceBounds } from "./bounds.ts";
import type { WebhookAnswer } from "./calls.ts";
import { refusal, type WebhookRefusal } from "./problem.ts";
import type { AuditAction } from "../resources/audit_entry.ts";
import type { AuditEntry } from "../model/records.ts";
import { type Acceptance, findIdempotency } from "../store/operations/accept.ts";
import type { NewIdempotency } from "../store/operations/accept_keys.ts";
import { addAudit } from "../store/operations/audit_log.ts";
import type { WebhookStore } from "../store/store.ts";

/** The result of a request that was accepted. */
interface Accepted {
  /** The execution or event. */
  readonly resultId: string;
  /** Of an event: how many endpoints it goes to. */
  readonly deliveries: number;
  readonly bodyHash: string;
  /** True if it had been accepted before. */
  readonly isReplay: boolean;
}

/** A body and the key under which it is accepted once. */
interface OnceRequest {
  /** Absent where nothing is deduplicated. */
  readonly idempotency: NewIdempotency | undefined;
  /** The identifier of what is created. */
  readonly resultId: string;
  /** True if creating counts against a limit, so that a repeated call has to be found before. */
  readonly isCounted: boolean;
  /** Creates it, unless the store knows the key; the value is the number of deliveries. */
  create(idempotency: NewIdempotency | undefined): Promise<Acceptance<number>>;
  /** The entry for the audit log where the key was accepted with another body; absent where it has no body. */
  mismatch?(resultId: string): Omit<AuditEntry, "id" | "at"> & { readonly action: AuditAction };
}

/** Options of `AcceptOnce`. */
export interface AcceptOnceOptions {
  readonly store: WebhookStore;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly bounds: AcceptanceBounds;
}

/** Time that a duplicate waits for the first. */
const IN_FLIGHT_MS = 5_000;

/** Accepts bodies once per key: of concurrent calls with the same key all but the first wait for its result. */
export class AcceptOnce {
  readonly #options: AcceptOnceOptions;
  readonly #running = new Map<string, Promise<Accepted>>();

  constructor(options: AcceptOnceOptions) {
    this.#options = options;
  }

  /** Throws a `WebhookRefusal` when the first takes too long; an error of the first is thrown to all. */
  async accept(request: OnceRequest): Promise<Accepted & { readonly isMismatch: boolean }> {
    const accepted = await this.#coalesce(request);
    const isMismatch = accepted.isReplay && accepted.bodyHash !== request.idempotency?.bodyHash;
    if (isMismatch && request.mismatch !== undefined) {
      const { store, clock, newId } = this.#options;
      const entry = request.mismatch(accepted.resultId);
      await store.write(addAudit, { id: newId(), at: clock.now(), ...entry });
    }
    return { ...accepted, isMismatch };
  }

  async #coalesce(request: OnceRequest): Promise<Accepted> {
    const { idempotency } = request;
    if (idempotency === undefined) return await this.#create(request, "");
    const id = `${idempotency.scope} ${idempotency.key}`;
    const first = this.#running.get(id);
    if (first !== undefined) {
      const accepted = await withTimeout(first, IN_FLIGHT_MS, this.#options.clock, inFlight);
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
    const { store, clock, bounds } = this.#options;
    const find = async () => {
      const known = await store.read(findIdempotency, scope, key, clock.now());
      return known && replayOf(known);
    };
    if (request.isCounted || bounds.mayRefuse) return await find() ?? await this.#create(request, bodyHash);
    try {
      return await this.#create(request, bodyHash);
    } catch (error) {
      // What prevents a new call does not prevent the answer to a repeated one.
      const known = await find().catch(() => undefined);
      if (known === undefined) throw error;
      return known;
    }
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
  const detail = "Cannot answer yet: a request with this Idempotency-Key is in flight";
  return refusal("in_flight", detail, { headers: { "retry-after": "1" } });
}

/** The answer for what was accepted, now or before. */
export function acceptedAnswer(
  body: Readonly<Record<string, unknown>>,
  { isReplay, isMismatch }: { readonly isReplay: boolean; readonly isMismatch: boolean },
  status = 202,
): WebhookAnswer {
  const headers = {
    "content-type": "application/json",
    ...(isReplay ? { "idempotency-replayed": "true" } : {}),
    ...(isMismatch ? { "idempotency-body-mismatch": "true" } : {}),
  };
  return { status, headers, body: JSON.stringify(body), isAccepted: true };
}
