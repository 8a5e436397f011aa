import { assertEquals } from "#assert";
import { type GrpcCode, GrpcError } from "../../../src/grpc/grpc_service.ts";
import { type OtlpRetry, otlpRetry } from "../../../src/telemetry/otlp_retry.ts";

const TYPE = "type.googleapis.com/google.rpc.RetryInfo";

function field(number: number, bytes: readonly number[]): number[] {
  return [number << 3 | 2, bytes.length, ...bytes];
}

/** A `google.rpc.Status` in base64 with one detail. */
function details(duration: readonly number[], type = TYPE): string {
  const any = [...field(1, [...new TextEncoder().encode(type)]), ...field(2, field(1, duration))];
  return Uint8Array.from([0x08, 8, ...field(2, [0x61]), ...field(3, any)]).toBase64();
}

const TWO_SECONDS = details([0x08, 2]);
const NO = { isRepeated: false };
const YES = { isRepeated: true };

const CASES: readonly [title: string, code: GrpcCode, details: string, retry: OtlpRetry][] = [
  ...(["CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"] as const)
    .map((code): (typeof CASES)[number] => ["alone", code, "", YES]),
  ...([
    ...["UNKNOWN", "INVALID_ARGUMENT", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED"],
    ...["RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "UNIMPLEMENTED", "INTERNAL", "UNAUTHENTICATED"],
  ] as GrpcCode[]).map((code): (typeof CASES)[number] => ["alone", code, "", NO]),
  ["with a delay", "UNAVAILABLE", TWO_SECONDS, { isRepeated: true, delayMs: 2_000 }],
  ["with a delay", "RESOURCE_EXHAUSTED", TWO_SECONDS, { isRepeated: true, delayMs: 2_000 }],
  ["with a delay", "INVALID_ARGUMENT", TWO_SECONDS, NO],
  [
    "with nanoseconds",
    "RESOURCE_EXHAUSTED",
    details([0x08, 1, 0x10, 0x80, 0xca, 0xb5, 0xee, 0x01]),
    { isRepeated: true, delayMs: 1_500 },
  ],
  ["with a delay of 0", "RESOURCE_EXHAUSTED", details([]), YES],
  ["with a delay below 0", "UNAVAILABLE", details([0x08, ...Array(9).fill(0xff), 1]), YES],
  ["with another detail", "RESOURCE_EXHAUSTED", details([0x08, 2], TYPE.replace("Retry", "Help")), NO],
  ["with bytes of no message", "RESOURCE_EXHAUSTED", "////", NO],
  ["with a cut message", "RESOURCE_EXHAUSTED", Uint8Array.from([0x1a, 20, 1]).toBase64(), NO],
  ["with text instead of base64", "UNAVAILABLE", "%%%", YES],
];

for (const [title, code, text, retry] of CASES) {
  Deno.test(`OTLP over gRPC: ${code} ${title} is ${retry.isRepeated ? "repeated" : "final"}`, () => {
    const metadata = new Map(text === "" ? [] : [["grpc-status-details-bin", text]]);
    assertEquals(otlpRetry(new GrpcError(code, "no", { metadata })), retry);
  });
}
