import { GRPC_CODES, type GrpcCode, GrpcError } from "../grpc_service.ts";
import { ERROR_CODES } from "../native/frames.ts";

/** End of a call. */
export interface CallStatus {
  readonly code: GrpcCode;
  /** Why; empty for a success. */
  readonly message: string;
  /** Metadata that the server sent with it, by name; binary values are in base64, as they were sent. */
  readonly metadata: ReadonlyMap<string, string>;
}

const NO_METADATA: ReadonlyMap<string, string> = new Map();
const NAMES = new Map<number, GrpcCode>();
for (const [name, code] of Object.entries(GRPC_CODES)) NAMES.set(code, name as GrpcCode);

/** A status that the client gives a call itself. */
export function localStatus(code: GrpcCode, message: string): CallStatus {
  return { code, message, metadata: NO_METADATA };
}

/** True if the server sent this status with an answer, instead of the client giving it to the call. */
export function isSent({ metadata }: CallStatus): boolean {
  return metadata !== NO_METADATA;
}

/** The error of a call that ended with this status. */
export function errorOf({ code, message, metadata }: CallStatus): GrpcError {
  return new GrpcError(code, message, { metadata });
}

/** The status that a server sent as `grpc-status` and `grpc-message`; an unknown number becomes UNKNOWN. */
export function sentStatus(number: string, message: string, metadata: CallStatus["metadata"]): CallStatus {
  const code = /^\d{1,3}$/.test(number) ? NAMES.get(Number(number)) : undefined;
  const text = percentDecode(message);
  if (code !== undefined) return { code, message: text, metadata };
  const known = `the server sent the unknown grpc-status ${JSON.stringify(number.slice(0, 20))}`;
  return { code: "UNKNOWN", message: text === "" ? known : `${known}: ${text}`, metadata };
}

/** Codes for an HTTP status without a `grpc-status`, as gRPC maps them; UNKNOWN for all others. */
const OF_HTTP: ReadonlyMap<number, GrpcCode> = new Map([
  [400, "INTERNAL"],
  [401, "UNAUTHENTICATED"],
  [403, "PERMISSION_DENIED"],
  [404, "UNIMPLEMENTED"],
  [429, "UNAVAILABLE"],
  [502, "UNAVAILABLE"],
  [503, "UNAVAILABLE"],
  [504, "UNAVAILABLE"],
]);

/** The status of an answer that is not gRPC. */
export function httpStatus(status: number, contentType: string): CallStatus {
  const answer = status === 200
    ? `content-type ${JSON.stringify(contentType.slice(0, 100))}`
    : `HTTP status ${status}`;
  return localStatus(OF_HTTP.get(status) ?? "UNKNOWN", `the server answered with ${answer} instead of gRPC`);
}

/** Codes for the reset of a stream, by the error code of HTTP/2; INTERNAL for all others. */
const OF_RESET: ReadonlyMap<number, GrpcCode> = new Map<number, GrpcCode>([
  [ERROR_CODES.REFUSED_STREAM, "UNAVAILABLE"],
  [ERROR_CODES.CANCEL, "CANCELLED"],
  [ERROR_CODES.ENHANCE_YOUR_CALM, "RESOURCE_EXHAUSTED"],
  [ERROR_CODES.INADEQUATE_SECURITY, "PERMISSION_DENIED"],
]);

/** The status of a call whose stream the server reset. */
export function resetStatus(code: number): CallStatus {
  return localStatus(OF_RESET.get(code) ?? "INTERNAL", `the server reset the call with ${errorName(code)}`);
}

/** The name of an error code of HTTP/2. */
export function errorName(code: number): string {
  return Object.entries(ERROR_CODES).find(([, known]) => known === code)?.[0] ?? `code ${code}`;
}

/** Decodes a `grpc-message`, whose characters are bytes. What is not encoded well stays as it is. */
function percentDecode(text: string): string {
  const bytes: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const hex = text[at] === "%" ? text.slice(at + 1, at + 3) : "";
    if (/^[0-9a-f]{2}$/i.test(hex)) {
      bytes.push(Number.parseInt(hex, 16));
      at += 2;
    } else bytes.push(text.charCodeAt(at));
  }
  return new TextDecoder().decode(Uint8Array.from(bytes));
}
