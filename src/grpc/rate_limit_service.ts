import { errorText } from "../base/error_text.ts";
import type { Caller } from "../ratelimit/decision/counter_cache.ts";
import type { Decision } from "../ratelimit/decision.ts";
import { CacheError, InvalidRequestError, NoConfigurationError } from "../ratelimit/errors.ts";
import { unitOfNumber } from "../ratelimit/units.ts";
import type { Descriptor, RateLimitRequest } from "../ratelimit/request.ts";
import { MAX_DESCRIPTORS, MAX_ENTRIES } from "../ratelimit/decision/validate.ts";
import { decodeRateLimitRequest, type WireDescriptor, type WireRateLimitRequest } from "../wire/rls.ts";
import { type CallContext, GrpcError, type GrpcService, type PendingResponse } from "./grpc_service.ts";
import type { KnownRequests } from "./known/known_requests.ts";
import { encodeDecision, pendingResponse, responseBytes } from "./responses.ts";

/** Makes a decision, or throws the errors of the core. */
export type Decide = (request: RateLimitRequest, caller: Caller) => Decision | Promise<Decision>;

/** Reports of the rate limit service. */
interface RateLimitGrpcOptions {
  /** Called for every refused call with the error that the caller gets. */
  readonly onRefused?: (error: GrpcError, call: CallContext) => void;
  /** Called for every request that is not valid protobuf. */
  readonly onMalformed?: () => void;
  /** Called with the number of a field that is unknown and ignored, for each limit of a request that has one. */
  readonly onUnknownLimitField?: (field: number) => void;
  /** Decides requests that it knows; absent to read each of them. */
  readonly known?: KnownRequests;
}

const BOUNDS = { descriptors: MAX_DESCRIPTORS, entries: MAX_ENTRIES };

/** The service `envoy.service.ratelimit.v3.RateLimitService`. */
export function createRateLimitGrpcService(decide: Decide, options: RateLimitGrpcOptions = {}): GrpcService {
  const { known } = options;
  const isImmediate = known?.isImmediate === true;
  const refusal = (error: unknown, call: CallContext): GrpcError => {
    const refused = grpcErrorOf(error);
    options.onRefused?.(refused, call);
    return refused;
  };
  const handle = (bytes: Uint8Array, call: CallContext): Uint8Array | PendingResponse => {
    try {
      if (isImmediate) {
        const response = known.respond(bytes);
        if (response !== undefined) return responseBytes(response);
      } else {
        const pending = known?.handle(bytes, call, (error) => refusal(error, call));
        if (pending !== undefined) return pending;
      }
      const request = requestOf(decodeRequest(bytes, options), options);
      const decision = decide(request, call);
      known?.learn(bytes, request);
      if (!(decision instanceof Promise)) return encodeDecision(decision);
      return pendingResponse(decision, (error) => refusal(error, call));
    } catch (error) {
      throw refusal(error, call);
    }
  };
  return {
    name: "envoy.service.ratelimit.v3.RateLimitService",
    methods: [{
      kind: "unary",
      name: "ShouldRateLimit",
      handle,
      direct: isImmediate ? (bytes, start, end) => known.direct(bytes, start, end) : undefined,
    }],
  };
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
function requestOf(
  request: WireRateLimitRequest,
  { onUnknownLimitField }: RateLimitGrpcOptions,
): RateLimitRequest {
  if (bringsNoLimit(request)) return request;
  const { domain, descriptors, hitsAddend } = request;
  for (const { limit } of descriptors) {
    if (limit?.unknownField !== undefined) onUnknownLimitField?.(limit.unknownField);
  }
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
