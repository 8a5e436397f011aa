import { decodedBody, isDecoded, isDecodingFailure } from "./content_coding.ts";
import { RestError, type RestErrorSubject } from "./rest_error.ts";

/** Options of reading a body. */
export interface ReadBodyOptions {
  /** Maximum size after decoding. */
  readonly maxBytes?: number | undefined;
  /** Aborts reading with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** For errors. */
  readonly subject: RestErrorSubject;
}

/** Reads the whole body. */
export async function readBody(
  response: Response,
  options: ReadBodyOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  const { maxBytes, signal, subject } = options;
  if (maxBytes === undefined && signal === undefined && isDecoded(response)) {
    try {
      return new Uint8Array(await response.arrayBuffer());
    } catch (cause) {
      throw interrupted(subject, cause);
    }
  }
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = boundedBody(response, options).getReader();
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    if (value === undefined) continue;
    chunks.push(value);
    length += value.byteLength;
  }
  return concatenate(chunks, length);
}

/**
 * The body as a stream that fails with a `RestError` when it is interrupted, too large or aborted, and releases the
 * connection then. `onEnd` is called once, in any case.
 */
export function boundedBody(
  response: Response,
  { maxBytes, signal, subject }: ReadBodyOptions,
  onEnd: () => void = () => {},
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const body = decodedBody(response);
  if (body === null) {
    onEnd();
    return new ReadableStream({ start: (controller) => controller.close() });
  }
  const reader = body.getReader();
  let remaining = maxBytes ?? Infinity;
  const finish = (): void => {
    signal?.removeEventListener("abort", onAbort);
    onEnd();
  };
  let fail = (_error: unknown): void => {};
  const abort = (error: unknown): void => {
    finish();
    fail(error);
    reader.cancel(error).catch(() => {});
  };
  const onAbort = (): void => abort(signal?.reason);
  return new ReadableStream({
    start(controller) {
      fail = (error) => controller.error(error);
      if (signal?.aborted === true) onAbort();
      else signal?.addEventListener("abort", onAbort, { once: true });
      if (isDeclaredLarger(response, remaining) && subject.method.toUpperCase() !== "HEAD") {
        abort(tooLarge(subject, remaining));
      }
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (signal?.aborted === true) return;
        if (done) {
          finish();
          return controller.close();
        }
        remaining -= value.byteLength;
        if (remaining < 0) abort(tooLarge(subject, maxBytes ?? 0));
        else controller.enqueue(value);
      } catch (cause) {
        if (signal?.aborted !== true) abort(interrupted(subject, cause));
      }
    },
    async cancel(reason) {
      finish();
      await reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
}

/** Cancels an unread body and releases its connection. */
export function discardBody(response: Response): void {
  response.body?.cancel().catch(() => {});
}

function isDeclaredLarger({ headers, body }: Response, maxBytes: number): boolean {
  // The length of an encoded body is not its decoded size.
  return body !== null && !headers.has("content-encoding") &&
    Number(headers.get("content-length")) > maxBytes;
}

function interrupted(subject: RestErrorSubject, cause: unknown): RestError {
  const state = isDecodingFailure(cause) ? "the body cannot be decoded" : "the body was interrupted";
  return new RestError("body_interrupted", state, subject, { cause });
}

function tooLarge(subject: RestErrorSubject, maxBytes: number): RestError {
  return new RestError("body_too_large", `the body exceeds ${maxBytes} bytes`, subject);
}

function concatenate(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}
