import type { Code, Decision } from "../ratelimit/decision.ts";
import { CacheError, InvalidRequestError, NoConfigurationError } from "../ratelimit/errors.ts";
import { unitOfNumber, UNITS } from "../ratelimit/limit.ts";
import type { RateLimitRequest } from "../ratelimit/request.ts";
import {
  decodeRateLimitRequest,
  encodeRateLimitResponse,
  type WireRateLimitRequest,
  type WireRateLimitResponse,
} from "../wire/rls.ts";
import { GrpcError, type GrpcService } from "./grpc_service.ts";

/** Answers a request, or throws the errors of the core. */
export type Decide = (request: RateLimitRequest) => Decision | Promise<Decision>;

/** How the rate limit service answers. */
export interface RateLimitGrpcOptions {
  /** Told of every call that was refused, with the error that the caller got. */
  readonly onRefused?: (error: GrpcError) => void;
}

const CODE_NUMBERS: Readonly<Record<Code, number>> = { OK: 1, OVER_LIMIT: 2 };

/** `envoy.service.ratelimit.v3.RateLimitService` on plain bytes. */
export function createRateLimitGrpcService(decide: Decide, options: RateLimitGrpcOptions = {}): GrpcService {
  const refuse = (error: unknown): never => {
    const refusal = grpcErrorOf(error);
    options.onRefused?.(refusal);
    throw refusal;
  };
  const handle = (bytes: Uint8Array): Uint8Array | Promise<Uint8Array> => {
    try {
      const decision = decide(requestOf(decodeRequest(bytes)));
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

function decodeRequest(bytes: Uint8Array): WireRateLimitRequest {
  try {
    return decodeRateLimitRequest(bytes);
  } catch (error) {
    throw new GrpcError("INTERNAL", error instanceof Error ? error.message : String(error), { cause: error });
  }
}

function requestOf(wire: WireRateLimitRequest): RateLimitRequest {
  const descriptors = wire.descriptors.map((descriptor) => {
    const { limit } = descriptor;
    if (limit === undefined) return { ...descriptor, limit: undefined };
    return {
      ...descriptor,
      limit: { requestsPerUnit: limit.requestsPerUnit, unit: unitOfNumber(limit.unit) },
    };
  });
  return { domain: wire.domain, descriptors, hitsAddend: wire.hitsAddend };
}

function encodeDecision(decision: Decision): Uint8Array {
  return encodeRateLimitResponse(wireResponseOf(decision));
}

function wireResponseOf(decision: Decision): WireRateLimitResponse {
  return {
    overallCode: CODE_NUMBERS[decision.overallCode],
    statuses: decision.statuses.map(({ code, currentLimit, limitRemaining, secondsUntilReset }) => ({
      code: CODE_NUMBERS[code],
      currentLimit: currentLimit === undefined
        ? undefined
        : { ...currentLimit, unit: UNITS[currentLimit.unit].number },
      limitRemaining,
      secondsUntilReset,
    })),
    responseHeadersToAdd: [...decision.responseHeadersToAdd],
    dynamicMetadata: decision.dynamicMetadata,
  };
}

function grpcErrorOf(error: unknown): GrpcError {
  if (error instanceof GrpcError) return error;
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof InvalidRequestError) {
    return new GrpcError("INVALID_ARGUMENT", message, { cause: error });
  }
  if (error instanceof NoConfigurationError || error instanceof CacheError) {
    return new GrpcError("UNAVAILABLE", message, { cause: error });
  }
  return new GrpcError("INTERNAL", "internal error; the log of the service has its cause", { cause: error });
}
