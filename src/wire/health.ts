import { integerField, Message, stringField } from "./message.ts";

/** A `grpc.health.v1.HealthCheckRequest`. */
interface WireHealthCheckRequest {
  /** Empty for the server as a whole. */
  readonly service: string;
}

/** A `grpc.health.v1.HealthCheckResponse`. */
interface WireHealthCheckResponse {
  /** One of `SERVING_STATUS`, or an unknown number. */
  readonly status: number;
}

/** Numbers of service statuses. */
export const SERVING_STATUS = { UNKNOWN: 0, SERVING: 1, NOT_SERVING: 2, SERVICE_UNKNOWN: 3 } as const;

const DOMAIN_PREFIX = "ratelimit/";

/** The name of the service that stands for the rules of a domain. */
export function serviceOfDomain(domain: string): string {
  return DOMAIN_PREFIX + domain;
}

/** The domain that the name of a service stands for; undefined for another name. */
export function domainOfService(service: string): string | undefined {
  return service.startsWith(DOMAIN_PREFIX) ? service.slice(DOMAIN_PREFIX.length) : undefined;
}

/** Reads and writes requests. */
export const HEALTH_CHECK_REQUEST = new Message<WireHealthCheckRequest>("HealthCheckRequest", {
  service: stringField(1),
});

/** Reads and writes responses. */
export const HEALTH_CHECK_RESPONSE = new Message<WireHealthCheckResponse>("HealthCheckResponse", {
  status: integerField(1, "int32"),
});
