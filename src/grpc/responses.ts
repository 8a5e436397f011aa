import type { Code, CurrentLimit, Decision } from "../ratelimit/decision.ts";
import { numberOfUnit } from "../ratelimit/units.ts";
import type { HeaderForm } from "../ratelimit/decision/headers.ts";
import type { RepeatedResponse } from "../ratelimit/decision/plan_repeated.ts";
import { LimitResponseForm, MetadataResponseForm, type ResponseForm } from "../wire/response_form.ts";
import { encodeRateLimitResponse, type WireCurrentLimit } from "../wire/rls.ts";
import type { DirectResponse, PendingResponse } from "./grpc_service.ts";

/** The numbers of `RateLimitResponse.Code`. */
export const CODE_NUMBERS: Readonly<Record<Code, number>> = { OK: 1, OVER_LIMIT: 2 };

/** A form that requests share, and the headers that it has. */
interface SharedForm {
  readonly form: LimitResponseForm;
  readonly headers: readonly HeaderForm[];
}

/** The forms of the responses with one status. */
export class ResponseForms {
  readonly #shared = new WeakMap<CurrentLimit, SharedForm>();

  /** The form for a request, if there is one. */
  of({ limit, headers, metadata }: RepeatedResponse): ResponseForm | undefined {
    const form = this.#sharedForm(limit, headers);
    return form === undefined || metadata === undefined ? form : MetadataResponseForm.of(form, metadata);
  }

  #sharedForm(limit: CurrentLimit, headers: readonly HeaderForm[]): LimitResponseForm | undefined {
    const shared = this.#shared.get(limit);
    if (shared !== undefined && areEqual(shared.headers, headers)) return shared.form;
    const form = LimitResponseForm.of(wireLimit(limit), headers);
    if (form !== undefined) this.#shared.set(limit, { form, headers });
    return form;
  }
}

/** The headers of one limit differ between windows of a calendar, in a text. */
function areEqual(some: readonly HeaderForm[], others: readonly HeaderForm[]): boolean {
  return some.every(({ texts }, index) => texts.every((text, place) => text === others[index]?.texts[place]));
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
