import type { Health } from "../base/health.ts";
import {
  domainOfService,
  HEALTH_CHECK_REQUEST,
  HEALTH_CHECK_RESPONSE,
  SERVING_STATUS,
} from "../wire/health.ts";
import { decodeRequest, GrpcError, type GrpcService } from "./grpc_service.ts";

/** Names of the server as a whole. */
const KNOWN_NAMES: readonly string[] = ["", "ratelimit"];

/** The service `grpc.health.v1.Health`. `Check` also tells whether a domain has rules, by `hasDomain`. */
export function createHealthService(health: Health, hasDomain = (_: string) => false): GrpcService {
  return {
    name: "grpc.health.v1.Health",
    methods: [
      { kind: "unary", name: "Check", handle: (request) => check(health, hasDomain, request) },
      { kind: "server_streaming", name: "Watch", open: (request, send) => watch(health, request, send) },
    ],
  };
}

function check(health: Health, hasDomain: (domain: string) => boolean, request: Uint8Array): Uint8Array {
  const { service } = decodeRequest((bytes) => HEALTH_CHECK_REQUEST.decode(bytes), request);
  const domain = domainOfService(service);
  if (domain !== undefined && !hasDomain(domain)) {
    return HEALTH_CHECK_RESPONSE.encode({ status: SERVING_STATUS.SERVICE_UNKNOWN });
  }
  if (domain === undefined && !KNOWN_NAMES.includes(service)) {
    throw new GrpcError(
      "NOT_FOUND",
      `Cannot check health of "${
        service.slice(0, 100)
      }": there is no such service, ask for "ratelimit" or the empty name`,
    );
  }
  return statusMessage(health.healthy);
}

/** Unlike Check, Watch keeps the call open for an unknown name, as the protocol requires. */
function watch(health: Health, request: Uint8Array, send: (message: Uint8Array) => void): () => void {
  const { service } = decodeRequest((bytes) => HEALTH_CHECK_REQUEST.decode(bytes), request);
  if (!KNOWN_NAMES.includes(service)) {
    send(HEALTH_CHECK_RESPONSE.encode({ status: SERVING_STATUS.SERVICE_UNKNOWN }));
    return () => {};
  }
  send(statusMessage(health.healthy));
  return health.onChange((healthy) => send(statusMessage(healthy)));
}

function statusMessage(healthy: boolean): Uint8Array {
  return HEALTH_CHECK_RESPONSE.encode({
    status: healthy ? SERVING_STATUS.SERVING : SERVING_STATUS.NOT_SERVING,
  });
}
