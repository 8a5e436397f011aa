import { WireReader } from "./reader.ts";
import { LENGTH, VARINT } from "./wire_format.ts";
import { WireWriter } from "./writer.ts";

/** A `grpc.health.v1.HealthCheckRequest`. */
export interface WireHealthCheckRequest {
  /** Empty for the server as a whole. */
  readonly service: string;
}

/** A `grpc.health.v1.HealthCheckResponse`. */
export interface WireHealthCheckResponse {
  /** One of `SERVING_STATUS`, or an unknown number. */
  readonly status: number;
}

/** Numbers of service statuses. */
export const SERVING_STATUS = { UNKNOWN: 0, SERVING: 1, NOT_SERVING: 2, SERVICE_UNKNOWN: 3 } as const;

/** Reads a request. */
export function decodeHealthCheckRequest(bytes: Uint8Array): WireHealthCheckRequest {
  const reader = new WireReader(bytes, "HealthCheckRequest");
  let service = "";
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | LENGTH)) service = reader.string();
    else reader.skip();
  }
  return { service };
}

/** Writes a request. */
export function encodeHealthCheckRequest(request: WireHealthCheckRequest): Uint8Array<ArrayBuffer> {
  const writer = new WireWriter();
  writer.string(1, request.service);
  return writer.finish();
}

/** Reads a response. */
export function decodeHealthCheckResponse(bytes: Uint8Array): WireHealthCheckResponse {
  const reader = new WireReader(bytes, "HealthCheckResponse");
  let status = 0;
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag === (1 << 3 | VARINT)) status = reader.int32();
    else reader.skip();
  }
  return { status };
}

/** Writes a response. */
export function encodeHealthCheckResponse(response: WireHealthCheckResponse): Uint8Array<ArrayBuffer> {
  const writer = new WireWriter();
  writer.int32(1, response.status);
  return writer.finish();
}
