import { errorText } from "../base/error_text.ts";
import type { Caller } from "../ratelimit/counter_cache.ts";
import type { Code, Decision } from "../ratelimit/decision.ts";
import { CacheError, InvalidRequestError, NoConfigurationError } from "../ratelimit/errors.ts";
import { unitOfNumber, UNITS } from "../ratelimit/limit.ts";
import type { Descriptor, RateLimitRequest } from "../ratelimit/request.ts";
import { MAX_DESCRIPTORS, MAX_ENTRIES } from "../ratelimit/validate.ts";
import {
  decodeRateLimitRequest,
  RateLimitResponseWriter,
  type WireDescriptor,
  type WireRateLimitRequest,
} from "../wire/rls.ts";
import { type CallContext, GrpcError, type GrpcService } from "./grpc_service.ts";

/** Makes a decision, or throws the errors of the core. */
export type Decide = (request: RateLimitRequest, caller: Caller) => Decision | Promise<Decision>;

/** Reports of the rate limit service. */
export interface RateLimitGrpcOptions {
  /** Called for every refused call with the error that the caller gets. */
  readonly onRefused?: (error: GrpcError) => void;
  /** Called for every request that is not valid protobuf. */
  readonly onMalformed?: () => void;
}

const BOUNDS = { descriptors: MAX_DESCRIPTORS, entries: MAX_ENTRIES };
const CODE_NUMBERS: Readonly<Record<Code, number>> = { OK: 1, OVER_LIMIT: 2 };

/** The service `envoy.service.ratelimit.v3.RateLimitService`. */
export function createRateLimitGrpcService(decide: Decide, options: RateLimitGrpcOptions = {}): GrpcService {
  const refuse = (error: unknown): never => {
    const refusal = grpcErrorOf(error);
    options.onRefused?.(refusal);
    throw refusal;
  };
  const handle = (bytes: Uint8Array, call: CallContext): Uint8Array | Promise<Uint8Array> => {
    try {
      const decision = decide(requestOf(decodeRequest(bytes, options)), call);
      return decision instanceof Promise
        ? decision.then(encodeDecision).catch(refuse)
        : encodeDecision(decision);
    } catch (error) {
      return refuse(error);
    }
  };
  return {
    name: "envoy.service.ratelimit.v3.RateLimitService",
    methods: [{ kind: "unary", name: "ShouldRateLimit", handle }],
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
      writer.currentLimit(name, requestsPerUnit, UNITS[unit].number);
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
