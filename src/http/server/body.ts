import { bodyText, type BodyTextProblem } from "../../base/body_text.ts";
import { joinBytes } from "../../base/bytes.ts";
import type { Clock } from "../../base/clock.ts";
import { arrivedBody, singleHeader } from "./client_request.ts";
import { invalidParameter, type Refusal } from "./problem.ts";

/** The bounds of a body. */
export interface ReadBodyOptions {
  readonly maxBytes: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Asked before each part is kept; the body is refused as busy where it returns false. */
  readonly hold?: ((bytes: number) => boolean) | undefined;
  /** Decodes UTF-8; when absent, a body that is not UTF-8 is refused. */
  readonly decode?: ((bytes: Uint8Array) => string) | undefined;
}

/** Reads the body of a request as text; a refusal when it is too large, late, incomplete or cannot be decoded. */
export async function readBody(request: Request, options: ReadBodyOptions): Promise<string | Refusal> {
  const bytes = await readBodyBytes(request, options);
  if (!(bytes instanceof Uint8Array)) return bytes;
  const text = bodyText(bytes, {
    contentEncoding: request.headers.get("content-encoding"),
    contentType: singleHeader(request, "content-type").value,
    maxBytes: options.maxBytes,
    decode: options.decode,
  });
  return typeof text === "string" ? text : undecoded(text);
}

/** Reads the bytes of a body; a refusal when it is too large, late, incomplete or cannot be held. */
export async function readBodyBytes(
  request: Request,
  options: ReadBodyOptions,
): Promise<Uint8Array | Refusal> {
  const { maxBytes, timeoutMs, clock, hold } = options;
  const length = request.headers.get("content-length");
  if (Number(length) > maxBytes) return tooLarge(maxBytes);
  const arrived = arrivedBody(request);
  if (arrived !== undefined) {
    if (arrived.length > maxBytes) return tooLarge(maxBytes);
    return hold?.(arrived.length) === false ? TOO_MANY : arrived;
  }
  const late = Promise.withResolvers<Refusal>();
  const cancelTimer = clock.after(timeoutMs, () => late.resolve(timedOut(timeoutMs)));
  // A body of a known length is read faster without a stream, but its parts cannot be counted.
  const stream = length === null || hold !== undefined ? request.body : null;
  const reader = stream?.getReader();
  try {
    const read = reader === undefined ? request.bytes() : collect(reader, options);
    return await Promise.race([read, late.promise]);
  } catch {
    return malformed("the body ended early");
  } finally {
    cancelTimer();
    // Ends a pending read.
    reader?.cancel().catch(() => {});
  }
}

async function collect(
  reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>,
  { maxBytes, hold = () => true }: ReadBodyOptions,
): Promise<Uint8Array | Refusal> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done || value === undefined) break;
    length += value.length;
    if (length > maxBytes) return tooLarge(maxBytes);
    if (!hold(value.length)) return TOO_MANY;
    // A view keeps all of its buffer, however small it is.
    chunks.push(value.byteLength === value.buffer.byteLength ? value : new Uint8Array(value));
  }
  return joinBytes(chunks);
}

function undecoded({ kind, field, reason, headers = {} }: BodyTextProblem): Refusal {
  return { ...invalidParameter(field, reason), kind, headers };
}

function malformed(reason: string): Refusal {
  return { ...invalidParameter("body", reason), kind: "malformed" };
}

// These leave a part of the body unread, so the connection cannot carry another request.
const CLOSE = { connection: "close" };

const TOO_MANY: Refusal = {
  ...invalidParameter("body", "too many bodies are being received"),
  kind: "busy",
  headers: { ...CLOSE, "retry-after": "1" },
};

function tooLarge(maxBytes: number): Refusal {
  return { ...invalidParameter("body", `larger than ${maxBytes} bytes`), kind: "too_large", headers: CLOSE };
}

function timedOut(timeoutMs: number): Refusal {
  return {
    ...invalidParameter("body", `not whole after ${timeoutMs / 1000} s`),
    kind: "timeout",
    headers: CLOSE,
  };
}
