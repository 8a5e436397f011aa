import { errorText } from "../base/error_text.ts";
import type { Caller } from "../ratelimit/counter_cache.ts";
import type { Code, CurrentLimit, Decision } from "../ratelimit/decision.ts";
import { CacheError, InvalidRequestError, NoConfigurationError } from "../ratelimit/errors.ts";
import { numberOfUnit, unitOfNumber } from "../ratelimit/limit.ts";
import type { Descriptor, RateLimitRequest } from "../ratelimit/request.ts";
import type { KnownDecider, KnownReceiver } from "../ratelimit/known_requests.ts";
import type { KnownResponse } from "../ratelimit/known_plans.ts";
import { MAX_DESCRIPTORS, MAX_ENTRIES } from "../ratelimit/validate.ts";
import {
  decodeRateLimitRequest,
  OkResponseForm,
  RateLimitResponseWriter,
  type WireDescriptor,
  type WireRateLimitRequest,
} from "../wire/rls.ts";
import {
  type CallContext,
  type DirectResponse,
  GrpcError,
  type GrpcService,
  type PendingResponse,
} from "./grpc_service.ts";

/** Makes a decision, or throws the errors of the core. */
export type Decide = (request: RateLimitRequest, caller: Caller) => Decision | Promise<Decision>;

/** Reports of the rate limit service. */
export interface RateLimitGrpcOptions {
  /** Called for every refused call with the error that the caller gets. */
  readonly onRefused?: (error: GrpcError, call: CallContext) => void;
  /** Called for every request that is not valid protobuf. */
  readonly onMalformed?: () => void;
  readonly known?: KnownDecider;
}

const BOUNDS = { descriptors: MAX_DESCRIPTORS, entries: MAX_ENTRIES };
const CODE_NUMBERS: Readonly<Record<Code, number>> = { OK: 1, OVER_LIMIT: 2 };

/** The service `envoy.service.ratelimit.v3.RateLimitService`. */
export function createRateLimitGrpcService(decide: Decide, options: RateLimitGrpcOptions = {}): GrpcService {
  const { known } = options;
  const isLocal = known?.countsHere === true;
  const forms = new WeakMap<CurrentLimit, OkResponseForm>();
  const formOf = (limit: CurrentLimit): OkResponseForm | undefined => {
    const { name, requestsPerUnit, unit } = limit;
    const form = forms.get(limit) ?? OkResponseForm.of({ name, requestsPerUnit, unit: numberOfUnit(unit) });
    if (form !== undefined) forms.set(limit, form);
    return form;
  };
  const refuse = (error: unknown, call: CallContext): never => {
    const refusal = grpcErrorOf(error);
    options.onRefused?.(refusal, call);
    throw refusal;
  };
  const handle = (bytes: Uint8Array, call: CallContext): Uint8Array | PendingResponse => {
    try {
      if (isLocal) {
        const response = known.count(bytes, 0, bytes.length);
        if (response !== undefined) return bytesOf(response);
      } else {
        const plan = known?.sharedPlan(bytes);
        if (plan !== undefined) {
          const pending = new PendingDecision(refuse, call);
          known?.decide(plan, call, pending);
          return pending;
        }
      }
      const request = requestOf(decodeRequest(bytes, options));
      const decision = decide(request, call);
      if (decision instanceof Promise || decision.overallCode === "OK") known?.learn(bytes, request, formOf);
      return decision instanceof Promise
        ? decision.then(encodeDecision).catch((error: unknown) => refuse(error, call))
        : encodeDecision(decision);
    } catch (error) {
      return refuse(error, call);
    }
  };
  return {
    name: "envoy.service.ratelimit.v3.RateLimitService",
    methods: [{
      kind: "unary",
      name: "ShouldRateLimit",
      handle,
      direct: isLocal ? (bytes, start, end) => known.count(bytes, start, end) : undefined,
    }],
  };
}

/** The response to a known request, once a shared cache has counted it. */
class PendingDecision implements KnownReceiver, PendingResponse {
  readonly #refuse: (error: unknown, call: CallContext) => never;
  readonly #call: CallContext;
  #message: Uint8Array | undefined;
  #error: unknown;
  #isFailed = false;
  #done: ((message: Uint8Array) => void) | undefined;
  #failed: ((error: unknown) => void) | undefined;

  constructor(refuse: (error: unknown, call: CallContext) => never, call: CallContext) {
    this.#refuse = refuse;
    this.#call = call;
  }

  responded(response: KnownResponse): void {
    this.#resolve(bytesOf(response));
  }

  decided(decision: Decision): void {
    this.#resolve(encodeDecision(decision));
  }

  failed(error: unknown): void {
    try {
      this.#refuse(error, this.#call);
    } catch (refusal) {
      this.#isFailed = true;
      this.#error = refusal;
      this.#failed?.(refusal);
    }
  }

  then(done: (message: Uint8Array) => void, failed: (error: unknown) => void): void {
    if (this.#message !== undefined) done(this.#message);
    else if (this.#isFailed) failed(this.#error);
    this.#done = done;
    this.#failed = failed;
  }

  #resolve(message: Uint8Array): void {
    this.#message = message;
    this.#done?.(message);
  }
}

/** Responses share a slab, because allocating memory for each costs more than writing it. */
const SLAB_BYTES = 8_192;
let slab = new Uint8Array(SLAB_BYTES);
let slabUsed = 0;

function bytesOf(response: DirectResponse): Uint8Array {
  if (slabUsed + response.maxBytes > SLAB_BYTES) {
    slab = new Uint8Array(SLAB_BYTES);
    slabUsed = 0;
  }
  const start = slabUsed;
  slabUsed = response.write(slab, start);
  return slab.subarray(start, slabUsed);
}

function decodeRequest(bytes: Uint8Array, { onMalformed }: RateLimitGrpcOptions): WireRateLimitRequest {
  try {
    return decodeRateLimitRequest(bytes, BOUNDS);
  } catch (error) {
    onMalformed?.();
    throw new GrpcError("INTERNAL", errorText(error), { cause: error });
  }
}

/** The request for the core; one without overrides already has that form. */
function requestOf(request: WireRateLimitRequest): RateLimitRequest {
  if (bringsNoLimit(request)) return request;
  const { domain, descriptors, hitsAddend } = request;
  return { domain, descriptors: descriptors.map(descriptorOf), hitsAddend };
}

type WithoutLimits = WireRateLimitRequest & {
  readonly descriptors: readonly (WireDescriptor & { readonly limit?: undefined })[];
};

function bringsNoLimit(request: WireRateLimitRequest): request is WithoutLimits {
  for (const { limit } of request.descriptors) {
    if (limit !== undefined) return false;
  }
  return true;
}

function descriptorOf({ entries, limit, hitsAddend, isNegativeHits }: WireDescriptor): Descriptor {
  const override = limit === undefined
    ? undefined
    : { requestsPerUnit: limit.requestsPerUnit, unit: unitOfNumber(limit.unit) };
  return { entries, limit: override, hitsAddend, isNegativeHits };
}

function encodeDecision(decision: Decision): Uint8Array {
  const writer = new RateLimitResponseWriter(CODE_NUMBERS[decision.overallCode]);
  for (const { code, currentLimit, limitRemaining, secondsUntilReset } of decision.statuses) {
    writer.beginStatus(CODE_NUMBERS[code]);
    if (currentLimit !== undefined) {
      const { name, requestsPerUnit, unit } = currentLimit;
      writer.currentLimit(name, requestsPerUnit, numberOfUnit(unit));
    }
    writer.endStatus(limitRemaining, secondsUntilReset);
  }
  return writer.finish(decision.responseHeadersToAdd, decision.dynamicMetadata);
}

function grpcErrorOf(error: unknown): GrpcError {
  if (error instanceof GrpcError) return error;
  const message = errorText(error);
  if (error instanceof InvalidRequestError) {
    return new GrpcError("INVALID_ARGUMENT", message, { cause: error });
  }
  if (error instanceof NoConfigurationError || error instanceof CacheError) {
    return new GrpcError("UNAVAILABLE", message, { cause: error });
  }
  return new GrpcError("INTERNAL", "internal error; the log of the service has its cause", { cause: error });
}
