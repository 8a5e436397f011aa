import type { Code, CurrentLimit, Decision } from "../ratelimit/decision.ts";
import { numberOfUnit } from "../ratelimit/units.ts";
import { encodeRateLimitResponse, LimitResponseForm, type WireCurrentLimit } from "../wire/rls.ts";
import type { DirectResponse, PendingResponse } from "./grpc_service.ts";

/** The numbers of `RateLimitResponse.Code`. */
export const CODE_NUMBERS: Readonly<Record<Code, number>> = { OK: 1, OVER_LIMIT: 2 };

/** The forms of the responses with one status, by its limit. */
export class ResponseForms {
  readonly #forms = new WeakMap<CurrentLimit, LimitResponseForm>();

  /** The form for a limit, if there is one. */
  of(limit: CurrentLimit): LimitResponseForm | undefined {
    const form = this.#forms.get(limit) ?? LimitResponseForm.of(wireLimit(limit));
    if (form !== undefined) this.#forms.set(limit, form);
    return form;
  }
}

/** Encodes a decision. */
export function encodeDecision(decision: Decision): Uint8Array {
  const { responseHeadersToAdd, dynamicMetadata } = decision;
  const statuses = decision.statuses.map(({ code, currentLimit, limitRemaining, secondsUntilReset }) => ({
    code: CODE_NUMBERS[code],
    currentLimit: currentLimit === undefined ? undefined : wireLimit(currentLimit),
    limitRemaining,
    secondsUntilReset,
  }));
  const overallCode = CODE_NUMBERS[decision.overallCode];
  return encodeRateLimitResponse({ overallCode, statuses, responseHeadersToAdd, dynamicMetadata });
}

/** The response of a decision that comes later; `refusal` returns the error of the call. */
export function pendingResponse(
  decision: Promise<Decision>,
  refusal: (error: unknown) => unknown,
): PendingResponse {
  return decision.then(encodeDecision).catch((error: unknown) => {
    throw refusal(error);
  });
}

function wireLimit({ name, requestsPerUnit, unit }: CurrentLimit): WireCurrentLimit {
  return { name, requestsPerUnit, unit: numberOfUnit(unit) };
}

/** Responses share a slab, because allocating memory for each costs more than writing it. */
const SLAB_BYTES = 8_192;
let slab = new Uint8Array(SLAB_BYTES);
let slabUsed = 0;

/** The bytes of a response. */
export function responseBytes(response: DirectResponse): Uint8Array {
  if (slabUsed + response.maxBytes > SLAB_BYTES) {
    slab = new Uint8Array(Math.max(SLAB_BYTES, response.maxBytes));
    slabUsed = 0;
  }
  const start = slabUsed;
  slabUsed = response.write(slab, start);
  return slab.subarray(start, slabUsed);
}
