import { RestError, type RestErrorSubject } from "./rest_error.ts";

/** How a body is read. */
export interface ReadBodyOptions {
  /** Most bytes of it, after any content encoding was undone. */
  readonly maxBytes?: number | undefined;
  /** Ends the reading with its reason. */
  readonly signal?: AbortSignal | undefined;
  /** For errors. */
  readonly subject: RestErrorSubject;
}

/** The whole body of a response. */
export async function readBody(
  response: Response,
  options: ReadBodyOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  const { maxBytes, signal, subject } = options;
  if (maxBytes === undefined && signal === undefined) {
    try {
      return new Uint8Array(await response.arrayBuffer());
    } catch (cause) {
      throw brokenOff(subject, cause);
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
  return joined(chunks, length);
}

/**
 * The body of a response as a stream that ends with a `RestError` where it breaks off, grows too large or is
 * stopped; then the connection is let go of. `onEnd` is called once, however it ends.
 */
export function boundedBody(
  response: Response,
  { maxBytes, signal, subject }: ReadBodyOptions,
  onEnd: () => void = () => {},
): ReadableStream<Uint8Array<ArrayBuffer>> {
  if (response.body === null) {
    onEnd();
    return emptyStream();
  }
  const reader = response.body.getReader();
  let left = maxBytes ?? Infinity;
  const finish = (): void => {
    signal?.removeEventListener("abort", onAbort);
    onEnd();
  };
  let fail = (_error: unknown): void => {};
  const giveUp = (error: unknown): void => {
    finish();
    fail(error);
    reader.cancel(error).catch(() => {});
  };
  const onAbort = (): void => giveUp(signal?.reason);
  return new ReadableStream({
    start(controller) {
      fail = (error) => controller.error(error);
      if (signal?.aborted === true) onAbort();
      else signal?.addEventListener("abort", onAbort, { once: true });
      if (isDeclaredLarger(response, left) && subject.method.toUpperCase() !== "HEAD") {
        giveUp(tooLarge(subject, left));
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
        left -= value.byteLength;
        if (left < 0) giveUp(tooLarge(subject, maxBytes ?? 0));
        else controller.enqueue(value);
      } catch (cause) {
        if (signal?.aborted !== true) giveUp(brokenOff(subject, cause));
      }
    },
    async cancel(reason) {
      finish();
      await reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
}

/** Lets go of a body that nobody reads, and with it of its connection. */
export function discardBody(response: Response): void {
  response.body?.cancel().catch(() => {});
}

function isDeclaredLarger({ headers, body }: Response, maxBytes: number): boolean {
  // The length of an encoded body is not that of what comes out of it.
  return body !== null && !headers.has("content-encoding") &&
    Number(headers.get("content-length")) > maxBytes;
}

function brokenOff(subject: RestErrorSubject, cause: unknown): RestError {
  return new RestError("body_interrupted", "it broke off before its end", subject, { cause });
}

function tooLarge(subject: RestErrorSubject, maxBytes: number): RestError {
  return new RestError("body_too_large", `it has more than ${maxBytes} bytes`, subject);
}

function emptyStream(): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({ start: (controller) => controller.close() });
}

function joined(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}
