/** Bytes that are no message of the expected type, or a value that no message can carry. */
export class WireError extends Error {
  override readonly name = "WireError";
}
