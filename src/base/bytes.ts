/** The bytes of the parts in one array; the part itself if it is the only one. */
export function joinBytes<B extends ArrayBufferLike>(
  parts: readonly Uint8Array<B>[],
): Uint8Array<B | ArrayBuffer> {
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only;
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

/** All bytes of a stream; undefined, and the rest unread, if there are more than `maxBytes`. */
export async function collectBytes(
  stream: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for await (const part of stream) {
    length += part.length;
    if (length > maxBytes) return undefined;
    parts.push(new Uint8Array(part));
  }
  return joinBytes(parts);
}

/** A text, or why it cannot be decoded. */
type StrictText =
  | { readonly text: string; readonly problem?: undefined }
  | { readonly text?: undefined; readonly problem: "unknown charset" | "malformed" };

/** Decodes bytes of a charset without replacing any; a byte order mark is dropped. */
export function strictText(bytes: Uint8Array, charset: string): StrictText {
  let decoder: TextDecoder;
  try {
    decoder = new TextDecoder(charset, { fatal: true });
  } catch {
    return { problem: "unknown charset" };
  }
  try {
    return { text: decoder.decode(bytes) };
  } catch {
    return { problem: "malformed" };
  }
}
