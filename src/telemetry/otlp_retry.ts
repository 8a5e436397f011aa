import type { GrpcCode, GrpcError } from "../grpc/grpc_service.ts";
import { WireReader } from "../wire/reader.ts";
import { LENGTH, VARINT } from "../wire/wire_format.ts";

/** Codes after which OTLP repeats an export; RESOURCE_EXHAUSTED only where the collector says when. */
const REPEATED: readonly GrpcCode[] = [
  "CANCELLED",
  "DEADLINE_EXCEEDED",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNAVAILABLE",
  "DATA_LOSS",
];
const DETAILS = "grpc-status-details-bin";
const RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo";

/** The repetition of a failed export. */
export interface OtlpRetry {
  readonly isRepeated: boolean;
  /** The delay that the collector asks for, in milliseconds; absent when it leaves it to the exporter. */
  readonly delayMs?: number;
}

/** Reads the failure of an export over gRPC by the rules of OTLP. */
export function otlpRetry({ code, metadata }: GrpcError): OtlpRetry {
  const delayMs = retryDelayMs(metadata.get(DETAILS) ?? "");
  if (delayMs !== undefined && (code === "RESOURCE_EXHAUSTED" || REPEATED.includes(code))) {
    // A delay of 0 leaves it to the exporter.
    return delayMs > 0 ? { isRepeated: true, delayMs } : { isRepeated: true };
  }
  return { isRepeated: REPEATED.includes(code) };
}

/** The delay of a `google.rpc.RetryInfo` in a `google.rpc.Status`, in base64; nothing where there is none. */
function retryDelayMs(status: string): number | undefined {
  try {
    const reader = new WireReader(Uint8Array.fromBase64(status), "google.rpc.Status");
    for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
      if (tag !== field(3, LENGTH)) {
        reader.skip();
        continue;
      }
      const delayMs = delayOfAny(reader);
      if (delayMs !== undefined) return delayMs;
    }
  } catch {
    // A collector that sends details of another form is treated as one that sends none.
  }
  return undefined;
}

function delayOfAny(reader: WireReader): number | undefined {
  let [type, value]: [string, Uint8Array | undefined] = ["", undefined];
  for (const tag of reader.message("google.protobuf.Any")) {
    if (tag === field(1, LENGTH)) type = reader.string();
    else if (tag === field(2, LENGTH)) value = reader.bytes();
    else reader.skip();
  }
  return type === RETRY_INFO && value !== undefined ? delayOf(new WireReader(value, RETRY_INFO)) : undefined;
}

function delayOf(reader: WireReader): number {
  let delayMs = 0;
  for (let tag = reader.next(); tag !== 0; tag = reader.next()) {
    if (tag !== field(1, LENGTH)) reader.skip();
    else {
      for (const part of reader.message("google.protobuf.Duration")) {
        if (part === field(1, VARINT)) delayMs += reader.int32() * 1_000;
        else if (part === field(2, VARINT)) delayMs += reader.int32() / 1e6;
        else reader.skip();
      }
    }
  }
  return delayMs;
}

function field(number: number, wireType: number): number {
  return number << 3 | wireType;
}
