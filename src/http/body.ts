import type { Clock } from "../base/clock.ts";
import type { Refusal } from "./problem.ts";

const MIN_BUFFER_BYTES = 1_024;
const MAX_BUFFER_BYTES = 65_536;

interface BodyReader {
  /** The next part, of at most `size` bytes where the body still comes. */
  read(size: number): Promise<{ readonly value?: Uint8Array | undefined; readonly done: boolean }>;
  cancel(): Promise<void>;
}

/** The bounds of a body. */
export interface ReadBodyOptions {
  readonly maxBytes: number;
  /** The body must be whole by then, counted from the call. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/**
 * Reads the body of a request as UTF-8, or answers why it is refused: too large (by the announced length
 * or by what really comes), not whole in time, broken off, or no UTF-8.
 */
export async function readBody(request: Request, options: ReadBodyOptions): Promise<string | Refusal> {
  const { maxBytes, timeoutMs, clock } = options;
  const length = request.headers.get("content-length");
  if (Number(length) > maxBytes) return tooLarge(maxBytes);
  const late = Promise.withResolvers<Refusal>();
  const cancelTimer = clock.after(timeoutMs, () => late.resolve(timedOut(timeoutMs)));
  // A body of a known length is never longer, and is read faster without a stream.
  const stream = length === null ? request.body : null;
  const reader = stream === null ? undefined : openReader(stream);
  try {
    const read = reader === undefined ? request.bytes() : collect(reader, maxBytes);
    const bytes = await Promise.race([read, late.promise]);
    return bytes instanceof Uint8Array ? decode(bytes) : bytes;
  } catch {
    return malformed("the body ended early");
  } finally {
    cancelTimer();
    // Ends a read that may still wait; there is nothing to do about a peer that has left.
    reader?.cancel().catch(() => {});
  }
}

async function collect(reader: BodyReader, maxBytes: number): Promise<Uint8Array | Refusal> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { value, done } = await reader.read(bufferSize(length));
    if (done || value === undefined) break;
    length += value.length;
    if (length > maxBytes) return tooLarge(maxBytes);
    chunks.push(value);
  }
  const [only] = chunks;
  return chunks.length === 1 && only !== undefined ? only : joined(chunks, length);
}

/**
 * A body that still comes is read into buffers of our size; one that is there already is a stream without
 * that choice, and has nothing to wait for.
 */
function openReader(body: ReadableStream<Uint8Array<ArrayBuffer>>): BodyReader {
  try {
    const reader = body.getReader({ mode: "byob" });
    return { read: (size) => reader.read(new Uint8Array(size)), cancel: () => reader.cancel() };
  } catch {
    const reader = body.getReader();
    return { read: () => reader.read(), cancel: () => reader.cancel() };
  }
}

/**
 * The runtime keeps the buffer of a read that still waits when the answer is sent, for good: a slow peer
 * must not pin much more than it has sent.
 */
function bufferSize(received: number): number {
  return Math.min(Math.max(received, MIN_BUFFER_BYTES), MAX_BUFFER_BYTES);
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const whole = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    whole.set(chunk, offset);
    offset += chunk.length;
  }
  return whole;
}

function decode(bytes: Uint8Array): string | Refusal {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return malformed("not valid UTF-8");
  }
}

function malformed(reason: string): Refusal {
  return { kind: "malformed", field: "body", reason, detail: `Cannot read "body": ${reason}` };
}

// Both of these leave a part of the body unread, so the connection cannot carry another request.
function tooLarge(maxBytes: number): Refusal {
  const reason = `larger than ${maxBytes} bytes`;
  const detail = `Cannot read "body": ${reason}`;
  return { kind: "too_large", field: "body", reason, detail, headers: { connection: "close" } };
}

function timedOut(timeoutMs: number): Refusal {
  const reason = `not whole after ${timeoutMs / 1000} s`;
  const detail = `Cannot read "body": ${reason}`;
  return { kind: "timeout", field: "body", reason, detail, headers: { connection: "close" } };
}
